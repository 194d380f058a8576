/*
 * Processes that end with streams, events and memory still owned: the exit code is the one asked for, nothing but the
 * lines on bound devices is on standard error, and the driver is not called any more. RDM_TEST_LONG=1: 200 fresh
 * processes of each kind; else 20.
 */
#include "exit_process.h"

#include "test.h"
#include "work.h"

/* The log is read from behind the library's own functions, which are closed by then. */
#include "driver/sim/call_log.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t calls_as_the_exit_began;
static atomic_uint running;
/* How many threads of the program evaluate as the exit begins: each may make one driver call more. */
static atomic_uint evaluating;

static void fail_late(int code, const char *text) {
  fprintf(stderr, "at exit: %s\n", text);
  _exit(code);
}

static uint64_t driver_calls(void) {
  return rdm__sim_call_log_count(RDM__CALL_COUNT);
}

/* Registered right before the library's first use, so it runs right after the library's exit handler. */
static void note_calls(void) {
  calls_as_the_exit_began = driver_calls();
}

void exit_verdict(void) {
  test_sleep_ns(30 * TEST_MILLISECOND);
  int32_t count = 0;
  if (driver_calls() - calls_as_the_exit_began > evaluating) fail_late(99, "the driver was called");
  if (rdm_device_count(&count) != RDM_ERROR_SHUTTING_DOWN) fail_late(99, "the library is still open");
}

static void start(void) {
  static atomic_flag started = ATOMIC_FLAG_INIT;
  if (atomic_flag_test_and_set(&started)) return;
  CHECK(atexit(note_calls) == 0);
  test_use_sim(2);
}

static void ignore_status(rdm_status status, void *user_data) {
  (void)status;
  (void)user_data;
}

void exit_acquire(exit_belongings *own) {
  rdm_encoder encoder;
  rdm_stream resolved;
  start();
  CHECK_OK(rdm_device_get(1, &own->device));
  CHECK_OK(rdm_stream_create(1, &own->stream));
  CHECK_OK(rdm_event_create(own->device, RDM_EVENT_DEFAULT, &own->event));
  CHECK_OK(rdm_memory_allocate(own->device, 4096, &own->memory));
  CHECK_OK(rdm_host_memory_allocate(own->device, 4096, &own->host_memory));
  CHECK_OK(rdm_thread_local_stream_create(1, &own->thread_local_stream));
  CHECK_OK(rdm_thread_local_stream_resolve(own->thread_local_stream, &resolved));
  CHECK_OK(rdm_default_stream_set(resolved));
  CHECK_OK(rdm_encoder_get(own->stream, &encoder));
  CHECK_OK(rdm_encoder_fill(encoder, own->memory, 0, 4096));
  CHECK_OK(rdm_encoder_record_event(encoder, own->event));
  /* A batch that is committed, and one that is open. */
  CHECK_OK(rdm_encoder_add_completion_handler(encoder, ignore_status, NULL));
  CHECK_OK(rdm_encoder_commit(encoder));
  CHECK_OK(rdm_encoder_add_completion_handler(encoder, ignore_status, NULL));
}

void exit_give_back(exit_belongings *own) {
  if (rdm_event_release(own->event) != RDM_OK) fail_late(98, "an event was not released");
  if (rdm_stream_release(own->stream) != RDM_OK) fail_late(98, "a stream was not released");
  if (rdm_memory_free(own->device, own->memory) != RDM_OK) fail_late(98, "memory was not freed");
  if (rdm_host_memory_free(own->device, own->host_memory) != RDM_OK) fail_late(98, "host memory was not freed");
  if (rdm_thread_local_stream_release(own->thread_local_stream) != RDM_OK) fail_late(98, "a stream was not released");
}

/* ---- In C ------------------------------------------------------------------------------------------------------- */

static exit_belongings released_before;
static exit_belongings released_after;

static void release_before(void) {
  exit_give_back(&released_before);
}

static void release_after(void) {
  exit_give_back(&released_after);
}

static int exit_of_handlers(void) {
  CHECK(atexit(exit_verdict) == 0 && atexit(release_after) == 0);
  exit_acquire(&released_before);
  exit_acquire(&released_after);
  CHECK(atexit(release_before) == 0);
  return 12;
}

static void *work_until_told_off(void *argument) {
  exit_belongings own;
  work_kernels kernels;
  work_buffers buffers;
  rdm_status status = RDM_OK;
  exit_acquire(&own);
  CHECK_OK(work_load(1, &kernels));
  CHECK_OK(work_buffers_allocate(kernels.device, &buffers));
  evaluating++;
  running++;
  for (uint32_t wrong = 0; status == RDM_OK;) status = work_evaluate(own.stream, &kernels, &buffers, &wrong);
  if (status != RDM_ERROR_SHUTTING_DOWN) fail_late(97, rdm_last_error_message());
  /* One releases and ends, one holds on to what it has. */
  if (argument == NULL) exit_give_back(&own);
  while (argument != NULL) test_sleep_ns(TEST_SECOND);
  return NULL;
}

static void start_workers(void) {
  static int second;
  CHECK(atexit(exit_verdict) == 0);
  start();
  pthread_detach(test_start_thread(work_until_told_off, NULL));
  pthread_detach(test_start_thread(work_until_told_off, &second));
  while (running < 2) test_sleep_ns(TEST_MILLISECOND / 10);
}

static int exit_of_running_threads(void) {
  start_workers();
  return 13;
}

static void *call_exit(void *argument) {
  (void)argument;
  exit(14);
}

static int exit_by_a_worker(void) {
  start_workers();
  test_join_thread(test_start_thread(call_exit, NULL));
  return 0;
}

static void exit_in_a_handler(rdm_status status, void *user_data) {
  (void)status;
  (void)user_data;
  exit(15);
}

static int exit_by_a_completion_handler(void) {
  exit_belongings own;
  rdm_encoder encoder;
  CHECK(atexit(exit_verdict) == 0);
  exit_acquire(&own);
  CHECK_OK(rdm_encoder_get(own.stream, &encoder));
  CHECK_OK(rdm_encoder_add_completion_handler(encoder, exit_in_a_handler, NULL));
  CHECK_OK(rdm_encoder_commit(encoder));
  test_sleep_ns(20 * TEST_SECOND);
  return 0;
}

/*
 * The completion thread is inside the driver as the process ends, and has more to call it for: it must come out before
 * the library's exit handler returns, and not go in again.
 */
static int exit_under_the_completion_thread(void) {
  exit_belongings own;
  rdm_encoder encoder;
  CHECK(atexit(exit_verdict) == 0);
  exit_acquire(&own);
  CHECK_OK(rdm_sim_hold(1, 1));
  CHECK_OK(rdm_encoder_get(own.stream, &encoder));
  CHECK_OK(rdm_encoder_commit(encoder));
  CHECK_OK(rdm_sim_inject("hipStreamQuery", 1, 0, 0, 15 * TEST_MILLISECOND));
  test_sleep_ns((uint64_t)(getpid() % 16) * 3 * TEST_MILLISECOND);
  return 16;
}

/* ---- The runs ---------------------------------------------------------------------------------------------------- */

static void run_often(const char *body, int expected_code) {
  const char *text = getenv("RDM_TEST_LONG");
  bool is_long = text != NULL && strcmp(text, "1") == 0;
  int times = (is_long ? 200 : 20) / (TEST_SLOWDOWN == 1 || is_long ? 1 : 4);
  process_outcome *outcome = malloc(sizeof *outcome);
  CHECK(outcome != NULL);
  for (int i = 0; i < times; i++) {
    test_run_body(body, NULL, 30, outcome);
    CHECK_THAT(!outcome->timed_out && outcome->signal == 0 && outcome->exit_code == expected_code,
               "run %d of %d: exit code %d, expected %d; signal %d, %.1f s: %s", i, times, outcome->exit_code,
               expected_code, outcome->signal, outcome->seconds, outcome->standard_error);
    CHECK_THAT(test_only_bound_lines(outcome->standard_error), "run %d wrote: %s", i, outcome->standard_error);
    CHECK_THAT(outcome->seconds < 3 * TEST_SLOWDOWN, "run %d took %.1f s", i, outcome->seconds);
  }
  free(outcome);
}

static void cxx_statics_and_thread_locals_release(void) {
  run_often("exit_of_cxx_objects", 9);
}

static void exit_handlers_release(void) {
  run_often("exit_of_handlers", 12);
}

static void threads_run_on_as_main_returns(void) {
  run_often("exit_of_running_threads", 13);
}

static void a_worker_exits(void) {
  run_often("exit_by_a_worker", 14);
}

static void a_completion_handler_exits(void) {
  run_often("exit_by_a_completion_handler", 15);
}

static void the_completion_thread_leaves_the_driver(void) {
  run_often("exit_under_the_completion_thread", 16);
}

int main(int argc, char **argv) {
  static const test_case tests[] = {
      {.name = "field_log_18_cxx_statics_and_thread_locals_release",
       .function = cxx_statics_and_thread_locals_release,
       .limit_seconds = 300},
      {.name = "exit_handlers_release", .function = exit_handlers_release, .limit_seconds = 300},
      {.name = "field_log_19_threads_run_on_as_main_returns",
       .function = threads_run_on_as_main_returns,
       .limit_seconds = 300},
      {.name = "a_worker_exits", .function = a_worker_exits, .limit_seconds = 300},
      {.name = "a_completion_handler_exits", .function = a_completion_handler_exits, .limit_seconds = 300},
      {.name = "the_completion_thread_leaves_the_driver",
       .function = the_completion_thread_leaves_the_driver,
       .limit_seconds = 300},
      {0},
  };
  static const test_body bodies[] = {
      {"exit_of_cxx_objects", exit_of_cxx_objects},
      {"exit_of_handlers", exit_of_handlers},
      {"exit_of_running_threads", exit_of_running_threads},
      {"exit_by_a_worker", exit_by_a_worker},
      {"exit_by_a_completion_handler", exit_by_a_completion_handler},
      {"exit_under_the_completion_thread", exit_under_the_completion_thread},
      {0},
  };
  static const test_case *const groups[] = {tests, NULL};
  static const test_body *const all_bodies[] = {bodies, NULL};
  return test_main(argc, argv, groups, all_bodies);
}
