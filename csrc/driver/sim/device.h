/*
 * The simulated GPUs: each one's primary context, its list of streams, its memory budget and its fault.
 *
 * Locks, outermost first: an event's, a device's callback lock or stream list, a stream's, a record's.
 */
#ifndef RDM_SIM_DEVICE_H
#define RDM_SIM_DEVICE_H

#include "driver/driver.h"
#include "driver/sim/object.h"

#include <stdbool.h>
#include <stddef.h>

struct rdm__sim_callback_queue;

typedef struct rdm__sim_device rdm__sim_device;

/* An array of `count` devices, NULL where memory is short. */
rdm__sim_device *rdm__sim_devices_create(int count);

/* NULL where the index is out of range. */
rdm__sim_device *rdm__sim_device_at(int index);

int rdm__sim_device_index(const rdm__sim_device *device);

/* The sticky fault's error number, 0 where the device works. */
int rdm__sim_device_fault(rdm__sim_device *device);

/*
 * Gives the thread's current device, with its primary context, which the first such call creates. Returns HIP's error
 * where there is no such device.
 */
int rdm__sim_device_use_current(rdm__sim_device **out_device);

/* Hands out and takes back a part of the device's memory. False where that much is not left. */
bool rdm__sim_device_reserve(rdm__sim_device *device, size_t size);
void rdm__sim_device_unreserve(rdm__sim_device *device, size_t size);

/* Whether its streams begin no work. To change it for streams that wait, see device_streams.h. */
bool rdm__sim_device_is_held(rdm__sim_device *device);
void rdm__sim_device_note_held(rdm__sim_device *device, bool held);

struct rdm__sim_callback_queue *rdm__sim_device_callbacks(rdm__sim_device *device);

/* The device's list of streams holds one reference to each. */
void rdm__sim_device_add_stream(rdm__sim_device *device, rdm__sim_object *stream);
void rdm__sim_device_remove_stream(rdm__sim_device *device, rdm__sim_object *stream);

/*
 * The device's streams at this moment, each with a reference, for a caller that must not hold the list's lock. The
 * array is the caller's to free.
 */
rdm__sim_object **rdm__sim_device_copy_streams(rdm__sim_device *device, size_t *out_count);

/* The device's fault becomes `error`, unless it has one. True for the first. */
bool rdm__sim_device_note_fault(rdm__sim_device *device, int error);

/* hipSetDeviceFlags on this device: refused once it has its context. */
int rdm__sim_device_set_flags(rdm__sim_device *device, unsigned flags);

/* What every simulated device says of itself. */
rdm__device_properties rdm__sim_device_properties(void);

#endif
