/*
 * Host waits. The library never enters a driver call that waits: after a fault such a call may not come back. It polls,
 * first spinning, then yielding, then sleeping, and ends on any status but not-ready, on the device's fault latched by
 * another thread, at the deadline, at the watchdog, and when the process exits.
 */
#ifndef RDM_WAIT_H
#define RDM_WAIT_H

#include "device.h"

/* When a wait that begins now ends without success, and why. */
typedef struct rdm__wait_limit {
  uint64_t begin_ns;
  uint64_t deadline_ns;
  uint64_t timeout_ns;
  bool is_watchdog;
} rdm__wait_limit;

rdm__wait_limit rdm__wait_limit_from(uint64_t timeout_ns);

/* The error of a wait that reached its limit, `doing` what, such as "waiting for an event": RDM_ERROR_TIMEOUT or
 * RDM_ERROR_WATCHDOG. An index of -1: of no device. */
rdm_status rdm__wait_limit_reached(const rdm__wait_limit *limit, const char *doing, int32_t device_index);

/* Around what a host thread waits in, for rdm_get_counters; the second is given what the first gave. */
uint64_t rdm__wait_begins(void);
void rdm__wait_ended(uint64_t since_ns);

/* Waits until a driver event of the device, which has been recorded, is done. `doing` is for the messages. */
rdm_status rdm__wait_native_event(rdm__device *device, void *native, const rdm__wait_limit *limit, const char *doing);

/*
 * Takes a lock that another thread may hold while it is inside the driver, where a queue that is full keeps it. On
 * failure the lock is not taken. The second is for what is of no device yet but of an index.
 */
rdm_status rdm__wait_for_lock(rdm__mutex *lock, rdm__device *device, const rdm__wait_limit *limit, const char *doing);
rdm_status rdm__wait_for_index_lock(rdm__mutex *lock, int32_t device_index, const rdm__wait_limit *limit,
                                    const char *doing);

/* RDM_OK, RDM_NOT_READY, or an error. Leaves the thread's last-error slot in the runtime as it was. */
rdm_status rdm__query_native_event(rdm__device *device, void *native, const char *doing);

#endif
