/*
 * What every entry point begins and ends with: the call log, injections, and the checks that hold for all of them.
 *
 * In the log, a call's device is the one that it acts on: by index, by a handle or memory of its, or as the current
 * device. Its handle is the first one among its arguments, or the one it created.
 */
#ifndef RDM_SIM_CALL_H
#define RDM_SIM_CALL_H

#include "driver/driver.h"

typedef struct rdm__sim_call_scope {
  uint64_t number;
  rdm__call call;
} rdm__sim_call_scope;

/*
 * Logs the call and stalls where an injection says so. Returns 0 where the call shall go on, else what it returns
 * instead: an injected error, not-permitted in a callback, not-initialized, or the named device's fault.
 */
int rdm__sim_call_begin(rdm__sim_call_scope *scope, rdm__call call, const void *handle, int named_device);

/* Notes the result in the log and, for a failure, in the thread's last-error slot. Returns `result`. */
int rdm__sim_call_end(rdm__sim_call_scope *scope, int result);

/* The same for a call that made the object `handle`. */
int rdm__sim_call_end_created(rdm__sim_call_scope *scope, int result, const void *handle);

#endif
