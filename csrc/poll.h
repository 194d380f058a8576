/*
 * Asking the driver whether an event or a stream is done, with the calling thread's last-error slot left as it was.
 *
 * The runtime's last-error slot is the thread's, and every failed call overwrites it, not-ready too. Where it is clean,
 * a poll clears what not-ready left there. Where other code has left an error pending, only that code may take it; so
 * such a poll is made by a thread of the library, one for each device, and the caller's slot is not touched at all.
 */
#ifndef RDM_POLL_H
#define RDM_POLL_H

#include "device.h"

typedef enum rdm__poll_kind { RDM__POLL_EVENT, RDM__POLL_STREAM } rdm__poll_kind;

/*
 * Whether other code has left an error pending on this thread. Asked once, before a series of polls of this thread: not
 * ready is an error, too.
 */
bool rdm__poll_finds_pending_error(const rdm__device *device);

/*
 * RDM_OK, RDM_NOT_READY, or an error; `doing` is for its message. The first asks on this thread, with the device made
 * current and the thread's capture mode relaxed before, and leaves not-ready in the slot; the second asks on the
 * device's own thread.
 */
rdm_status rdm__poll_here(rdm__device *device, rdm__poll_kind kind, void *native, const char *doing);
rdm_status rdm__poll_elsewhere(rdm__device *device, rdm__poll_kind kind, void *native, const char *doing);

/* One poll, here or elsewhere. Where it was here the device is the thread's current one. */
rdm_status rdm__poll(rdm__device *device, rdm__poll_kind kind, void *native, const char *doing);

#endif
