/* Device and pinned host memory: what is allocated, where, and on which device. */
#ifndef RDM_SIM_MEMORY_H
#define RDM_SIM_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rdm__sim_memory rdm__sim_memory;

/* NULL where memory is short. */
rdm__sim_memory *rdm__sim_memory_create(void);

/* Allocates on the calling thread's current device, or pinned host memory. Returns HIP's error number. */
int rdm__sim_memory_allocate(void **out_pointer, size_t size, bool on_host);

/* Freeing waits for the device, as hipFree does. */
int rdm__sim_memory_free(void *pointer, bool on_host);

/* True where one live allocation holds the whole range; gives its device. */
bool rdm__sim_memory_find(const void *address, size_t size, int *out_device);

uint64_t rdm__sim_memory_device_allocation_count(void);
uint64_t rdm__sim_memory_host_allocation_count(void);

#endif
