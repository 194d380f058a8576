#include "wait.h"

#include "clock.h"
#include "count.h"
#include "driver_call.h"
#include "log.h"
#include "poll.h"
#include "runtime.h"
#include "settings.h"
#include "status.h"
#include "visit.h"

#include <sched.h>
#include <stdio.h>

enum { SPINS = 64 };
/* For so long the thread gives way rather than sleep: what most evaluations take, while a sleep takes 50 us and more.
 */
static const uint64_t yielding_ns = 200 * RDM__NS_PER_US;
static const uint64_t first_sleep_ns = 20 * RDM__NS_PER_US;
static const uint64_t longest_sleep_ns = 500 * RDM__NS_PER_US;
/* Once it has taken so long, twice the sleep delays its end by a hundredth at most, and halves what it burns. */
static const uint64_t long_wait_ns = 100 * RDM__NS_PER_MS;

rdm__wait_limit rdm__wait_limit_from(uint64_t timeout_ns) {
  uint64_t watchdog_ns = rdm__watchdog_ns();
  rdm__wait_limit limit = {.begin_ns = rdm__now_ns()};
  limit.is_watchdog = watchdog_ns < timeout_ns;
  limit.timeout_ns = limit.is_watchdog ? watchdog_ns : timeout_ns;
  limit.deadline_ns = rdm__deadline_ns(limit.begin_ns, limit.timeout_ns);
  return limit;
}

rdm_status rdm__wait_limit_reached(const rdm__wait_limit *limit, const char *doing, int32_t device_index) {
  double seconds = (double)limit->timeout_ns / (double)RDM__NS_PER_SECOND;
  char where[32] = "";
  if (device_index >= 0) snprintf(where, sizeof where, " on device %d", device_index);
  rdm__count(limit->is_watchdog ? RDM__COUNT_WAIT_WATCHDOGS : RDM__COUNT_WAIT_TIMEOUTS, 1);
  if (limit->is_watchdog) {
    rdm__log(RDM_LOG_DEBUG, "the watchdog ends a wait: %s%s took longer than RDM_WATCHDOG_SECS, %g s", doing, where,
             seconds);
    return rdm__fail_driver(RDM_ERROR_WATCHDOG, 0, "", "", device_index,
                            "%s%s took longer than RDM_WATCHDOG_SECS, %g s", doing, where, seconds);
  }
  return rdm__fail_driver(RDM_ERROR_TIMEOUT, 0, "", "", device_index,
                          "%s%s reached its deadline of %g s; the work goes on", doing, where, seconds);
}

uint64_t rdm__wait_begins(void) {
  rdm__count(RDM__COUNT_WAITS, 1);
  return rdm__now_ns();
}

void rdm__wait_ended(uint64_t since_ns) {
  rdm__count(RDM__COUNT_WAIT_TIME_NS, rdm__now_ns() - since_ns);
  rdm__count(RDM__COUNT_WAITS_ENDED, 1);
}

static void pause_briefly(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/* How long the next look at the driver is put off: a wait of microseconds should end in microseconds, and a long one
 * should not burn a core. */
static void back_off(unsigned attempt, uint64_t *sleep_ns, const rdm__wait_limit *limit) {
  bool blocks = rdm__waits_block();
  if (!blocks && attempt < SPINS) {
    pause_briefly();
    return;
  }
  uint64_t now = rdm__now_ns();
  if (!blocks && now - limit->begin_ns < yielding_ns) {
    sched_yield();
    return;
  }
  uint64_t left = limit->deadline_ns > now ? limit->deadline_ns - now : 0;
  struct timespec time = rdm__timespec(*sleep_ns < left ? *sleep_ns : left);
  nanosleep(&time, NULL);
  uint64_t longest_ns = now - limit->begin_ns < long_wait_ns ? longest_sleep_ns : 2 * longest_sleep_ns;
  *sleep_ns = *sleep_ns * 2 < longest_ns ? *sleep_ns * 2 : longest_ns;
}

rdm_status rdm__query_native_event(rdm__device *device, void *native, const char *doing) {
  return rdm__poll(device, RDM__POLL_EVENT, native, doing);
}

/* Whether the wait goes on: not while the process exits, nor on a lost device, nor past its limit. */
static rdm_status check_wait(rdm__device *device, const rdm__wait_limit *limit, const char *doing) {
  rdm_status status = rdm__runtime_check();
  if (status == RDM_OK) status = rdm__device_check(device);
  if (status == RDM_OK && limit->deadline_ns != UINT64_MAX && rdm__now_ns() >= limit->deadline_ns) {
    status = rdm__wait_limit_reached(limit, doing, device->index);
  }
  return status;
}

rdm_status rdm__wait_native_event(rdm__device *device, void *native, const rdm__wait_limit *limit, const char *doing) {
  rdm__assert_no_lock_held();
  rdm_status status = rdm__runtime_check();
  if (status == RDM_OK) status = rdm__device_check(device);
  if (status != RDM_OK) return status;
  bool elsewhere = rdm__poll_finds_pending_error(device);
  rdm__capture_guard guard = {0};
  if (!elsewhere) status = rdm__device_bind(device);
  if (!elsewhere && status == RDM_OK) status = rdm__capture_relax(device, &guard);
  /* 0: the first look found it done. */
  uint64_t since_ns = 0;
  uint64_t sleep_ns = first_sleep_ns;
  for (unsigned attempt = 0; status == RDM_OK; attempt++) {
    status = elsewhere ? rdm__poll_elsewhere(device, RDM__POLL_EVENT, native, doing)
                       : rdm__poll_here(device, RDM__POLL_EVENT, native, doing);
    if (status != RDM_NOT_READY) break;
    if (attempt == 0) since_ns = rdm__wait_begins();
    /* A moment that passed while this thread slept is not held against work that is done by now. */
    status = check_wait(device, limit, doing);
    if (status != RDM_OK) break;
    back_off(attempt, &sleep_ns, limit);
    status = rdm__runtime_check();
    if (status == RDM_OK) status = rdm__device_check(device);
  }
  if (since_ns != 0) {
    rdm__wait_ended(since_ns);
    if (!elsewhere) rdm__driver_forget_error(device->driver);
  }
  rdm__capture_restore(device, &guard);
  return status;
}

rdm_status rdm__wait_for_index_lock(rdm__mutex *lock, int32_t device_index, const rdm__wait_limit *limit,
                                    const char *doing) {
  uint64_t sleep_ns = first_sleep_ns;
  for (unsigned attempt = 0; !rdm__mutex_try_lock(lock); attempt++) {
    rdm_status status = rdm__runtime_check();
    if (status == RDM_OK && rdm__now_ns() >= limit->deadline_ns) {
      status = rdm__wait_limit_reached(limit, doing, device_index);
    }
    if (status != RDM_OK) return status;
    back_off(attempt, &sleep_ns, limit);
  }
  return RDM_OK;
}

rdm_status rdm__wait_for_lock(rdm__mutex *lock, rdm__device *device, const rdm__wait_limit *limit, const char *doing) {
  uint64_t sleep_ns = first_sleep_ns;
  for (unsigned attempt = 0; !rdm__mutex_try_lock(lock); attempt++) {
    rdm_status status = check_wait(device, limit, doing);
    if (status != RDM_OK) return status;
    back_off(attempt, &sleep_ns, limit);
  }
  return RDM_OK;
}
