/* The process ends while something of the library is half way: a load, a build, a batch, a release. */
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

static void check_exits(const char *body, const char *variable, int times) {
  const char *environment[] = {variable, NULL};
  for (int i = 0; i < times; i++) {
    process_outcome outcome;
    test_run_body(body, environment, 20, &outcome);
    CHECK_THAT(outcome.exit_code == EXIT_CODE, "%s, run %d: exit code %d, signal %d: %s", body, i, outcome.exit_code,
               outcome.signal, outcome.standard_error);
  }
}

static _Atomic rdm_status status_of_call;
static atomic_bool is_back;

/* ---- A load ----------------------------------------------------------------------------------------------------- */

static void *load(void *argument) {
  int32_t count = 0;
  (void)argument;
  status_of_call = rdm_device_count(&count);
  is_back = true;
  return NULL;
}

/* Registered before the library's first use, so it runs after the library's own exit handler. */
static void check_that_the_exit_stays(void) {
  int32_t count = 0;
  uint64_t end = test_now_ns() + 10 * TEST_SECOND;
  while (!is_back && test_now_ns() < end) test_sleep_ns(TEST_MILLISECOND);
  if (!is_back) fail_late("the load is not back", RDM_OK);
  if (status_of_call != RDM_ERROR_SHUTTING_DOWN) fail_late("the load went on", status_of_call);
  rdm_status status = rdm_device_count(&count);
  if (status != RDM_ERROR_SHUTTING_DOWN) fail_late("the library is open again", status);
}

static int exit_during_a_load(void) {
  CHECK(atexit(check_that_the_exit_stays) == 0);
  test_use_sim(1);
  pthread_detach(test_start_thread(load, NULL));
  test_sleep_ns(100 * TEST_MILLISECOND);
  return EXIT_CODE;
}

static void an_exit_during_the_first_use_is_not_forgotten(void) {
  check_exits("exit_during_a_load", "RDM_SIM_INJECT=hipInit:1:1:0:400000000", 1);
}

/* ---- The runtime's own handlers --------------------------------------------------------------------------------- */

/* Stands for a handler that a runtime registers, which takes the driver down: the library is closed before it. */
static void check_that_it_is_closed(void) {
  int32_t count = 0;
  rdm_status status = rdm_device_count(&count);
  if (status != RDM_ERROR_SHUTTING_DOWN) fail_late("the library was open as a runtime took itself down", status);
}

static void *construct(void *argument) {
  rdm_device device;
  (void)argument;
  CHECK_OK(rdm_device_get(0, &device));
  return NULL;
}

/* A runtime registers its handler as it is loaded, which is while the library is inside the call that loads it. */
static int exit_after_a_load(void) {
  test_use_sim(1);
  pthread_t loader = test_start_thread(load, NULL);
  test_sleep_ns(200 * TEST_MILLISECOND);
  CHECK(atexit(check_that_it_is_closed) == 0);
  test_join_thread(loader);
  return EXIT_CODE;
}

/* And as it is first used. */
static int exit_after_a_construction(void) {
  test_use_sim(1);
  CHECK_OK(rdm_sim_inject("hipGetDeviceProperties", 1, 1, 0, 400 * TEST_MILLISECOND));
  pthread_t constructor = test_start_thread(construct, NULL);
  calls_wait_until_inside("hipGetDeviceProperties", 10 * TEST_SECOND);
  CHECK(atexit(check_that_it_is_closed) == 0);
  test_join_thread(constructor);
  return EXIT_CODE;
}

static void the_exit_handler_runs_before_those_of_the_runtime(void) {
  check_exits("exit_after_a_load", "RDM_SIM_INJECT=hipInit:1:1:0:600000000", 1);
  check_exits("exit_after_a_construction", "RDM_DRIVER=sim", 1);
}

/* ---- A construction --------------------------------------------------------------------------------------------- */

static void *construct_and_stand_still(void *argument) {
  rdm_device device;
  (void)argument;
  (void)rdm_device_get(0, &device);
  return NULL;
}

static void *wait_for_the_construction(void *argument) {
  rdm_device device;
  (void)argument;
  status_of_call = rdm_device_get(0, &device);
  is_back = true;
  return NULL;
}

static void check_that_the_wait_for_a_construction_ended(void) {
  uint64_t before = rdm__sim_call_log_count(RDM__CALL_set_device);
  uint64_t end = test_now_ns() + 5 * TEST_SECOND;
  while (!is_back && test_now_ns() < end) test_sleep_ns(TEST_MILLISECOND);
  if (!is_back) fail_late("a thread waits for a construction that may never end", RDM_OK);
  if (rdm__sim_call_log_count(RDM__CALL_set_device) != before) fail_late("a construction was begun", status_of_call);
  if (status_of_call != RDM_ERROR_SHUTTING_DOWN) fail_late("the second construction went on", status_of_call);
}

/* The first construction stands still in the driver, and another thread waits for it. */
static int exit_across_a_construction(void) {
  CHECK(atexit(check_that_the_wait_for_a_construction_ended) == 0);
  test_use_sim(1);
  CHECK_OK(rdm_sim_inject("hipGetDeviceProperties", 1, 1, 1, 60 * TEST_SECOND));
  pthread_detach(test_start_thread(construct_and_stand_still, NULL));
  calls_wait_until_inside("hipGetDeviceProperties", 10 * TEST_SECOND);
  pthread_detach(test_start_thread(wait_for_the_construction, NULL));
  test_sleep_ns(50 * TEST_MILLISECOND);
  return EXIT_CODE;
}

static void an_exit_ends_the_wait_for_a_construction(void) {
  check_exits("exit_across_a_construction", "RDM_DRIVER=sim", 1);
}

/* ---- Pools ------------------------------------------------------------------------------------------------------ */

static uint64_t calls_at_the_end;

static void check_that_nothing_was_taken_down(void) {
  if (rdm__sim_call_log_count(RDM__CALL_COUNT) != calls_at_the_end) fail_late("the driver was called", RDM_OK);
}

static int exit_with_full_pools(void) {
  rdm_device device;
  rdm_event events[4];
  rdm_stream stream;
  rdm_encoder encoder;
  CHECK(atexit(check_that_nothing_was_taken_down) == 0);
  test_use_sim(1);
  CHECK_OK(rdm_device_get(0, &device));
  CHECK_OK(rdm_stream_create(0, &stream));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
  for (int i = 0; i < 4; i++) CHECK_OK(rdm_event_create(device, RDM_EVENT_DEFAULT, &events[i]));
  for (int i = 0; i < 4; i++) CHECK_OK(rdm_event_release(events[i]));
  CHECK_OK(rdm_stream_release(stream));
  calls_at_the_end = rdm__sim_call_log_count(RDM__CALL_COUNT);
  return EXIT_CODE;
}

static void an_exit_takes_no_pool_down(void) {
  check_exits("exit_with_full_pools", "RDM_DRIVER=sim", 1);
}

/* ---- What a thread remembers ------------------------------------------------------------------------------------ */

static rdm_device remembered_device;
static rdm_stream remembered_stream;

static void check_lookups(void) {
  rdm_device device;
  rdm_encoder encoder;
  rdm_event event;
  rdm_status status = rdm_device_get(0, &device);
  if (status != RDM_ERROR_SHUTTING_DOWN) fail_late("a device was found", status);
  status = rdm_encoder_get(remembered_stream, &encoder);
  if (status != RDM_ERROR_SHUTTING_DOWN) fail_late("an encoder was found", status);
  status = rdm_event_create(remembered_device, RDM_EVENT_DEFAULT, &event);
  if (status != RDM_ERROR_SHUTTING_DOWN) fail_late("an event was made", status);
}

/* The exit's handlers run on the thread that has made all these lookups before. */
static int exit_with_lookups_remembered(void) {
  rdm_encoder encoder;
  rdm_event event;
  CHECK(atexit(check_lookups) == 0);
  test_use_sim(1);
  for (int i = 0; i < 2; i++) CHECK_OK(rdm_device_get(0, &remembered_device));
  CHECK_OK(rdm_stream_create(0, &remembered_stream));
  for (int i = 0; i < 2; i++) CHECK_OK(rdm_encoder_get(remembered_stream, &encoder));
  CHECK_OK(rdm_event_create(remembered_device, RDM_EVENT_DEFAULT, &event));
  CHECK_OK(rdm_event_release(event));
  return EXIT_CODE;
}

static void lookups_after_the_exit_began_find_nothing(void) {
  check_exits("exit_with_lookups_remembered", "RDM_DRIVER=sim", 1);
}

/* ---- The library's own threads ---------------------------------------------------------------------------------- */

static void ignore(rdm_status status, void *user_data) {
  (void)status;
  (void)user_data;
}

/* Registered before the library's first use, as a runtime's handler that takes the driver down would be. */
static void check_that_nobody_is_inside(void) {
  enum { MANY = 4096 };
  static rdm_sim_call calls[MANY];
  size_t count = rdm__sim_call_log_read(0, calls, MANY);
  for (size_t i = 0; i < count; i++) {
    if (calls[i].result == -1) fail_late("a thread of the library is inside a driver call", RDM_OK);
  }
}

/* No callback can be enqueued, so the completion thread looks at the stream, and stands still there for a moment. */
static int exit_under_a_look(void) {
  rdm_stream stream;
  rdm_encoder encoder;
  CHECK(atexit(check_that_nobody_is_inside) == 0);
  test_use_sim(1);
  CHECK_OK(rdm_stream_create(0, &stream));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
  CHECK_OK(rdm_sim_hold(0, 1));
  CHECK_OK(rdm_sim_inject("hipLaunchHostFunc", 1, 0, 2, 0));
  CHECK_OK(rdm_sim_inject("hipStreamQuery", 1, 0, 0, 150 * TEST_MILLISECOND));
  CHECK_OK(rdm_encoder_add_completion_handler(encoder, ignore, NULL));
  CHECK_OK(rdm_encoder_commit(encoder));
  calls_wait_until_inside("hipStreamQuery", 10 * TEST_SECOND);
  return EXIT_CODE;
}

static void an_exit_waits_for_the_librarys_threads_to_leave_the_driver(void) {
  check_exits("exit_under_a_look", "RDM_DRIVER=sim", 1);
}

/* ---- A build ---------------------------------------------------------------------------------------------------- */

static void *build(void *argument) {
  work_kernels kernels;
  (void)argument;
  (void)work_load(0, &kernels);
  return NULL;
}

static void *wait_for_the_build(void *argument) {
  rdm_device device;
  rdm_module module;
  (void)argument;
  CHECK_OK(rdm_device_get(0, &device));
  status_of_call = rdm_module_get(device, &work_source, &module);
  is_back = true;
  return NULL;
}

static void check_that_the_wait_ended(void) {
  uint64_t end = test_now_ns() + 5 * TEST_SECOND;
  while (!is_back && test_now_ns() < end) test_sleep_ns(TEST_MILLISECOND);
  if (!is_back) fail_late("a thread waits for a build that may never end", RDM_OK);
  if (status_of_call != RDM_ERROR_SHUTTING_DOWN) fail_late("the wait for a build", status_of_call);
}

static int exit_across_a_build(void) {
  CHECK(atexit(check_that_the_wait_ended) == 0);
  test_use_sim(1);
  CHECK_OK(rdm_sim_inject("hiprtcCompileProgram", 1, 1, 0, 60 * TEST_SECOND));
  pthread_detach(test_start_thread(build, NULL));
  test_sleep_ns(50 * TEST_MILLISECOND);
  pthread_detach(test_start_thread(wait_for_the_build, NULL));
  test_sleep_ns(50 * TEST_MILLISECOND);
  return EXIT_CODE;
}

static void an_exit_ends_the_wait_for_a_build(void) {
  check_exits("exit_across_a_build", "RDM_DRIVER=sim", 1);
}

/* ---- A batch ---------------------------------------------------------------------------------------------------- */

static atomic_bool is_inside;
static atomic_bool exit_has_begun;
static atomic_bool second_ran;

static void stand_until_the_exit(rdm_status status, void *user_data) {
  (void)status;
  (void)user_data;
  is_inside = true;
  while (!exit_has_begun) test_sleep_ns(TEST_MILLISECOND);
}

static void run_second(rdm_status status, void *user_data) {
  (void)status;
  (void)user_data;
  second_ran = true;
}

static void check_that_no_handler_begins(void) {
  exit_has_begun = true;
  test_sleep_ns(50 * TEST_MILLISECOND * TEST_SLOWDOWN);
  if (second_ran) fail_late("a handler was run", RDM_OK);
}

static int exit_inside_a_batch(void) {
  rdm_stream stream;
  rdm_encoder encoder;
  CHECK(atexit(check_that_no_handler_begins) == 0);
  test_use_sim(1);
  CHECK_OK(rdm_stream_create(0, &stream));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
  CHECK_OK(rdm_encoder_add_completion_handler(encoder, stand_until_the_exit, NULL));
  CHECK_OK(rdm_encoder_add_completion_handler(encoder, run_second, NULL));
  CHECK_OK(rdm_encoder_commit(encoder));
  while (!is_inside) test_sleep_ns(TEST_MILLISECOND);
  return EXIT_CODE;
}

static void no_handler_begins_once_the_process_is_exiting(void) {
  check_exits("exit_inside_a_batch", "RDM_DRIVER=sim", 1);
}

/* ---- Releases --------------------------------------------------------------------------------------------------- */

static rdm_device device_of_releases;

static void *release_without_end(void *argument) {
  (void)argument;
  for (;;) {
    rdm_status status = rdm_memory_free(device_of_releases, NULL);
    if (status != RDM_OK) fail_late("a release failed", status);
    status = rdm_host_memory_free(device_of_releases, NULL);
    if (status != RDM_OK) fail_late("a release failed", status);
  }
  return NULL;
}

/* Registered before the library's first use: a thread that fails has the time to say so. */
static void wait_a_moment(void) {
  test_sleep_ns(5 * TEST_MILLISECOND);
}

static int exit_among_releases(void) {
  CHECK(atexit(wait_a_moment) == 0);
  test_use_sim(1);
  CHECK_OK(rdm_device_get(0, &device_of_releases));
  for (int i = 0; i < 3; i++) pthread_detach(test_start_thread(release_without_end, NULL));
  test_sleep_ns(3 * TEST_MILLISECOND);
  return EXIT_CODE;
}

static void a_release_that_meets_the_exit_half_way_is_ok(void) {
  check_exits("exit_among_releases", "RDM_DRIVER=sim", 40);
}

const test_body late_exit_bodies[] = {
    {"exit_during_a_load", exit_during_a_load},
    {"exit_after_a_load", exit_after_a_load},
    {"exit_after_a_construction", exit_after_a_construction},
    {"exit_across_a_construction", exit_across_a_construction},
    {"exit_with_full_pools", exit_with_full_pools},
    {"exit_with_lookups_remembered", exit_with_lookups_remembered},
    {"exit_under_a_look", exit_under_a_look},
    {"exit_across_a_build", exit_across_a_build},
    {"exit_inside_a_batch", exit_inside_a_batch},
    {"exit_among_releases", exit_among_releases},
    {0},
};

const test_case late_exit_tests[] = {
    {.name = "an_exit_during_the_first_use_is_not_forgotten",
     .function = an_exit_during_the_first_use_is_not_forgotten},
    {.name = "the_exit_handler_runs_before_those_of_the_runtime",
     .function = the_exit_handler_runs_before_those_of_the_runtime},
    {.name = "an_exit_ends_the_wait_for_a_construction", .function = an_exit_ends_the_wait_for_a_construction},
    {.name = "an_exit_takes_no_pool_down", .function = an_exit_takes_no_pool_down},
    {.name = "lookups_after_the_exit_began_find_nothing", .function = lookups_after_the_exit_began_find_nothing},
    {.name = "an_exit_waits_for_the_librarys_threads_to_leave_the_driver",
     .function = an_exit_waits_for_the_librarys_threads_to_leave_the_driver},
    {.name = "an_exit_ends_the_wait_for_a_build", .function = an_exit_ends_the_wait_for_a_build},
    {.name = "no_handler_begins_once_the_process_is_exiting",
     .function = no_handler_begins_once_the_process_is_exiting},
    {.name = "a_release_that_meets_the_exit_half_way_is_ok", .function = a_release_that_meets_the_exit_half_way_is_ok},
    {0},
};
