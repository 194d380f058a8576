/* The process ends while threads work: no driver call after that, nothing blocks, and the exit code is kept. */
#include "calls.h"
#include "concurrency.h"
#include "work.h"

/* The log is read from behind the library's own functions, which are closed by then. */
#include "driver/sim/call_log.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 8 };

static atomic_uint working_threads;

/* How many threads of the program are in calls of the hot paths as the exit begins: each may make one driver call more.
 */
static unsigned threads_in_submissions;

/* Ends the process as a failed one, from inside its exit. */
static void fail_late(const char *text) {
  fprintf(stderr, "after exit began: %s\n", text);
  _exit(99);
}

static uint64_t driver_calls(void) {
  return rdm__sim_call_log_count(RDM__CALL_COUNT);
}

/* Registered before the library's first use, so it runs after the library's own exit handler. */
static void check_closed(void) {
  uint64_t before = driver_calls();
  int32_t count = 0;
  rdm_stream stream = {1};
  uint64_t start = test_now_ns();
  if (rdm_device_count(&count) != RDM_ERROR_SHUTTING_DOWN) fail_late("the library is still open");
  if (rdm_stream_create(0, &stream) != RDM_ERROR_SHUTTING_DOWN) fail_late("a stream was created");
  if (rdm_stream_release(stream) != RDM_OK) fail_late("a release failed");
  if (rdm_event_release((rdm_event){7}) != RDM_OK) fail_late("an event's release failed");
  if (rdm_memory_free((rdm_device){7}, &count) != RDM_OK) fail_late("a free failed");
  if (rdm_version() != RDM_VERSION) fail_late("no version");
  if (test_now_ns() - start > TEST_SECOND / 5) fail_late("calls took long");
  test_sleep_ns(150 * TEST_MILLISECOND);
  uint64_t late = driver_calls() - before;
  if (late > threads_in_submissions) {
    fprintf(stderr, "%llu calls by %u threads: ", (unsigned long long)late, threads_in_submissions);
    fail_late("the driver was called");
  }
}

/* Owns a stream, an encoder, events, thread-local streams and a default stream, and works until it is told the end. */
static void *work_until_the_end(void *argument) {
  int32_t device_index = (int32_t)(uintptr_t)argument % 2;
  rdm_thread_local_stream shared;
  rdm_stream own;
  rdm_stream created;
  rdm_event event;
  work_kernels kernels;
  work_buffers buffers;
  CHECK_OK(work_load(device_index, &kernels));
  CHECK_OK(work_buffers_allocate(kernels.device, &buffers));
  CHECK_OK(rdm_thread_local_stream_get_shared(device_index, &shared));
  CHECK_OK(rdm_thread_local_stream_resolve(shared, &own));
  CHECK_OK(rdm_default_stream_set(own));
  CHECK_OK(rdm_stream_create(device_index, &created));
  CHECK_OK(rdm_event_create(kernels.device, RDM_EVENT_DEFAULT, &event));
  rdm_status status = RDM_OK;
  for (bool first = true; status == RDM_OK; first = false) {
    uint32_t wrong = 0;
    rdm_encoder encoder;
    status = work_evaluate(own, &kernels, &buffers, &wrong);
    if (status == RDM_OK) status = rdm_encoder_get(created, &encoder);
    if (status == RDM_OK) status = rdm_encoder_record_event(encoder, event);
    if (status == RDM_OK) status = rdm_event_wait(event, RDM_WAIT_FOREVER);
    if (first) working_threads++;
  }
  CHECK_STATUS(status, RDM_ERROR_SHUTTING_DOWN);
  if (rdm_event_release(event) != RDM_OK) fail_late("a thread's release failed");
  /* Half of the threads end now, with what they own; the others go on calling. */
  if ((uintptr_t)argument % 4 < 2) return NULL;
  for (;;) {
    if (rdm_event_query(event) != RDM_ERROR_SHUTTING_DOWN) fail_late("a call was let in");
    test_sleep_ns(TEST_MILLISECOND);
  }
}

static void start_detached(void *(*function)(void *), uintptr_t argument) {
  pthread_detach(test_start_thread(function, (void *)argument));
}

static void start_workers(void) {
  CHECK(atexit(check_closed) == 0);
  test_use_sim(2);
  threads_in_submissions = THREADS;
  for (uintptr_t i = 0; i < THREADS; i++) start_detached(work_until_the_end, i);
  while (working_threads < THREADS) test_sleep_ns(TEST_MILLISECOND);
}

static int return_from_main(void) {
  start_workers();
  return 7;
}

static int call_exit(void) {
  start_workers();
  exit(3);
}

static void *exit_from_a_thread(void *argument) {
  (void)argument;
  exit(5);
}

static int exit_on_another_thread(void) {
  start_workers();
  test_join_thread(test_start_thread(exit_from_a_thread, NULL));
  return 0;
}

static void *wait_for_ever(void *argument) {
  rdm_stream stream;
  rdm_encoder encoder;
  (void)argument;
  CHECK_OK(rdm_stream_create(0, &stream));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
  work_kernels kernels;
  work_buffers buffers;
  CHECK_OK(work_load(0, &kernels));
  CHECK_OK(work_buffers_allocate(kernels.device, &buffers));
  CHECK_OK(rdm_sim_hold(0, 1));
  CHECK_OK(work_submit(encoder, &kernels, &buffers));
  working_threads++;
  rdm_status status = rdm_stream_synchronize(stream, RDM_WAIT_FOREVER);
  if (status != RDM_ERROR_SHUTTING_DOWN) fail_late("a wait ended otherwise than by the exit");
  return NULL;
}

static void handler_that_must_not_run(rdm_status status, void *user_data) {
  (void)status;
  (void)user_data;
  fail_late("a completion handler ran");
}

/* A device that never answers, a thread that waits for it, and a handler that is still to run. */
static int exit_under_a_wait(void) {
  rdm_stream stream;
  rdm_encoder encoder;
  CHECK(atexit(check_closed) == 0);
  test_use_sim(2);
  threads_in_submissions = 1;
  start_detached(wait_for_ever, 0);
  while (working_threads < 1) test_sleep_ns(TEST_MILLISECOND);
  CHECK_OK(rdm_stream_create(0, &stream));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
  CHECK_OK(rdm_encoder_add_completion_handler(encoder, handler_that_must_not_run, NULL));
  CHECK_OK(rdm_encoder_commit(encoder));
  test_sleep_ns(20 * TEST_MILLISECOND);
  return 4;
}

static void *stand_still_in_the_driver(void *argument) {
  rdm_stream stream;
  (void)argument;
  rdm_encoder encoder;
  CHECK_OK(rdm_stream_create(0, &stream));
  rdm_encoder_get(stream, &encoder);
  return NULL;
}

static int exit_while_a_driver_call_stands_still(void) {
  CHECK(atexit(check_closed) == 0);
  test_use_sim(1);
  CHECK_OK(rdm_sim_inject("hipStreamCreateWithFlags", 1, 1, 0, 600 * TEST_SECOND));
  start_detached(stand_still_in_the_driver, 0);
  calls_wait_until_inside("hipStreamCreateWithFlags", 5 * TEST_SECOND);
  return 6;
}

static rdm_stream kept_stream;
static rdm_event kept_event;

/* Registered after the library's first use, so it runs before the library's own exit handler. */
static void release_early(void) {
  if (rdm_stream_release(kept_stream) != RDM_OK) fail_late("an early release failed");
  if (rdm_stream_release(kept_stream) != RDM_ERROR_STALE_HANDLE) fail_late("an early second release gave no error");
  if (rdm_event_release(kept_event) != RDM_OK) fail_late("an early release of an event failed");
}

/* Registered before it, as a static object's destructor would be. */
static void release_late(void) {
  uint64_t before = driver_calls();
  if (rdm_stream_release(kept_stream) != RDM_OK) fail_late("a late release failed");
  if (rdm_event_release(kept_event) != RDM_OK) fail_late("a late release of an event failed");
  if (driver_calls() != before) fail_late("a late release called the driver");
}

static int release_around_the_exit(void) {
  rdm_device device;
  CHECK(atexit(check_closed) == 0 && atexit(release_late) == 0);
  test_use_sim(1);
  CHECK_OK(rdm_device_get(0, &device));
  CHECK_OK(rdm_stream_create(0, &kept_stream));
  CHECK_OK(rdm_event_create(device, RDM_EVENT_DEFAULT, &kept_event));
  CHECK_OK(work_on_new_stream(0, 1));
  CHECK(atexit(release_early) == 0);
  return 8;
}

static void check_exits(const char *body, int expected_code, int times) {
  process_outcome *outcome = malloc(sizeof *outcome);
  CHECK(outcome != NULL);
  for (int i = 0; i < times; i++) {
    test_run_body(body, NULL, 20, outcome);
    CHECK_THAT(!outcome->timed_out, "run %d did not end", i);
    CHECK_THAT(outcome->signal == 0, "run %d was ended by signal %d: %s", i, outcome->signal, outcome->standard_error);
    CHECK_THAT(outcome->exit_code == expected_code, "run %d exited with %d, expected %d: %s", i, outcome->exit_code,
               expected_code, outcome->standard_error);
    CHECK_THAT(test_only_bound_lines(outcome->standard_error), "run %d wrote: %s", i, outcome->standard_error);
    CHECK_THAT(outcome->seconds < 3 * TEST_SLOWDOWN, "run %d took %.1f s", i, outcome->seconds);
  }
  free(outcome);
}

static void field_log_18_main_returns_while_detached_threads_own_streams(void) {
  check_exits("return_from_main", 7, 10);
}

static void field_log_19_exit_is_called_while_threads_work(void) {
  check_exits("call_exit", 3, 5);
}

static void exit_is_called_on_another_thread(void) {
  check_exits("exit_on_another_thread", 5, 5);
}

static void exit_does_not_wait_for_a_device_that_never_answers(void) {
  check_exits("exit_under_a_wait", 4, 3);
}

static void exit_does_not_wait_for_a_driver_call_that_never_returns(void) {
  check_exits("exit_while_a_driver_call_stands_still", 6, 2);
}

static void releases_before_and_after_the_exit_handler_are_safe(void) {
  check_exits("release_around_the_exit", 8, 2);
}

const test_body exit_bodies[] = {
    {"return_from_main", return_from_main},
    {"call_exit", call_exit},
    {"exit_on_another_thread", exit_on_another_thread},
    {"exit_under_a_wait", exit_under_a_wait},
    {"exit_while_a_driver_call_stands_still", exit_while_a_driver_call_stands_still},
    {"release_around_the_exit", release_around_the_exit},
    {0},
};

const test_case exit_tests[] = {
    {.name = "field_log_18_main_returns_while_detached_threads_own_streams",
     .function = field_log_18_main_returns_while_detached_threads_own_streams},
    {.name = "field_log_19_exit_is_called_while_threads_work",
     .function = field_log_19_exit_is_called_while_threads_work},
    {.name = "exit_is_called_on_another_thread", .function = exit_is_called_on_another_thread},
    {.name = "exit_does_not_wait_for_a_device_that_never_answers",
     .function = exit_does_not_wait_for_a_device_that_never_answers},
    {.name = "exit_does_not_wait_for_a_driver_call_that_never_returns",
     .function = exit_does_not_wait_for_a_driver_call_that_never_returns},
    {.name = "releases_before_and_after_the_exit_handler_are_safe",
     .function = releases_before_and_after_the_exit_handler_are_safe},
    {0},
};
