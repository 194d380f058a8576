/*
 * The process ends while driver calls stand still: the exit waits for none of them for long, and no call follows the
 * one that stands, neither by its own thread nor by one that waited for it.
 */
#include "calls.h"
#include "concurrency.h"
#include "work.h"

/* The log is read from behind the library's own functions, which are closed by then. */
#include "driver/sim/call_log.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { EXIT_CODE = 3, RTC_ERROR = 6 };

/* Longer than the exit handler waits for threads that are inside the driver. */
static const uint64_t stall_ns = 700 * TEST_MILLISECOND;

typedef struct caller {
  rdm_status (*function)(void);
  rdm_status expected;
  _Atomic rdm_status status;
  atomic_bool is_back;
} caller;

/* The one whose driver call stands still, and one that comes later. */
static caller first;
static caller second;
static rdm_device device;
static rdm_module module;
/* The call that the exit has to wait for; null where there is none. */
static const char *short_call;

static void fail_late(const char *what, rdm_status status) {
  fprintf(stderr, "after exit began: %s (%s)\n", what, rdm_status_name(status));
  _exit(99);
}

static void *call(void *argument) {
  caller *this_caller = argument;
  this_caller->status = this_caller->function();
  this_caller->is_back = true;
  return NULL;
}

/* The call that was under way has returned. */
static void check_nobody_is_inside(void) {
  rdm_sim_call calls[64];
  uint64_t total = rdm__sim_call_log_count(RDM__CALL_COUNT);
  size_t count = rdm__sim_call_log_read(total > 64 ? total - 64 : 0, calls, 64);
  for (size_t i = 0; i < count; i++) {
    if (calls[i].result == -1 && call_is(&calls[i], short_call)) fail_late("a call is still in the driver", RDM_OK);
  }
}

/* Registered before the library's first use, so it runs after the library's own exit handler. */
static void check_callers(void) {
  if (short_call != NULL) check_nobody_is_inside();
  uint64_t before = rdm__sim_call_log_count(RDM__CALL_COUNT);
  uint64_t end = test_now_ns() + 10 * TEST_SECOND;
  while (!(first.is_back && second.is_back) && test_now_ns() < end) test_sleep_ns(TEST_MILLISECOND);
  if (!first.is_back || !second.is_back) fail_late("a call is not back", RDM_OK);
  if (rdm__sim_call_log_count(RDM__CALL_COUNT) != before) fail_late("the driver was called", first.status);
  if (first.status != first.expected) fail_late("the first call was told otherwise", first.status);
  if (second.status != second.expected) fail_late("the second call was told otherwise", second.status);
}

static void begin(rdm_status (*function)(void), rdm_status expected) {
  CHECK(atexit(check_callers) == 0);
  test_use_sim(2);
  CHECK_OK(work_load(0, &(work_kernels){0}));
  CHECK_OK(rdm_device_get(0, &device));
  CHECK_OK(rdm_module_get(device, &work_source, &module));
  first.function = function;
  first.expected = expected;
  second.function = function;
  second.expected = RDM_ERROR_SHUTTING_DOWN;
}

static int exit_across(const char *entry_point, int error) {
  CHECK_OK(rdm_sim_inject(entry_point, 1, 1, error, stall_ns));
  pthread_detach(test_start_thread(call, &first));
  calls_wait_until_inside(entry_point, 10 * TEST_SECOND);
  pthread_detach(test_start_thread(call, &second));
  test_sleep_ns(50 * TEST_MILLISECOND);
  return EXIT_CODE;
}

/* For a call that another thread's does not hold up. */
static int exit_across_alone(const char *entry_point) {
  second.is_back = true;
  second.status = second.expected;
  CHECK_OK(rdm_sim_inject(entry_point, 1, 1, 0, stall_ns));
  pthread_detach(test_start_thread(call, &first));
  calls_wait_until_inside(entry_point, 10 * TEST_SECOND);
  return EXIT_CODE;
}

static rdm_status construct(void) {
  rdm_device other;
  return rdm_device_get(1, &other);
}

static int exit_across_set_device(void) {
  begin(construct, RDM_ERROR_SHUTTING_DOWN);
  return exit_across("hipSetDevice", 0);
}

static int exit_across_set_flags(void) {
  begin(construct, RDM_ERROR_SHUTTING_DOWN);
  return exit_across("hipSetDeviceFlags", 0);
}

/* A failed call is not followed by one that clears the last error either. */
static int exit_across_properties(void) {
  begin(construct, RDM_ERROR_DRIVER);
  return exit_across("hipGetDeviceProperties", 1);
}

/* Each call has a source of its own, so that it is not the other's compile that it waits for. */
static rdm_status compile(void) {
  static _Thread_local char name[32];
  static atomic_uint number;
  rdm_module made;
  rdm_module_source source = work_source;
  snprintf(name, sizeof name, "closing %u", number++);
  source.name = name;
  return rdm_module_get(device, &source, &made);
}

static void begin_compiles(rdm_status expected) {
  setenv("RDM_SIM_SERIAL_COMPILER", "1", 1);
  begin(compile, expected);
}

static int exit_across_a_program(void) {
  begin_compiles(RDM_ERROR_SHUTTING_DOWN);
  return exit_across("hiprtcCreateProgram", 0);
}

static int exit_across_a_compile(void) {
  begin_compiles(RDM_ERROR_SHUTTING_DOWN);
  return exit_across("hiprtcCompileProgram", 0);
}

/* Its log is not asked for. */
static int exit_across_a_failing_compile(void) {
  begin_compiles(RDM_ERROR_SHUTTING_DOWN);
  return exit_across("hiprtcCompileProgram", RTC_ERROR);
}

static int exit_across_its_code(void) {
  begin_compiles(RDM_ERROR_SHUTTING_DOWN);
  return exit_across("hiprtcGetCode", 0);
}

static int exit_across_its_end(void) {
  begin_compiles(RDM_ERROR_SHUTTING_DOWN);
  return exit_across("hiprtcDestroyProgram", 0);
}

static int exit_across_a_load(void) {
  begin_compiles(RDM_OK);
  return exit_across("hipModuleLoadData", 0);
}

static rdm_status get_kernel(void) {
  rdm_kernel kernel;
  return rdm_module_get_kernel(module, "nothing of that name", &kernel);
}

static int exit_across_a_kernel(void) {
  begin(get_kernel, RDM_ERROR_KERNEL_NOT_FOUND);
  return exit_across("hipModuleGetFunction", 500);
}

static rdm_status make_stream(void) {
  rdm_stream stream;
  rdm_encoder encoder;
  CHECK_OK(rdm_stream_create(0, &stream));
  return rdm_encoder_get(stream, &encoder);
}

static int exit_across_a_stream(void) {
  begin(make_stream, RDM_OK);
  return exit_across_alone("hipStreamCreateWithFlags");
}

static rdm_status allocate(void) {
  void *pointer = NULL;
  return rdm_memory_allocate(device, 64, &pointer);
}

static int exit_across_an_allocation(void) {
  begin(allocate, RDM_OK);
  return exit_across_alone("hipMalloc");
}

static rdm_status allocate_on_the_host(void) {
  void *pointer = NULL;
  return rdm_host_memory_allocate(device, 64, &pointer);
}

static int exit_across_a_host_allocation(void) {
  begin(allocate_on_the_host, RDM_OK);
  return exit_across_alone("hipHostMalloc");
}

static void *memory;

static rdm_status release(void) {
  return rdm_memory_free(device, memory);
}

static int exit_across_a_release(void) {
  begin(release, RDM_OK);
  CHECK_OK(rdm_memory_allocate(device, 64, &memory));
  return exit_across_alone("hipFree");
}

/* ---- Calls that get on are waited for ---------------------------------------------------------------------------- */

static int exit_during(const char *entry_point) {
  short_call = entry_point;
  CHECK_OK(rdm_sim_inject(entry_point, 1, 1, 0, 60 * TEST_MILLISECOND));
  pthread_detach(test_start_thread(call, &first));
  calls_wait_until_inside(entry_point, 10 * TEST_SECOND);
  second.is_back = true;
  second.status = second.expected;
  return EXIT_CODE;
}

static int exit_during_an_allocation(void) {
  begin(allocate, RDM_OK);
  return exit_during("hipMalloc");
}

static int exit_during_a_first_use(void) {
  begin(construct, RDM_OK);
  return exit_during("hipGetDeviceProperties");
}

static int exit_during_a_compile(void) {
  begin_compiles(RDM_ERROR_SHUTTING_DOWN);
  return exit_during("hiprtcGetCodeSize");
}

/* ---- Hot paths: they are not waited for, and yet the call that stands is the last ---------------------------------
 */

static work_kernels kernels;
static rdm_encoder encoder;
static rdm_stream stream;
static rdm_event events[2];

static void begin_on_a_stream(rdm_status (*function)(void), rdm_status expected) {
  rdm_device other;
  begin(function, expected);
  CHECK_OK(work_load(0, &kernels));
  CHECK_OK(rdm_memory_allocate(device, 64, &memory));
  CHECK_OK(rdm_stream_create(0, &stream));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
  for (int i = 0; i < 2; i++) {
    CHECK_OK(rdm_event_create(device, RDM_EVENT_TIMING, &events[i]));
    CHECK_OK(rdm_encoder_record_event(encoder, events[i]));
    CHECK_OK(rdm_event_wait(events[i], RDM_WAIT_FOREVER));
  }
  /* So that a thread which starts on the other device has one to make current. */
  CHECK_OK(rdm_device_get(1, &other));
}

static rdm_status launch(void) {
  return work_submit_step(encoder, &kernels, memory, 1);
}

static int exit_across_the_device_of_a_launch(void) {
  begin_on_a_stream(launch, RDM_ERROR_SHUTTING_DOWN);
  return exit_across("hipGetDevice", 0);
}

static rdm_status launch_after_another_device(void) {
  rdm_device other;
  rdm_status status = rdm_device_get(1, &other);
  if (status == RDM_OK) status = rdm_device_make_current(other);
  if (status != RDM_OK) return status;
  CHECK_OK(rdm_sim_inject("hipSetDevice", 1, 1, 0, stall_ns));
  return launch();
}

static int exit_across_the_change_of_device_of_a_launch(void) {
  begin_on_a_stream(launch_after_another_device, RDM_ERROR_SHUTTING_DOWN);
  second.is_back = true;
  second.status = second.expected;
  uint64_t before = calls_made("hipSetDevice");
  pthread_detach(test_start_thread(call, &first));
  /* Its own, to the other device, and the one that stands. */
  while (calls_made("hipSetDevice") < before + 2) test_sleep_ns(TEST_MILLISECOND);
  return EXIT_CODE;
}

static rdm_status query(void) {
  return rdm_event_query(events[0]);
}

static int exit_across_a_change_of_mode(void) {
  begin_on_a_stream(query, RDM_ERROR_SHUTTING_DOWN);
  return exit_across_alone("hipThreadExchangeStreamCaptureMode");
}

static int exit_across_a_query(void) {
  begin_on_a_stream(query, RDM_OK);
  return exit_across_alone("hipEventQuery");
}

static rdm_status elapsed(void) {
  float milliseconds = 0;
  return rdm_event_elapsed(events[0], events[1], &milliseconds);
}

static int exit_across_a_timing(void) {
  begin_on_a_stream(elapsed, RDM_ERROR_SHUTTING_DOWN);
  second.is_back = true;
  second.status = second.expected;
  CHECK_OK(rdm_sim_inject("hipEventQuery", 2, 1, 0, stall_ns));
  uint64_t before = calls_made("hipEventQuery");
  pthread_detach(test_start_thread(call, &first));
  while (calls_made("hipEventQuery") < before + 2) test_sleep_ns(TEST_MILLISECOND);
  return EXIT_CODE;
}

static rdm_status synchronize(void) {
  return rdm_stream_synchronize(stream, RDM_WAIT_FOREVER);
}

static int exit_across_a_look_for_captures(void) {
  begin_on_a_stream(synchronize, RDM_ERROR_SHUTTING_DOWN);
  return exit_across_alone("hipStreamIsCapturing");
}

const test_body closing_call_bodies[] = {
    {"exit_across_set_device", exit_across_set_device},
    {"exit_across_set_flags", exit_across_set_flags},
    {"exit_across_properties", exit_across_properties},
    {"exit_across_a_program", exit_across_a_program},
    {"exit_across_a_compile", exit_across_a_compile},
    {"exit_across_a_failing_compile", exit_across_a_failing_compile},
    {"exit_across_its_code", exit_across_its_code},
    {"exit_across_its_end", exit_across_its_end},
    {"exit_across_a_load", exit_across_a_load},
    {"exit_across_a_kernel", exit_across_a_kernel},
    {"exit_across_a_stream", exit_across_a_stream},
    {"exit_across_an_allocation", exit_across_an_allocation},
    {"exit_across_a_host_allocation", exit_across_a_host_allocation},
    {"exit_across_a_release", exit_across_a_release},
    {"exit_across_the_device_of_a_launch", exit_across_the_device_of_a_launch},
    {"exit_across_the_change_of_device_of_a_launch", exit_across_the_change_of_device_of_a_launch},
    {"exit_across_a_change_of_mode", exit_across_a_change_of_mode},
    {"exit_across_a_query", exit_across_a_query},
    {"exit_across_a_timing", exit_across_a_timing},
    {"exit_across_a_look_for_captures", exit_across_a_look_for_captures},
    {"exit_during_an_allocation", exit_during_an_allocation},
    {"exit_during_a_first_use", exit_during_a_first_use},
    {"exit_during_a_compile", exit_during_a_compile},
    {0},
};

static void check_exits(int from, int to) {
  process_outcome *outcome = malloc(sizeof *outcome);
  CHECK(outcome != NULL);
  for (int i = from; i < to; i++) {
    const char *body = closing_call_bodies[i].name;
    test_run_body(body, NULL, 20, outcome);
    CHECK_THAT(!outcome->timed_out && outcome->signal == 0 && outcome->exit_code == EXIT_CODE,
               "%s: exit code %d, signal %d: %s", body, outcome->exit_code, outcome->signal, outcome->standard_error);
  }
  free(outcome);
}

static void the_first_use_of_a_device_goes_no_further_once_the_exit_began(void) {
  check_exits(0, 3);
}

static void a_compile_or_a_load_goes_no_further_once_the_exit_began(void) {
  check_exits(3, 9);
}

static void what_makes_driver_objects_goes_no_further_once_the_exit_began(void) {
  check_exits(9, 14);
}

static void a_hot_path_makes_no_call_after_the_one_that_stands(void) {
  check_exits(14, 20);
}

static void the_exit_waits_for_calls_that_get_on(void) {
  check_exits(20, 23);
}

const test_case closing_call_tests[] = {
    {.name = "a_hot_path_makes_no_call_after_the_one_that_stands",
     .function = a_hot_path_makes_no_call_after_the_one_that_stands},
    {.name = "the_exit_waits_for_calls_that_get_on", .function = the_exit_waits_for_calls_that_get_on},
    {.name = "the_first_use_of_a_device_goes_no_further_once_the_exit_began",
     .function = the_first_use_of_a_device_goes_no_further_once_the_exit_began},
    {.name = "a_compile_or_a_load_goes_no_further_once_the_exit_began",
     .function = a_compile_or_a_load_goes_no_further_once_the_exit_began},
    {.name = "what_makes_driver_objects_goes_no_further_once_the_exit_began",
     .function = what_makes_driver_objects_goes_no_further_once_the_exit_began},
    {0},
};
