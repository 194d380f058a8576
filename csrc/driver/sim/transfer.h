/* Copies and fills as work of a stream. */
#ifndef RDM_SIM_TRANSFER_H
#define RDM_SIM_TRANSFER_H

#include "driver/sim/stream.h"

int rdm__sim_transfer_copy(void *to, const void *from, size_t size, int kind, rdm__sim_stream *stream);
int rdm__sim_transfer_fill(void *to, int value, size_t size, rdm__sim_stream *stream);

#endif
