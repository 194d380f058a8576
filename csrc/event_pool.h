/*
 * The event pool: reusable driver events, kept by (device, flags).
 *
 * A driver event belongs to the device that was current when it was created, and recording it on another device's
 * stream can hang the queue; so the device is part of the key. Events are created and destroyed outside the pool's
 * lock. Giving one back makes no driver call, so that it is safe from a static's destructor and a thread-exit hook;
 * what is over the pool's bound is destroyed by later acquisitions, while the device is healthy.
 */
#ifndef RDM_EVENT_POOL_H
#define RDM_EVENT_POOL_H

#include "device.h"

/* A driver event of the device for RDM_EVENT_DEFAULT or RDM_EVENT_TIMING. The device is current if one was made. */
rdm_status rdm__event_pool_acquire(rdm__device *device, uint32_t flags, void **out_native);

void rdm__event_pool_release(rdm__device *device, uint32_t flags, void *native);

#endif
