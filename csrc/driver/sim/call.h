/*
 * What every entry point begins and ends with: the call log, injections, and the checks that hold for all of them.
 *
 * In the log, a call's device is the one that it acts on: by index, by a handle or memory of its, or as the current
 * device. Its handle is the first one among its arguments, or the one it created.
 */
#ifndef RDM_SIM_CALL_H
#define RDM_SIM_CALL_H

#include "driver/driver.h"

#include <stdbool.h>
#include <stddef.h>

/* Of the numbers that both compilers use, the one for "internal error". */
enum { RDM__SIM_RTC_INTERNAL_ERROR = 11 };

typedef struct rdm__sim_thread {
  /* Counts from 1 in the order of the threads' first calls; 0: none yet. */
  uint64_t number;
  int current_device;
  int last_error;
  /* Set on the threads that run host callbacks. */
  bool in_callback;
} rdm__sim_thread;

rdm__sim_thread *rdm__sim_this_thread(void);

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

/* The same for a call that made the object `handle` on `device`. */
int rdm__sim_call_end_created(rdm__sim_call_scope *scope, int result, const void *handle);

/* HIP's name of an entry point. */
const char *rdm__sim_call_name(rdm__call call);

/* The entry point with this name, RDM__CALL_COUNT where there is none. */
rdm__call rdm__sim_call_by_name(const char *name);

/* The entry points themselves, in the order of the table. */
#define X(field, hip_name, parameters) int rdm__sim_##field parameters;
RDM__DRIVER_CALLS(X)
#undef X

#endif
