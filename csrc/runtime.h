/*
 * The process's state: which driver it uses, and whether calls may enter it at all.
 *
 * `configuring` until the driver is first needed, then `ready`; `shutting down` from the exit handler on, and `forked`
 * in a child of a process that was loading or had loaded its driver. One atomic word, so the check on each call is one
 * load.
 */
#ifndef RDM_RUNTIME_H
#define RDM_RUNTIME_H

#include "driver/driver.h"

#include <stdatomic.h>
#include <stdbool.h>

/* In this order: from RDM__SHUTTING_DOWN on no call enters the driver. */
enum { RDM__CONFIGURING, RDM__LOADING, RDM__READY, RDM__SHUTTING_DOWN, RDM__FORKED };

/* Written by runtime.c alone. Hidden, so that position-independent code reads it without a detour. */
extern _Atomic int rdm__runtime_state __attribute__((visibility("hidden")));

/* Whether the driver is loaded and calls may enter it: what the paths ask that are nothing but loads. */
static inline bool rdm__runtime_is_ready(void) {
  return atomic_load_explicit(&rdm__runtime_state, memory_order_acquire) == RDM__READY;
}

/* True once exit handlers run, or in a forked child: a release then does nothing. */
static inline bool rdm__runtime_is_over(void) {
  return atomic_load_explicit(&rdm__runtime_state, memory_order_acquire) >= RDM__SHUTTING_DOWN;
}

/* Fails with what the process's state is, once it is over. */
rdm_status rdm__runtime_check_over(void);

/* Whether a call may proceed: RDM_OK, RDM_ERROR_SHUTTING_DOWN or RDM_ERROR_FORKED. Loads nothing. */
static inline rdm_status rdm__runtime_check(void) {
  return rdm__runtime_is_over() ? rdm__runtime_check_over() : RDM_OK;
}

/* The same, and loads the driver if this is the first need of it. Called with no lock held. */
rdm_status rdm__runtime_enter(const rdm__driver **out_driver);

/*
 * Registers the exit handler once more. Exit handlers run last in, first out, and runtimes register their own as they
 * are loaded and as they are first used; ours has to run before theirs. Called with no leaf held.
 */
void rdm__runtime_renew_exit_handler(void);

/* The device count that the driver gave when it was loaded; 0 before that and once the process is over. */
int32_t rdm__runtime_device_count(void);

/*
 * Around what the driver is called for by the library's own threads, and by threads of the program where a few
 * nanoseconds do not matter: false once exit handlers run, and then nothing is to be called or left. The exit handler
 * waits a moment for those that are inside. Not held while a lock is waited for. Where one visit makes several calls,
 * those after one that may take long are made in a visit of their own.
 */
bool rdm__runtime_thread_enters_driver(void);
void rdm__runtime_thread_left_driver(void);

/* The same as a status: RDM_OK, and then to be left, or what rdm__runtime_check says. */
rdm_status rdm__runtime_enter_driver(void);

/* What a release returns when it does nothing because of that: RDM_OK at exit, RDM_ERROR_FORKED in a forked child. */
rdm_status rdm__runtime_release_check(void);

/* The same for a release under way as the exit began: what it met because of that is RDM_OK, any other status stays. */
rdm_status rdm__runtime_release_status(rdm_status status);

#endif
