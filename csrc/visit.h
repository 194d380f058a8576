/*
 * Visits of the driver: what surrounds a call that another part of the process must not suffer from.
 *
 * While other code captures a stream into a graph, the runtimes refuse much of what is asked elsewhere, and the capture
 * is lost by the asking. What the library does for itself has no part in any capture, so it is done with the calling
 * thread's capture mode relaxed, and the mode is put back.
 */
#ifndef RDM_VISIT_H
#define RDM_VISIT_H

#include "device.h"

/* What to put back. All zero: nothing. */
typedef struct rdm__capture_guard {
  bool is_relaxed;
  int mode;
} rdm__capture_guard;

/* With the device current. Where the driver can not do it the visit goes on without, so only a fault and the exit are
 * failures. */
rdm_status rdm__capture_relax(rdm__device *device, rdm__capture_guard *out_guard);
void rdm__capture_restore(rdm__device *device, const rdm__capture_guard *guard);

/* True where other code is capturing this stream: then nothing may be asked of it, or its capture is lost. */
bool rdm__stream_is_capturing(rdm__device *device, void *native);

/*
 * For calls on paths that are not hot: makes the device current, relaxes the thread's capture mode, and counts the
 * thread as one that the exit handler waits for. On failure there is nothing to end. No lock is waited for in between.
 */
rdm_status rdm__visit_begin(rdm__device *device, rdm__capture_guard *out_guard);
void rdm__visit_end(rdm__device *device, const rdm__capture_guard *guard);

#endif
