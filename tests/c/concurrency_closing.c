/* The process ends while calls are half way: one that waited goes no further, and each is told why. */
#include "calls.h"
#include "concurrency.h"
#include "work.h"

/* The log is read from behind the library's own functions, which are closed by then. */
#include "driver/sim/call_log.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { EXIT_CODE = 3 };

/* Ends the process as a failed one, from inside its exit. */
static void fail_late(const char *what, rdm_status status) {
  fprintf(stderr, "after exit began: %s (%s)\n", what, rdm_status_name(status));
  _exit(99);
}

static void check_exits(const char *body, int times) {
  process_outcome *outcome = malloc(sizeof *outcome);
  CHECK(outcome != NULL);
  for (int i = 0; i < times; i++) {
    test_run_body(body, NULL, 20, outcome);
    CHECK_THAT(!outcome->timed_out, "%s, run %d, did not end", body, i);
    CHECK_THAT(outcome->signal == 0, "%s, run %d, was ended by signal %d: %s", body, i, outcome->signal,
               outcome->standard_error);
    CHECK_THAT(outcome->exit_code == EXIT_CODE, "%s, run %d, exited with %d: %s", body, i, outcome->exit_code,
               outcome->standard_error);
  }
  free(outcome);
}

/* ---- A call that waited for a lock across the start of the exit ------------------------------------------------- */

static const uint64_t stall_ns = 300 * TEST_MILLISECOND;

static rdm_stream stream;
static rdm_encoder encoder;
static rdm_event event;
static work_kernels kernels;
static float *memory;

/* What is called on the second thread, and what it came to. */
typedef struct second_call {
  rdm_status (*function)(void);
  /* It may also succeed, having done what needs no driver. */
  bool may_succeed;
  _Atomic rdm_status status;
  atomic_bool is_back;
} second_call;

static second_call second;

static void *stand_still(void *argument) {
  (void)argument;
  rdm_encoder_fill(encoder, memory, 1, 64);
  return NULL;
}

static void *make_second_call(void *argument) {
  (void)argument;
  second.status = second.function();
  second.is_back = true;
  return NULL;
}

/* Registered before the library's first use, so it runs after the library's own exit handler, as the destructor of a
 * static object of the program would. */
static void check_second_call(void) {
  uint64_t before = rdm__sim_call_log_count(RDM__CALL_COUNT);
  if (second.is_back) fail_late("the second call did not wait", second.status);
  uint64_t end = test_now_ns() + 10 * TEST_SECOND;
  while (!second.is_back && test_now_ns() < end) test_sleep_ns(TEST_MILLISECOND);
  if (!second.is_back) fail_late("the second call is not back", RDM_OK);
  if (rdm__sim_call_log_count(RDM__CALL_COUNT) != before)
    fail_late("the second call entered the driver", second.status);
  bool expected = second.status == RDM_ERROR_SHUTTING_DOWN || (second.may_succeed && second.status == RDM_OK);
  if (!expected) fail_late("the second call went on", second.status);
}

static int exit_across(rdm_status (*function)(void), bool may_succeed) {
  CHECK(atexit(check_second_call) == 0);
  test_use_sim(1);
  second.function = function;
  second.may_succeed = may_succeed;
  CHECK_OK(work_load(0, &kernels));
  void *allocated = NULL;
  CHECK_OK(rdm_memory_allocate(kernels.device, 64, &allocated));
  memory = allocated;
  CHECK_OK(rdm_event_create(kernels.device, RDM_EVENT_DEFAULT, &event));
  CHECK_OK(rdm_stream_create(0, &stream));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
  CHECK_OK(rdm_encoder_record_event(encoder, event));
  CHECK_OK(rdm_stream_synchronize(stream, 10 * TEST_SECOND));
  CHECK_OK(rdm_sim_inject("hipMemsetAsync", 1, 1, 0, stall_ns));
  pthread_detach(test_start_thread(stand_still, NULL));
  calls_wait_until_inside("hipMemsetAsync", 10 * TEST_SECOND);
  pthread_detach(test_start_thread(make_second_call, NULL));
  test_sleep_ns(50 * TEST_MILLISECOND);
  return EXIT_CODE;
}

static rdm_status fill(void) {
  return rdm_encoder_fill(encoder, memory, 2, 64);
}

static rdm_status launch(void) {
  return work_submit_step(encoder, &kernels, memory, 1);
}

static rdm_status record_event(void) {
  return rdm_encoder_record_event(encoder, event);
}

static rdm_status wait_event(void) {
  return rdm_encoder_wait_event(encoder, event);
}

static void ignore(rdm_status status, void *user_data) {
  (void)status;
  (void)user_data;
}

static rdm_status add_handler_and_commit(void) {
  rdm_status status = rdm_encoder_add_completion_handler(encoder, ignore, NULL);
  return status == RDM_OK ? rdm_encoder_commit(encoder) : status;
}

static rdm_status synchronize(void) {
  return rdm_stream_synchronize(stream, RDM_WAIT_FOREVER);
}

static int exit_across_a_fill(void) {
  return exit_across(fill, false);
}

static int exit_across_a_launch(void) {
  return exit_across(launch, false);
}

static int exit_across_a_record(void) {
  return exit_across(record_event, false);
}

static int exit_across_a_wait_for_an_event(void) {
  return exit_across(wait_event, false);
}

static int exit_across_a_commit(void) {
  return exit_across(add_handler_and_commit, true);
}

static int exit_across_a_synchronize(void) {
  return exit_across(synchronize, false);
}

static void a_submission_that_waited_until_the_exit_does_not_enter_the_driver(void) {
  check_exits("exit_across_a_fill", 1);
  check_exits("exit_across_a_launch", 1);
  check_exits("exit_across_a_record", 1);
  check_exits("exit_across_a_wait_for_an_event", 1);
}

static void a_commit_or_a_wait_that_waited_until_the_exit_does_not_enter_the_driver(void) {
  check_exits("exit_across_a_commit", 1);
  check_exits("exit_across_a_synchronize", 1);
}

/* ---- What calls are told --------------------------------------------------------------------------------------- */

enum { CALLERS = 6, STATUSES = 64 };

static atomic_ulong told[STATUSES];

static void note(rdm_status status) {
  told[status >= 0 && status < STATUSES ? status : STATUSES - 1]++;
}

static void *ask_for_devices(void *argument) {
  int32_t index = (int32_t)(uintptr_t)argument % 2;
  for (;;) {
    rdm_device device;
    uint64_t count;
    int32_t device_count;
    note(rdm_device_get(index, &device));
    note(rdm_device_construction_count(index, &count));
    note(rdm_device_count(&device_count));
  }
  return NULL;
}

static void *ask_for_streams(void *argument) {
  int32_t index = (int32_t)(uintptr_t)argument % 2;
  for (;;) {
    rdm_stream made;
    rdm_thread_local_stream own;
    rdm_status status = rdm_stream_create(index, &made);
    note(status);
    if (status == RDM_OK) note(rdm_stream_release(made));
    status = rdm_thread_local_stream_create(index, &own);
    note(status);
    if (status == RDM_OK) note(rdm_thread_local_stream_release(own));
  }
  return NULL;
}

static void wait_until_told(rdm_status status) {
  uint64_t end = test_now_ns() + 10 * TEST_SECOND;
  while (told[status] == 0 && test_now_ns() < end) test_sleep_ns(TEST_MILLISECOND);
}

static void check_what_was_told(void) {
  /* On a busy machine the callers' turns may come late. */
  wait_until_told(RDM_ERROR_SHUTTING_DOWN);
  test_sleep_ns(30 * TEST_MILLISECOND);
  for (rdm_status i = 0; i < STATUSES; i++) {
    if (i != RDM_OK && i != RDM_ERROR_SHUTTING_DOWN && told[i] > 0) fail_late("a call was told", i);
  }
  if (told[RDM_OK] == 0 || told[RDM_ERROR_SHUTTING_DOWN] == 0) fail_late("nobody called", RDM_OK);
}

static int exit_while_threads_ask(void) {
  rdm_device device;
  CHECK(atexit(check_what_was_told) == 0);
  test_use_sim(2);
  CHECK_OK(rdm_device_get(0, &device));
  for (uintptr_t i = 0; i < CALLERS; i++) {
    pthread_detach(test_start_thread(i % 3 == 2 ? ask_for_streams : ask_for_devices, (void *)i));
  }
  wait_until_told(RDM_OK);
  test_sleep_ns(20 * TEST_MILLISECOND);
  return EXIT_CODE;
}

static void calls_that_meet_the_exit_are_told_of_it_and_of_nothing_else(void) {
  check_exits("exit_while_threads_ask", 25);
}

const test_body closing_bodies[] = {
    {"exit_across_a_fill", exit_across_a_fill},
    {"exit_across_a_launch", exit_across_a_launch},
    {"exit_across_a_record", exit_across_a_record},
    {"exit_across_a_wait_for_an_event", exit_across_a_wait_for_an_event},
    {"exit_across_a_commit", exit_across_a_commit},
    {"exit_across_a_synchronize", exit_across_a_synchronize},
    {"exit_while_threads_ask", exit_while_threads_ask},
    {0},
};

const test_case closing_tests[] = {
    {.name = "a_submission_that_waited_until_the_exit_does_not_enter_the_driver",
     .function = a_submission_that_waited_until_the_exit_does_not_enter_the_driver},
    {.name = "a_commit_or_a_wait_that_waited_until_the_exit_does_not_enter_the_driver",
     .function = a_commit_or_a_wait_that_waited_until_the_exit_does_not_enter_the_driver},
    {.name = "calls_that_meet_the_exit_are_told_of_it_and_of_nothing_else",
     .function = calls_that_meet_the_exit_are_told_of_it_and_of_nothing_else},
    {0},
};
