/*
 * Fails every driver call that the library makes, at each place where it is made, in every way, and looks at what comes
 * of it: `injection [brief|long]`. The last line is "injections: N".
 *
 *   brief   every call and every kind of failure, and for each kind every tenth place
 *   long    stalls of a second, but for programs that a sanitizer slows down
 */
#include "injection.h"

#include "calls.h"
#include "lock.h"
#include "log_lines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_NOTHING_LEFT_TO_FAIL = 3, AT_ONCE = 2, STALLS_AT_ONCE = 8, MOST_CALLS = 400 };

typedef struct failure_kind {
  int error;
  uint64_t stall_ns;
} failure_kind;

/* Written by a child that nothing failed in: how much is alive once all is given back. */
static rdm_sim_objects *baseline;
static char cache_folder[64] = "/tmp/rdm_injection_XXXXXX";
static bool is_long;
static bool is_brief;

static void start_library(injection_scenario scenario) {
  setenv("RDM_CACHE_DIR", scenario == SCENARIO_COMPILE ? "" : cache_folder, 1);
  /* So that a wait is a few polls and not a few hundred, each a place for a failure. */
  setenv("RDM_EVENT_BLOCKING", "1", 1);
  log_lines_capture();
  test_use_sim(2);
}

static bool is_lost(int32_t device_index) {
  uint64_t constructed = 0;
  rdm_device device;
  rdm_device_info info = {.struct_size = sizeof info};
  CHECK_OK(rdm_device_construction_count(device_index, &constructed));
  if (constructed == 0) return false;
  CHECK_OK(rdm_device_get(device_index, &device));
  CHECK_OK(rdm_device_get_info(device, &info));
  return info.faulted == 1;
}

/* ---- What came of it --------------------------------------------------------------------------------------------- */

/* The step in which the call with this number was made by the thread that ran the scenario; else null. */
static const char *step_of(const scenario_trace *trace, const call_list *list, size_t number) {
  if (list->calls[number].thread != list->calls[0].thread) return NULL;
  const char *step = "";
  for (int i = 0; i < trace->count && trace->begin[i] <= number; i++) step = trace->steps[i];
  return step;
}

static void check_may_be_unseen(const injection_rule *rule, int error, const scenario_trace *trace) {
  const char *name = hip_name(rule->call);
  call_list list = calls_read(0);
  bool right = false;
  const char *seen_in = "no step";
  for (size_t i = 0; i < list.count; i++) {
    if (!call_is(&list.calls[i], name) || list.calls[i].result != error) continue;
    const char *step = step_of(trace, &list, i);
    seen_in = step == NULL ? "a thread of the library" : step;
    right = right || injection_may_be_unseen(rule, error, step);
  }
  calls_free(&list);
  CHECK_THAT(right, "the failure was swallowed, in %s", seen_in);
}

static void check_failure(const injection_rule *rule, int error, const scenario_failure *failure) {
  const rdm_error *got = &failure->error;
  const char *name = hip_name(rule->call);
  CHECK_THAT(injection_status_is_right(rule, error, got->status), "%s gave %s: %s", failure->step,
             rdm_status_name(got->status), got->message);
  CHECK_THAT(strcmp(got->call, name) == 0 && strstr(got->message, name) != NULL && got->driver_code == error,
             "%s gave call \"%s\", code %d: %s", failure->step, got->call, got->driver_code, got->message);
}

typedef struct attempt {
  injection_scenario scenario;
  scenario_trace *trace;
  scenario_failure failure;
  uint64_t took_ns;
} attempt;

static void *run_attempt(void *argument) {
  attempt *this_one = argument;
  uint64_t start = test_now_ns();
  this_one->failure = scenario_run(this_one->scenario, this_one->trace);
  this_one->took_ns = test_now_ns() - start;
  rdm__assert_no_lock_held();
  return NULL;
}

/* On a thread of its own, which ends: so its thread-local streams go back. */
static attempt try_scenario(injection_scenario scenario, scenario_trace *trace) {
  attempt this_one = {.scenario = scenario, .trace = trace};
  test_join_thread(test_start_thread(run_attempt, &this_one));
  return this_one;
}

static bool is_as_before(const injection_rule *rule, const failure_kind *kind, rdm_sim_objects *objects) {
  *objects = calls_count_objects();
  /* What the driver failed to destroy is lost to it alone. A queue that is still busy as the next stream takes one has
   * one more beside it. */
  bool fails = kind->error != 0;
  uint64_t streams = baseline->streams + 2;
  uint64_t events = baseline->events + (fails && rule->call == RDM__CALL_event_destroy);
  uint64_t programs = fails && rule->call == RDM__CALL_rtc_destroy_program;
  return objects->streams <= streams && objects->events <= events && objects->modules == baseline->modules &&
         objects->programs <= programs && objects->device_allocations == 0 && objects->host_allocations == 0;
}

static void check_nothing_leaked(const injection_rule *rule, const failure_kind *kind) {
  rdm_sim_objects objects;
  for (int i = 0; i < 2000 && !is_as_before(rule, kind, &objects); i++) test_sleep_ns(TEST_MILLISECOND);
  CHECK_THAT(is_as_before(rule, kind, &objects),
             "alive: %llu streams, %llu events, %llu modules, %llu programs, %llu and %llu allocations",
             (unsigned long long)objects.streams, (unsigned long long)objects.events,
             (unsigned long long)objects.modules, (unsigned long long)objects.programs,
             (unsigned long long)objects.device_allocations, (unsigned long long)objects.host_allocations);
}

/* With nothing failing any more. A lock that is still held would stop it. */
static void check_retry(const injection_rule *rule, const failure_kind *kind, bool fault_expected) {
  bool lost = is_lost(0) || is_lost(1);
  CHECK_THAT(lost == fault_expected, "a device is %s", lost ? "lost" : "not lost");
  attempt again = try_scenario(rule->scenario, NULL);
  if (lost) {
    CHECK_THAT(again.failure.number >= 0, "a lost device works");
    CHECK_STATUS(again.failure.error.status, RDM_ERROR_DEVICE_FAULT);
    CHECK_THAT(strstr(again.failure.error.message, hip_name(rule->call)) != NULL, "the first cause is not named: %s",
               again.failure.error.message);
    CHECK_THAT(again.took_ns < TEST_SECOND, "a lost device failed after %.2f s", (double)again.took_ns * 1e-9);
    return;
  }
  CHECK_THAT(again.failure.number < 0, "the retry failed at %s: %s", again.failure.step, again.failure.error.message);
  CHECK(log_lines_with("bound HIP device 0") == 1);
  CHECK(log_lines_with("bound HIP device 1") == (rule->scenario == SCENARIO_WORK));
  check_nothing_leaked(rule, kind);
}

/* ---- One run ----------------------------------------------------------------------------------------------------- */

/* Never returns. */
static void run_with_failure(const injection_rule *rule, const failure_kind *kind, unsigned nth) {
  char text[128];
  uint64_t fired = 0;
  scenario_trace *trace = calloc(1, sizeof *trace);
  CHECK(trace != NULL);
  alarm(30 * TEST_SLOWDOWN);
  snprintf(text, sizeof text, "%s:%u:1:%d:%llu", hip_name(rule->call), nth, kind->error,
           (unsigned long long)kind->stall_ns);
  setenv("RDM_SIM_INJECT", text, 1);
  start_library(rule->scenario);
  attempt first = try_scenario(rule->scenario, trace);
  scenario_failure failure = first.failure;
  CHECK_OK(rdm_sim_clear_injections(&fired));
  CHECK_THAT(first.took_ns < kind->stall_ns + 5 * TEST_SECOND * TEST_SLOWDOWN, "it took %.1f s",
             (double)first.took_ns * 1e-9);
  if (fired == 0 || kind->error == 0) {
    CHECK_THAT(failure.number < 0, "%s failed: %s", failure.step, failure.error.message);
  } else if (failure.number >= 0) {
    check_failure(rule, kind->error, &failure);
  } else {
    check_may_be_unseen(rule, kind->error, trace);
  }
  if (fired > 0) {
    bool at_construction = failure.number >= 0 && strstr(failure.step, "rdm_device_get(") != NULL;
    check_retry(rule, kind, injection_is_fault(rule, kind->error) && !at_construction);
  }
  free(trace);
  exit(fired > 0 ? 0 : EXIT_NOTHING_LEFT_TO_FAIL);
}

static void run_without_failure(injection_scenario scenario) {
  start_library(scenario);
  rdm_sim_objects first = {0};
  for (int i = 0; i < 2; i++) {
    scenario_failure failure = try_scenario(scenario, NULL).failure;
    CHECK_THAT(failure.number < 0, "%s failed: %s", failure.step, failure.error.message);
    test_sleep_ns(50 * TEST_MILLISECOND);
    *baseline = calls_count_objects();
    if (i == 0) first = *baseline;
  }
  CHECK(first.streams == baseline->streams && first.events == baseline->events && first.modules == baseline->modules);
  CHECK(baseline->programs == 0 && baseline->device_allocations == 0 && baseline->host_allocations == 0);
  for (int call = 0; call < RDM__CALL_COUNT; call++) {
    if (injection_rules[call].use != CALL_IS_NEVER_MADE) continue;
    CHECK_THAT(calls_made(hip_name((rdm__call)call)) == 0, "%s was called", hip_name((rdm__call)call));
  }
  exit(0);
}

/* ---- All runs ---------------------------------------------------------------------------------------------------- */

static unsigned injections;
static unsigned failures;

static int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) test_fail(__FILE__, __LINE__, "waitpid: %s", strerror(errno));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static pid_t start(const injection_rule *rule, const failure_kind *kind, unsigned nth) {
  fflush(NULL);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) run_with_failure(rule, kind, nth);
  return child;
}

/* The failure at the `first`-th call and the `step`-th after it and so on, until nothing is left to fail. */
static void fail_each(const injection_rule *rule, const failure_kind *kind, unsigned first, unsigned step) {
  const unsigned at_once = kind->stall_ns > 0 ? STALLS_AT_ONCE : AT_ONCE;
  bool over = false;
  for (unsigned nth = first; !over; nth += at_once * step) {
    pid_t children[STALLS_AT_ONCE];
    CHECK_THAT(nth < MOST_CALLS, "%s is called without end", hip_name(rule->call));
    for (unsigned i = 0; i < at_once; i++) children[i] = start(rule, kind, nth + i * step);
    for (unsigned i = 0; i < at_once; i++) {
      int code = wait_for(children[i]);
      over = over || code == EXIT_NOTHING_LEFT_TO_FAIL;
      injections += code != EXIT_NOTHING_LEFT_TO_FAIL;
      if (code == 0 || code == EXIT_NOTHING_LEFT_TO_FAIL) continue;
      printf("FAILED: call %u of %s, error %d, stall %.3f s: %s %d\n", nth + i * step, hip_name(rule->call),
             kind->error, (double)kind->stall_ns * 1e-9, code > 128 ? "signal" : "exit code",
             code > 128 ? code - 128 : code);
      failures++;
    }
  }
}

static void fail_call(const injection_rule *rule) {
  static const int driver_errors[] = {RDM_HIP_OUT_OF_MEMORY, RDM_HIP_NOT_READY, RDM_HIP_INVALID_HANDLE,
                                      RDM_HIP_ILLEGAL_ADDRESS};
  static const int compiler_errors[] = {RDM_RTC_OUT_OF_MEMORY, RDM_RTC_INVALID_INPUT, RDM_RTC_INVALID_PROGRAM, 11};
  enum { KINDS = 5 };
  const int *errors = rule->call >= RDM__CALL_rtc_version ? compiler_errors : driver_errors;
  unsigned before = injections;
  for (unsigned i = 0; i < KINDS; i++) {
    const uint64_t stall_ns = is_long && TEST_SLOWDOWN == 1 ? TEST_SECOND : 20 * TEST_MILLISECOND;
    const failure_kind kind = {.error = i < KINDS - 1 ? errors[i] : 0, .stall_ns = i < KINDS - 1 ? 0 : stall_ns};
    /* The first place of each call is never left out, since most calls are made at one or two. */
    fail_each(rule, &kind, is_brief ? 1 + i % 2 : 1, is_brief ? 2 * KINDS : 1);
  }
  if (injections == before) {
    printf("FAILED: %s was never called\n", hip_name(rule->call));
    failures++;
  }
  printf("%s: %u\n", hip_name(rule->call), injections - before);
}

static void remove_cache(void) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", cache_folder);
  if (system(command) != 0) printf("%s was not removed\n", cache_folder);
}

int main(int argc, char **argv) {
  is_long = argc > 1 && strcmp(argv[1], "long") == 0;
  is_brief = argc > 1 && strcmp(argv[1], "brief") == 0;
  baseline = mmap(NULL, sizeof *baseline, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(baseline != MAP_FAILED && mkdtemp(cache_folder) != NULL);
  static const injection_scenario scenarios[] = {SCENARIO_WORK, SCENARIO_SURPLUS_EVENTS, SCENARIO_COMPILE};
  for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) run_without_failure(scenarios[i]);
    CHECK_THAT(wait_for(child) == 0, "a scenario fails although nothing of the driver does");
    for (int call = 0; call < RDM__CALL_COUNT; call++) {
      const injection_rule *rule = &injection_rules[call];
      if (rule->use == CALL_IS_NEVER_MADE || rule->scenario != scenarios[i]) continue;
      fail_call(rule);
    }
  }
  remove_cache();
  printf("injections: %u\n", injections);
  return failures == 0 && injections > 0 ? 0 : 1;
}
