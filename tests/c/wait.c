/* Host waits: what the environment sets for them, that each has a deadline, and that one can sleep. */
#include "calls.h"
#include "log_lines.h"
#include "settings.h"
#include "test.h"
#include "work.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static work_kernels kernels;
static work_buffers buffers;
static rdm_stream stream;
static rdm_encoder encoder;
static rdm_event event;

static void set_up(void) {
  test_use_sim(2);
  CHECK_OK(work_load(0, &kernels));
  CHECK_OK(work_buffers_allocate(kernels.device, &buffers));
  CHECK_OK(rdm_stream_create(0, &stream));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
  CHECK_OK(rdm_event_create(kernels.device, RDM_EVENT_DEFAULT, &event));
}

/* Work that does not end until the device is let go, and an event behind it. */
static void submit_held_work(void) {
  CHECK_OK(rdm_sim_hold(0, 1));
  CHECK_OK(work_submit(encoder, &kernels, &buffers));
  CHECK_OK(rdm_encoder_record_event(encoder, event));
}

static uint64_t process_cpu_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return (uint64_t)time.tv_sec * TEST_SECOND + (uint64_t)time.tv_nsec;
}

/* ---- What the environment sets ---------------------------------------------------------------------------------- */

/* Prints what the process made of the variables, and how many lines it wrote about each. */
static int print_settings(void) {
  log_lines_capture();
  for (int i = 0; i < 3; i++) {
    rdm__watchdog_ns();
    rdm__waits_block();
  }
  printf("%llu %d %u %u", (unsigned long long)rdm__watchdog_ns(), rdm__waits_block(),
         log_lines_with("RDM_WATCHDOG_SECS"), log_lines_with("RDM_EVENT_BLOCKING"));
  return 0;
}

static void check_settings(const char *variable, const char *expected) {
  const char *environment[] = {"RDM_WATCHDOG_SECS", "RDM_EVENT_BLOCKING", variable, NULL};
  process_outcome outcome;
  test_run_body("print_settings", environment, 20, &outcome);
  CHECK_THAT(outcome.exit_code == 0 && strcmp(outcome.standard_output, expected) == 0,
             "%s: \"%s\", expected \"%s\"; %s", variable, outcome.standard_output, expected, outcome.standard_error);
}

#define NEVER "18446744073709551615"

static void the_watchdog_takes_whole_seconds_and_nothing_else(void) {
  check_settings("RDM_WATCHDOG_SECS", NEVER " 0 0 0");
  check_settings("RDM_WATCHDOG_SECS=0", NEVER " 0 0 0");
  check_settings("RDM_WATCHDOG_SECS=1", "1000000000 0 0 0");
  check_settings("RDM_WATCHDOG_SECS=-1", NEVER " 0 1 0");
  check_settings("RDM_WATCHDOG_SECS=1e3", NEVER " 0 1 0");
  check_settings("RDM_WATCHDOG_SECS=", NEVER " 0 1 0");
  check_settings("RDM_WATCHDOG_SECS=8abc", NEVER " 0 1 0");
  check_settings("RDM_WATCHDOG_SECS=2147483648", "2147483648000000000 0 0 0");
  check_settings("RDM_WATCHDOG_SECS=18446744073709551616", NEVER " 0 1 0");
  check_settings("RDM_WATCHDOG_SECS= 1", NEVER " 0 1 0");
  check_settings("RDM_WATCHDOG_SECS=+1", NEVER " 0 1 0");
  /* Longer than the clock counts: it never comes. */
  check_settings("RDM_WATCHDOG_SECS=18446744073709551615", NEVER " 0 0 0");
}

static void event_blocking_takes_0_and_1_and_nothing_else(void) {
  check_settings("RDM_EVENT_BLOCKING", NEVER " 0 0 0");
  check_settings("RDM_EVENT_BLOCKING=0", NEVER " 0 0 0");
  check_settings("RDM_EVENT_BLOCKING=1", NEVER " 1 0 0");
  check_settings("RDM_EVENT_BLOCKING=-1", NEVER " 0 0 1");
  check_settings("RDM_EVENT_BLOCKING=1e3", NEVER " 0 0 1");
  check_settings("RDM_EVENT_BLOCKING=", NEVER " 0 0 1");
  check_settings("RDM_EVENT_BLOCKING=8abc", NEVER " 0 0 1");
  check_settings("RDM_EVENT_BLOCKING=2147483648", NEVER " 0 0 1");
  check_settings("RDM_EVENT_BLOCKING=18446744073709551616", NEVER " 0 0 1");
  check_settings("RDM_EVENT_BLOCKING=2", NEVER " 0 0 1");
}

/* ---- Deadlines --------------------------------------------------------------------------------------------------- */

typedef rdm_status (*waiting_function)(uint64_t timeout_ns);

static rdm_status wait_for_event(uint64_t timeout_ns) {
  return rdm_event_wait(event, timeout_ns);
}

static rdm_status wait_for_stream(uint64_t timeout_ns) {
  return rdm_stream_synchronize(stream, timeout_ns);
}

static rdm_status wait_for_device(uint64_t timeout_ns) {
  return rdm_device_synchronize(kernels.device, timeout_ns);
}

static const waiting_function waits[] = {wait_for_event, wait_for_stream, wait_for_device};
enum { WAITS = sizeof waits / sizeof waits[0] };

static void check_ends(waiting_function wait, uint64_t timeout_ns, uint64_t expected_ns, rdm_status expected) {
  uint64_t start = test_now_ns();
  CHECK_STATUS(wait(timeout_ns), expected);
  uint64_t took_ns = test_now_ns() - start;
  CHECK_THAT(took_ns >= expected_ns && took_ns < expected_ns + 200 * TEST_MILLISECOND * TEST_SLOWDOWN,
             "a wait of %.2f s took %.3f s", (double)expected_ns * 1e-9, (double)took_ns * 1e-9);
}

static void check_nothing_is_poisoned(void) {
  rdm_device_info info = {.struct_size = sizeof info};
  CHECK_OK(rdm_device_get_info(kernels.device, &info));
  CHECK(info.faulted == 0);
  CHECK_OK(rdm_sim_hold(0, 0));
  for (int i = 0; i < WAITS; i++) CHECK_OK(waits[i](RDM_WAIT_FOREVER));
  CHECK(work_count_wrong(&buffers) == 0);
  CHECK_OK(work_on_new_stream(0, 1));
}

static void each_wait_ends_at_its_deadline_and_is_taken_up_again(void) {
  set_up();
  for (int round = 0; round < 2; round++) {
    submit_held_work();
    for (int i = 0; i < WAITS; i++) {
      check_ends(waits[i], 0, 0, RDM_ERROR_TIMEOUT);
      check_ends(waits[i], 100 * TEST_MILLISECOND, 100 * TEST_MILLISECOND, RDM_ERROR_TIMEOUT);
    }
    check_nothing_is_poisoned();
  }
}

static void the_watchdog_ends_each_wait_for_a_kernel_that_never_ends(void) {
  setenv("RDM_WATCHDOG_SECS", "1", 1);
  set_up();
  submit_held_work();
  for (int i = 0; i < WAITS; i++) {
    check_ends(waits[i], RDM_WAIT_FOREVER, TEST_SECOND, RDM_ERROR_WATCHDOG);
    CHECK(strstr(rdm_last_error_message(), "RDM_WATCHDOG_SECS") != NULL);
    check_ends(waits[i], 10 * TEST_MILLISECOND, 10 * TEST_MILLISECOND, RDM_ERROR_TIMEOUT);
  }
  check_nothing_is_poisoned();
}

static void *submit_and_stand_still(void *argument) {
  (void)argument;
  CHECK_OK(work_submit_step(encoder, &kernels, buffers.first, 1));
  return NULL;
}

/* As on a queue that is full behind a kernel that never ends: the launch stays in the driver, with the queue's lock. */
static void a_wait_ends_in_time_while_another_thread_stands_in_the_driver(void) {
  set_up();
  CHECK_OK(rdm_sim_inject("hipModuleLaunchKernel", 1, 1, 0, TEST_SECOND));
  pthread_t submitter = test_start_thread(submit_and_stand_still, NULL);
  calls_wait_until_inside("hipModuleLaunchKernel", 5 * TEST_SECOND);
  check_ends(wait_for_stream, 50 * TEST_MILLISECOND, 50 * TEST_MILLISECOND, RDM_ERROR_TIMEOUT);
  check_ends(wait_for_device, 50 * TEST_MILLISECOND, 50 * TEST_MILLISECOND, RDM_ERROR_TIMEOUT);
  CHECK_OK(wait_for_stream(RDM_WAIT_FOREVER));
  test_join_thread(submitter);
  CHECK_OK(work_on_new_stream(0, 1));
}

static void *wait_through_a_fault(void *argument) {
  (void)argument;
  CHECK_STATUS(wait_for_stream(RDM_WAIT_FOREVER), RDM_ERROR_DEVICE_FAULT);
  return NULL;
}

static void a_fault_ends_the_wait_for_a_thread_that_stands_in_the_driver(void) {
  set_up();
  rdm_stream other;
  rdm_encoder other_encoder;
  CHECK_OK(rdm_stream_create(0, &other));
  CHECK_OK(rdm_encoder_get(other, &other_encoder));
  CHECK_OK(rdm_sim_inject("hipModuleLaunchKernel", 1, 1, 0, 2 * TEST_SECOND));
  pthread_t submitter = test_start_thread(submit_and_stand_still, NULL);
  calls_wait_until_inside("hipModuleLaunchKernel", 5 * TEST_SECOND);
  pthread_t waiter = test_start_thread(wait_through_a_fault, NULL);
  test_sleep_ns(10 * TEST_MILLISECOND);
  CHECK_OK(rdm_sim_inject("hipMemsetAsync", 1, 1, 700, 0));
  uint64_t start = test_now_ns();
  CHECK_STATUS(rdm_encoder_fill(other_encoder, buffers.second, 0, 4), RDM_ERROR_DEVICE_FAULT);
  test_join_thread(waiter);
  CHECK_THAT(test_now_ns() - start < TEST_SECOND, "the wait outlasted the fault");
  test_join_thread(submitter);
}

static const rdm_module_source slow_source = {
    .struct_size = sizeof slow_source, .name = "slow", .source = "extern \"C\" __global__ void slow(int *out) {}\n"};
static rdm_device devices[2];

static void *build_slowly(void *argument) {
  rdm_module module;
  CHECK_OK(rdm_module_get(devices[*(int *)argument], &slow_source, &module));
  return NULL;
}

static rdm_status wait_for_module(int device, uint64_t timeout_ns) {
  rdm_module module;
  return rdm_module_get_within(devices[device], &slow_source, timeout_ns, &module);
}

static rdm_status wait_for_module_of_device_0(uint64_t timeout_ns) {
  return wait_for_module(0, timeout_ns);
}

/* It has the code of the other device's build to wait for. */
static rdm_status wait_for_module_of_device_1(uint64_t timeout_ns) {
  return wait_for_module(1, timeout_ns);
}

static void start_slow_build(const char *entry_point, uint64_t stall_ns, pthread_t *out_thread) {
  static int device = 0;
  set_up();
  for (int i = 0; i < 2; i++) CHECK_OK(rdm_device_get(i, &devices[i]));
  CHECK_OK(rdm_sim_inject(entry_point, 1, 1, 0, stall_ns));
  *out_thread = test_start_thread(build_slowly, &device);
  calls_wait_until_inside(entry_point, 5 * TEST_SECOND);
}

static void end_slow_build(pthread_t thread) {
  uint64_t compiled = 0;
  CHECK_OK(wait_for_module(0, RDM_WAIT_FOREVER));
  CHECK_OK(wait_for_module(1, RDM_WAIT_FOREVER));
  CHECK_OK(wait_for_module(0, 0));
  test_join_thread(thread);
  CHECK_OK(rdm_module_compile_count(&compiled));
  /* That of the set-up, and this one. */
  CHECK_THAT(compiled == 2, "%llu compiles", (unsigned long long)compiled);
}

static void a_wait_for_another_threads_compile_has_a_deadline(void) {
  pthread_t thread;
  start_slow_build("hiprtcCompileProgram", TEST_SECOND, &thread);
  check_ends(wait_for_module_of_device_0, 50 * TEST_MILLISECOND, 50 * TEST_MILLISECOND, RDM_ERROR_TIMEOUT);
  check_ends(wait_for_module_of_device_1, 50 * TEST_MILLISECOND, 50 * TEST_MILLISECOND, RDM_ERROR_TIMEOUT);
  check_ends(wait_for_module_of_device_0, 0, 0, RDM_ERROR_TIMEOUT);
  end_slow_build(thread);
}

static void a_wait_for_another_threads_load_has_a_deadline(void) {
  pthread_t thread;
  start_slow_build("hipModuleLoadData", TEST_SECOND, &thread);
  check_ends(wait_for_module_of_device_0, 50 * TEST_MILLISECOND, 50 * TEST_MILLISECOND, RDM_ERROR_TIMEOUT);
  /* Its own load is of another device, and is not held up. */
  CHECK_OK(wait_for_module(1, 50 * TEST_MILLISECOND));
  end_slow_build(thread);
}

static void the_watchdog_ends_a_wait_for_another_threads_compile(void) {
  pthread_t thread;
  setenv("RDM_WATCHDOG_SECS", "1", 1);
  start_slow_build("hiprtcCompileProgram", 2 * TEST_SECOND, &thread);
  check_ends(wait_for_module_of_device_0, RDM_WAIT_FOREVER, TEST_SECOND, RDM_ERROR_WATCHDOG);
  CHECK(strstr(rdm_last_error_message(), "RDM_WATCHDOG_SECS") != NULL);
  test_join_thread(thread);
  CHECK_OK(wait_for_module(1, RDM_WAIT_FOREVER));
}

/* ---- A device that another thread constructs, and code that it compiles -------------------------------------------
 */

static void *first_use_of_device_1(void *argument) {
  rdm_device device;
  (void)argument;
  CHECK_OK(rdm_device_get(1, &device));
  return NULL;
}

static rdm_status wait_for_device_1(uint64_t timeout_ns) {
  rdm_device device = {5};
  rdm_status status = rdm_device_get_within(1, timeout_ns, &device);
  CHECK((status == RDM_OK) != (device.bits == 5));
  return status;
}

static rdm_status wait_for_device_1_without_a_deadline(uint64_t timeout_ns) {
  rdm_device device;
  (void)timeout_ns;
  return rdm_device_get(1, &device);
}

static rdm_status wait_for_a_stream_of_device_1(uint64_t timeout_ns) {
  rdm_stream made;
  (void)timeout_ns;
  return rdm_stream_create(1, &made);
}

static pthread_t start_slow_construction(uint64_t stall_ns) {
  set_up();
  CHECK_OK(rdm_sim_inject("hipGetDeviceProperties", 1, 1, 0, stall_ns));
  pthread_t thread = test_start_thread(first_use_of_device_1, NULL);
  calls_wait_until_inside("hipGetDeviceProperties", 5 * TEST_SECOND);
  return thread;
}

static void a_wait_for_another_threads_first_use_of_a_device_has_a_deadline(void) {
  uint64_t constructed = 0;
  pthread_t thread = start_slow_construction(TEST_SECOND);
  check_ends(wait_for_device_1, 0, 0, RDM_ERROR_TIMEOUT);
  check_ends(wait_for_device_1, 50 * TEST_MILLISECOND, 50 * TEST_MILLISECOND, RDM_ERROR_TIMEOUT);
  CHECK_THAT(strstr(rdm_last_error_message(), "first use of the device on device 1") != NULL, "%s",
             rdm_last_error_message());
  /* The other device is nobody's concern. */
  rdm_device device;
  CHECK_OK(rdm_device_get_within(0, 0, &device));
  CHECK_OK(wait_for_device_1(RDM_WAIT_FOREVER));
  CHECK_OK(wait_for_device_1(0));
  test_join_thread(thread);
  CHECK_OK(rdm_device_construction_count(1, &constructed));
  CHECK(constructed == 1);
  CHECK_STATUS(rdm_device_get_within(7, 0, &device), RDM_ERROR_INVALID_DEVICE);
  CHECK_STATUS(rdm_device_get_within(1, 0, NULL), RDM_ERROR_INVALID_ARGUMENT);
}

/* What nobody else constructs is constructed, whatever the deadline. */
static void a_first_use_of_ones_own_has_no_deadline(void) {
  set_up();
  CHECK_OK(rdm_sim_inject("hipGetDeviceProperties", 1, 1, 0, 100 * TEST_MILLISECOND));
  check_ends(wait_for_device_1, 0, 0, RDM_OK);
}

static void the_watchdog_ends_each_wait_for_another_threads_first_use(void) {
  setenv("RDM_WATCHDOG_SECS", "1", 1);
  static const waiting_function constructing[] = {wait_for_device_1, wait_for_device_1_without_a_deadline,
                                                  wait_for_a_stream_of_device_1};
  pthread_t thread = start_slow_construction(5 * TEST_SECOND);
  for (int i = 0; i < 3; i++) {
    check_ends(constructing[i], RDM_WAIT_FOREVER, TEST_SECOND, RDM_ERROR_WATCHDOG);
    CHECK(strstr(rdm_last_error_message(), "RDM_WATCHDOG_SECS") != NULL);
  }
  test_join_thread(thread);
  CHECK_OK(wait_for_device_1(0));
}

static void *compile_slowly(void *argument) {
  const void *code = NULL;
  size_t size = 0;
  (void)argument;
  CHECK_OK(rdm_code_get("sim", &slow_source, &code, &size));
  return NULL;
}

static rdm_status wait_for_code(uint64_t timeout_ns) {
  const void *code = NULL;
  size_t size = 0;
  rdm_status status = rdm_code_get_within("sim", &slow_source, timeout_ns, &code, &size);
  CHECK((status == RDM_OK) == (code != NULL && size > 0));
  return status;
}

static rdm_status wait_for_code_without_a_deadline(uint64_t timeout_ns) {
  const void *code = NULL;
  size_t size = 0;
  (void)timeout_ns;
  return rdm_code_get("sim", &slow_source, &code, &size);
}

static pthread_t start_slow_compile(uint64_t stall_ns) {
  set_up();
  CHECK_OK(rdm_sim_inject("hiprtcCompileProgram", 1, 1, 0, stall_ns));
  pthread_t thread = test_start_thread(compile_slowly, NULL);
  calls_wait_until_inside("hiprtcCompileProgram", 5 * TEST_SECOND);
  return thread;
}

static void a_wait_for_code_that_another_thread_compiles_has_a_deadline(void) {
  uint64_t compiled = 0;
  pthread_t thread = start_slow_compile(TEST_SECOND);
  check_ends(wait_for_code, 0, 0, RDM_ERROR_TIMEOUT);
  check_ends(wait_for_code, 50 * TEST_MILLISECOND, 50 * TEST_MILLISECOND, RDM_ERROR_TIMEOUT);
  CHECK_THAT(strstr(rdm_last_error_message(), "another thread's compile of a source reached its deadline") != NULL,
             "%s", rdm_last_error_message());
  CHECK_OK(wait_for_code(RDM_WAIT_FOREVER));
  CHECK_OK(wait_for_code(0));
  test_join_thread(thread);
  CHECK_OK(rdm_module_compile_count(&compiled));
  CHECK_THAT(compiled == 2, "%llu compiles", (unsigned long long)compiled);
}

static void the_watchdog_ends_a_wait_for_code_that_another_thread_compiles(void) {
  setenv("RDM_WATCHDOG_SECS", "1", 1);
  pthread_t thread = start_slow_compile(4 * TEST_SECOND);
  check_ends(wait_for_code, RDM_WAIT_FOREVER, TEST_SECOND, RDM_ERROR_WATCHDOG);
  check_ends(wait_for_code_without_a_deadline, 0, TEST_SECOND, RDM_ERROR_WATCHDOG);
  CHECK(strstr(rdm_last_error_message(), "RDM_WATCHDOG_SECS") != NULL);
  test_join_thread(thread);
  CHECK_OK(wait_for_code(0));
}

/* ---- Sleeping ---------------------------------------------------------------------------------------------------- */

static void ignore_status(rdm_status status, void *user_data) {
  (void)status;
  (void)user_data;
}

static void check_sleeps(void) {
  set_up();
  submit_held_work();
  CHECK_OK(rdm_encoder_add_completion_handler(encoder, ignore_status, NULL));
  for (int i = 0; i < WAITS; i++) {
    uint64_t cpu = process_cpu_ns();
    check_ends(waits[i], TEST_SECOND, TEST_SECOND, RDM_ERROR_TIMEOUT);
    cpu = process_cpu_ns() - cpu;
    CHECK_THAT(cpu < TEST_SECOND / 10 * (TEST_SLOWDOWN == 1 ? 1 : 4), "a second's wait took %.3f s of processor time",
               (double)cpu * 1e-9);
  }
  check_nothing_is_poisoned();
}

static void waits_with_event_blocking_burn_less_than_a_tenth_of_a_core(void) {
  setenv("RDM_EVENT_BLOCKING", "1", 1);
  check_sleeps();
}

static void long_waits_burn_less_than_a_tenth_of_a_core_anyway(void) {
  check_sleeps();
}

int main(int argc, char **argv) {
  static const test_case tests[] = {
      {.name = "the_watchdog_takes_whole_seconds_and_nothing_else",
       .function = the_watchdog_takes_whole_seconds_and_nothing_else},
      {.name = "event_blocking_takes_0_and_1_and_nothing_else",
       .function = event_blocking_takes_0_and_1_and_nothing_else},
      {.name = "each_wait_ends_at_its_deadline_and_is_taken_up_again",
       .function = each_wait_ends_at_its_deadline_and_is_taken_up_again},
      {.name = "the_watchdog_ends_each_wait_for_a_kernel_that_never_ends",
       .function = the_watchdog_ends_each_wait_for_a_kernel_that_never_ends},
      {.name = "a_wait_ends_in_time_while_another_thread_stands_in_the_driver",
       .function = a_wait_ends_in_time_while_another_thread_stands_in_the_driver},
      {.name = "a_fault_ends_the_wait_for_a_thread_that_stands_in_the_driver",
       .function = a_fault_ends_the_wait_for_a_thread_that_stands_in_the_driver},
      {.name = "a_wait_for_another_threads_compile_has_a_deadline",
       .function = a_wait_for_another_threads_compile_has_a_deadline},
      {.name = "a_wait_for_another_threads_load_has_a_deadline",
       .function = a_wait_for_another_threads_load_has_a_deadline},
      {.name = "the_watchdog_ends_a_wait_for_another_threads_compile",
       .function = the_watchdog_ends_a_wait_for_another_threads_compile},
      {.name = "a_wait_for_another_threads_first_use_of_a_device_has_a_deadline",
       .function = a_wait_for_another_threads_first_use_of_a_device_has_a_deadline},
      {.name = "a_first_use_of_ones_own_has_no_deadline", .function = a_first_use_of_ones_own_has_no_deadline},
      {.name = "the_watchdog_ends_each_wait_for_another_threads_first_use",
       .function = the_watchdog_ends_each_wait_for_another_threads_first_use},
      {.name = "a_wait_for_code_that_another_thread_compiles_has_a_deadline",
       .function = a_wait_for_code_that_another_thread_compiles_has_a_deadline},
      {.name = "the_watchdog_ends_a_wait_for_code_that_another_thread_compiles",
       .function = the_watchdog_ends_a_wait_for_code_that_another_thread_compiles},
      {.name = "waits_with_event_blocking_burn_less_than_a_tenth_of_a_core",
       .function = waits_with_event_blocking_burn_less_than_a_tenth_of_a_core},
      {.name = "long_waits_burn_less_than_a_tenth_of_a_core_anyway",
       .function = long_waits_burn_less_than_a_tenth_of_a_core_anyway},
      {0},
  };
  static const test_body bodies[] = {{"print_settings", print_settings}, {0}};
  static const test_case *const groups[] = {tests, NULL};
  static const test_body *const all_bodies[] = {bodies, NULL};
  return test_main(argc, argv, groups, all_bodies);
}
