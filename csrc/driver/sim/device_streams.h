/* What is done to a device together with all of its streams. */
#ifndef RDM_SIM_DEVICE_STREAMS_H
#define RDM_SIM_DEVICE_STREAMS_H

#include "driver/sim/device.h"

/* Waits for all that was submitted to the device before. Returns 0 or the device's fault. */
int rdm__sim_device_wait(rdm__sim_device *device);

/* While a device is held, its streams take work but begin none. */
void rdm__sim_device_set_held(rdm__sim_device *device, bool held);

/*
 * Faults the device; the first fault stays. What is queued on its streams is dropped, every wait for it ends, and no
 * host callback of its begins any more. A stream of another device that waits for an event of this one goes on as if
 * the wait were over. Where faults are process-wide, every device faults. Where they abort it does not return. Called
 * with no lock held.
 */
void rdm__sim_device_set_fault(rdm__sim_device *device, int error);

#endif
