/*
 * The simulated GPUs: each one's primary context, its streams, its memory budget and its fault.
 *
 * Locks, outermost first: an event's, a device's callback lock or stream list, a stream's, a record's.
 */
#ifndef RDM_SIM_DEVICE_H
#define RDM_SIM_DEVICE_H

#include "driver/driver.h"

#include <stdbool.h>
#include <stddef.h>

struct rdm__sim_stream;
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

bool rdm__sim_device_is_held(rdm__sim_device *device);
void rdm__sim_device_set_held(rdm__sim_device *device, bool held);

struct rdm__sim_callback_queue *rdm__sim_device_callbacks(rdm__sim_device *device);

/* The device's list of streams holds one reference to each. */
void rdm__sim_device_add_stream(rdm__sim_device *device, struct rdm__sim_stream *stream);
void rdm__sim_device_remove_stream(rdm__sim_device *device, struct rdm__sim_stream *stream);

/* Waits for all that was submitted to the device before. Returns 0 or the device's fault. */
int rdm__sim_device_wait(rdm__sim_device *device);

/*
 * Faults the device; the first fault stays. What is queued on its streams is dropped, every wait for it ends, and no
 * host callback of its begins any more. A stream of another device that waits for an event of this one goes on as if
 * the wait were over. Where faults are process-wide, every device faults. Called with no lock held.
 */
void rdm__sim_device_set_fault(rdm__sim_device *device, int error);

#endif
