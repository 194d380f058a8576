/* Host functions as work of a stream. */
#ifndef RDM_SIM_HOST_FUNCTION_H
#define RDM_SIM_HOST_FUNCTION_H

#include "driver/sim/stream.h"

int rdm__sim_host_function_submit(rdm__sim_stream *stream, rdm__host_function function, void *user_data);

#endif
