/*
 * The event pool: events that nobody uses now, each with its driver event, kept by (device, flags).
 *
 * A driver event belongs to the device that was current when it was created, and recording it on another device's
 * stream can hang the queue; so the device is part of the key.
 *
 * Each thread keeps a few events of its own in a magazine for each device, so that the common acquire and release take
 * no lock. An empty magazine is refilled from the shared pool, and a full one gives half of it back, under the pool's
 * lock; what a thread holds goes back when it ends. Driver events are created and destroyed outside the lock. Giving an
 * event back makes no driver call, so that it is safe from a static's destructor and a thread-exit hook; what is over
 * the pool's bound is destroyed by later acquisitions, while the device is healthy.
 */
#ifndef RDM_EVENT_POOL_H
#define RDM_EVENT_POOL_H

#include "device.h"

typedef struct rdm__event {
  rdm__object object;
  /* These are the event's for as long as it has a driver event, also while it is in the pool. */
  rdm__device *device;
  void *native;
  uint32_t flags;
  /* event.c: what the latest record came to. */
  _Atomic int state;
} rdm__event;

/* Where every event has its slot. An event in the pool is closed and keeps its slot. */
extern rdm__handle_table rdm__events __attribute__((visibility("hidden")));

/*
 * An event of the device for RDM_EVENT_DEFAULT or RDM_EVENT_TIMING that is the caller's alone: closed, to be opened or
 * given back. The device is current if a driver event was made.
 */
rdm_status rdm__event_pool_acquire(rdm__device *device, uint32_t flags, rdm__event **out_event);

/*
 * The same from what this thread holds of the device that it last had an event of, if the handle is that device's; null
 * where there is none, or where the process is over or a device has faulted. All loads, but for the ring.
 */
rdm__event *rdm__event_of_thread(rdm_device handle, uint32_t flags);

/* Takes an event back that is the caller's alone. On a faulted device its driver event is left alone for ever: nothing
 * is used again there, and destroying it may hang. */
void rdm__event_pool_release(rdm__event *event);

#endif
