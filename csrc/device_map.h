/*
 * The device map: the process's index -> device map.
 *
 * Threads remember the devices that they found last and do not read the map again for those: a device in the map is
 * there for the life of the process, so what is remembered never has to be cleared. In a process that is over nothing
 * remembered counts.
 *
 * Invariant: an index's device is constructed at most once at a time, is inserted only when its construction has
 * ended well, and is never removed. Lookups read the map under its shared lock, an insert writes it under the unique
 * lock. A construction runs under a lock of its own index alone, so that the first use of a slow GPU delays nobody
 * who asks for another.
 *
 * Lock order: an index's construction lock, then the map's lock.
 */
#ifndef RDM_DEVICE_MAP_H
#define RDM_DEVICE_MAP_H

#include "device.h"

/* The device with this index, constructed if this is its first use. Loads the driver if need be. */
rdm_status rdm__device_map_get(int32_t index, rdm__device **out_device);

/* RDM_OK for an index that the driver has, else an error that names it. Loads the driver if need be. */
rdm_status rdm__device_map_check_index(int32_t index, const rdm__driver **out_driver);

/* Calls `visit` for each device that exists, in the order of the indices, with no lock held. */
void rdm__device_map_each(void (*visit)(rdm__device *device, void *context), void *context);

/* For rdm_get_counters: lookups that found what the thread remembered, and devices constructed. */
uint64_t rdm__device_map_hits(void);
uint64_t rdm__device_map_constructions(void);

#endif
