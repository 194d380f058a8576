/* Device and pinned host memory: what is allocated, where, and on which device. */
#ifndef RDM_SIM_MEMORY_H
#define RDM_SIM_MEMORY_H

#include <stdint.h>

typedef struct rdm__sim_memory rdm__sim_memory;

/* NULL where memory is short. */
rdm__sim_memory *rdm__sim_memory_create(void);

uint64_t rdm__sim_memory_device_allocation_count(void);
uint64_t rdm__sim_memory_host_allocation_count(void);

#endif
