/*
 * Injected failures: what of the driver fails, how, and what has to come of it.
 *
 * Each run is a process of its own, forked from one that has never loaded the driver, so that what one leaves behind
 * (a device that is lost) is not met by the next.
 */
#ifndef TEST_INJECTION_H
#define TEST_INJECTION_H

#include "driver/driver.h"
#include "test.h"

/* What is run while a call fails. */
typedef enum injection_scenario {
  /* Every driver call but those below; compiled code comes from the cache on disk. */
  SCENARIO_WORK,
  /* More idle events than a pool keeps, so that some are destroyed. */
  SCENARIO_SURPLUS_EVENTS,
  /* A compile, and another one of a source that does not compile. */
  SCENARIO_COMPILE
} injection_scenario;

/* How the first failure of a scenario came about. */
typedef struct scenario_failure {
  rdm_error error;
  /* The text of the call, and its number in the scenario; -1 where nothing failed. */
  const char *step;
  int number;
} scenario_failure;

/* The step in which a source is compiled that does not compile. */
extern const char scenario_bad_source[];

/* Which steps began at which number of the driver's call log. */
typedef struct scenario_trace {
  uint64_t begin[96];
  const char *steps[96];
  int count;
} scenario_trace;

/*
 * Runs a scenario to its end or its first failure, gives everything back, and says what failed. Ends the process as a
 * failed test where a completion handler does not run exactly once, or where what was computed is wrong. `trace` may be
 * null.
 */
scenario_failure scenario_run(injection_scenario scenario, scenario_trace *trace);

/* What the library does with a call. */
typedef enum call_use {
  /* The library calls it, and a failure of it is the caller's. */
  CALL_FAILS,
  /* The library calls it, and does without what it gives: the caller sees a fault alone. */
  CALL_IS_DONE_WITHOUT,
  /* As before, and not even a fault is the caller's: nothing of a device depends on it. */
  CALL_IS_IGNORED,
  /* The library never calls it, since it waits, or destroys what is kept. */
  CALL_IS_NEVER_MADE
} call_use;

typedef struct injection_rule {
  rdm__call call;
  injection_scenario scenario;
  call_use use;
} injection_rule;

extern const injection_rule injection_rules[RDM__CALL_COUNT];

/* The call's name, as HIP has it. */
const char *hip_name(rdm__call call);

/* What a caller may see of a failed call; RDM_OK alone where it is not to see any failure. */
bool injection_status_is_right(const injection_rule *rule, int error, rdm_status status);

/* Whether the scenario may succeed although the call that failed was made in this step. Null: on a library's thread. */
bool injection_may_be_unseen(const injection_rule *rule, int error, const char *step);

/* Whether the device is lost after it, where the device was there. */
bool injection_is_fault(const injection_rule *rule, int error);

#endif
