/* Kernel launches as work of a stream: HIP's limits, and the arguments copied before the call returns. */
#ifndef RDM_SIM_LAUNCH_H
#define RDM_SIM_LAUNCH_H

#include "driver/sim/module.h"
#include "driver/sim/stream.h"

int rdm__sim_launch_submit(rdm__sim_function *function, const unsigned grid[3], const unsigned block[3],
                           unsigned shared_memory, rdm__sim_stream *stream, void **arguments);

#endif
