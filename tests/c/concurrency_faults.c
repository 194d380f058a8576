/* Faults, deadlines and refused launches: every wait ends, the first cause is kept, other devices go on. */
#include "calls.h"
#include "concurrency.h"
#include "log_lines.h"
#include "work.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static work_kernels kernels;
static rdm_stream stream;
static rdm_encoder encoder;
static work_buffers buffers;

static void set_up(void) {
  test_use_sim(2);
  CHECK_OK(work_load(0, &kernels));
  CHECK_OK(work_buffers_allocate(kernels.device, &buffers));
  CHECK_OK(rdm_stream_create(0, &stream));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
}

/* The thread's last error names the fault's first cause. */
static void check_names_the_cause(void) {
  rdm_error error = {.struct_size = sizeof error};
  CHECK_OK(rdm_last_error(&error));
  CHECK_STATUS(error.status, RDM_ERROR_DEVICE_FAULT);
  CHECK_THAT(error.driver_code == 700 && error.device_index == 0, "code %d, device %d", error.driver_code,
             error.device_index);
  CHECK_THAT(strstr(error.message, "hipErrorIllegalAddress") != NULL, "the message is \"%s\"", error.message);
}

/* Everything on device 0 fails at once, and what gives things back does nothing. */
static void check_device_is_lost(void) {
  uint64_t start = test_now_ns();
  rdm_stream other = {0};
  rdm_event event = {0};
  rdm_module module = {0};
  void *pointer = NULL;
  rdm_module_source source = work_source;
  source.name = "another";
  CHECK_STATUS(rdm_stream_synchronize(stream, RDM_WAIT_FOREVER), RDM_ERROR_DEVICE_FAULT);
  check_names_the_cause();
  CHECK_STATUS(work_submit_step(encoder, &kernels, buffers.first, 1), RDM_ERROR_DEVICE_FAULT);
  check_names_the_cause();
  CHECK_STATUS(rdm_encoder_fill(encoder, buffers.first, 0, 4), RDM_ERROR_DEVICE_FAULT);
  CHECK_STATUS(rdm_event_create(kernels.device, RDM_EVENT_DEFAULT, &event), RDM_ERROR_DEVICE_FAULT);
  CHECK_STATUS(rdm_memory_allocate(kernels.device, 16, &pointer), RDM_ERROR_DEVICE_FAULT);
  CHECK_STATUS(rdm_module_get(kernels.device, &source, &module), RDM_ERROR_DEVICE_FAULT);
  CHECK_STATUS(rdm_device_synchronize(kernels.device, RDM_WAIT_FOREVER), RDM_ERROR_DEVICE_FAULT);
  check_names_the_cause();
  if (rdm_stream_create(0, &other) == RDM_OK) {
    rdm_encoder other_encoder;
    rdm_status status = rdm_encoder_get(other, &other_encoder);
    if (status == RDM_OK) status = work_submit_step(other_encoder, &kernels, buffers.first, 1);
    CHECK_STATUS(status, RDM_ERROR_DEVICE_FAULT);
    check_names_the_cause();
    CHECK_OK(rdm_stream_release(other));
  }
  CHECK_OK(work_buffers_free(&buffers));
  rdm_device_info info = {.struct_size = sizeof info};
  CHECK_OK(rdm_device_get_info(kernels.device, &info));
  CHECK(info.faulted == 1);
  CHECK_THAT(test_now_ns() - start < TEST_SECOND, "calls on a lost device took %.1f s",
             (double)(test_now_ns() - start) * 1e-9);
}

/* ---- A fault under many waits ----------------------------------------------------------------------------------- */

enum { WAITERS = 16 };
static atomic_uint ready_waiters;
static atomic_ullong faulted_at_ns;
static atomic_uint handlers_run;
static atomic_bool other_device_stops;

static void expect_fault(rdm_status status, void *user_data) {
  (void)user_data;
  CHECK_STATUS(status, RDM_ERROR_DEVICE_FAULT);
  handlers_run++;
}

static void wait_through_a_fault(unsigned number) {
  rdm_stream own;
  rdm_encoder own_encoder;
  rdm_event event;
  CHECK_OK(rdm_stream_create(0, &own));
  CHECK_OK(rdm_encoder_get(own, &own_encoder));
  CHECK_OK(rdm_event_create(kernels.device, RDM_EVENT_DEFAULT, &event));
  CHECK_OK(work_submit_step(own_encoder, &kernels, buffers.first, 1));
  CHECK_OK(rdm_encoder_record_event(own_encoder, event));
  CHECK_OK(rdm_encoder_add_completion_handler(own_encoder, expect_fault, NULL));
  CHECK_OK(rdm_encoder_commit(own_encoder));
  ready_waiters++;
  rdm_status status = RDM_OK;
  switch (number % 4) {
    case 0:
      status = rdm_stream_synchronize(own, RDM_WAIT_FOREVER);
      break;
    case 1:
      status = rdm_event_wait(event, RDM_WAIT_FOREVER);
      break;
    case 2:
      do {
        status = rdm_event_query(event);
        test_sleep_ns(TEST_MILLISECOND);
      } while (status == RDM_NOT_READY);
      break;
    default:
      status = rdm_device_synchronize(kernels.device, RDM_WAIT_FOREVER);
      break;
  }
  CHECK_STATUS(status, RDM_ERROR_DEVICE_FAULT);
  check_names_the_cause();
  uint64_t after_ns = test_now_ns() - faulted_at_ns;
  CHECK_THAT(after_ns < TEST_SECOND, "wait %u ended %.2f s after the fault", number, (double)after_ns * 1e-9);
  CHECK_OK(rdm_event_release(event));
  CHECK_OK(rdm_stream_release(own));
}

static void *run_waiters(void *argument) {
  (void)argument;
  test_run_threads(WAITERS, wait_through_a_fault);
  return NULL;
}

static void *evaluate_on_device_1(void *argument) {
  unsigned *evaluations = argument;
  while (!other_device_stops) {
    CHECK_OK(work_on_new_stream(1, 1));
    (*evaluations)++;
  }
  return NULL;
}

static void field_log_10_a_fault_ends_the_waits_of_16_threads_and_other_devices_go_on(void) {
  set_up();
  unsigned evaluations = 0;
  CHECK_OK(work_on_new_stream(1, 1));
  CHECK_OK(rdm_sim_hold(0, 1));
  pthread_t waiters = test_start_thread(run_waiters, NULL);
  pthread_t other = test_start_thread(evaluate_on_device_1, &evaluations);
  while (ready_waiters < WAITERS) test_sleep_ns(TEST_MILLISECOND);
  test_sleep_ns(50 * TEST_MILLISECOND);
  faulted_at_ns = test_now_ns();
  CHECK_OK(rdm_sim_fault(0, 700));
  test_join_thread(waiters);
  for (int i = 0; i < 1000 && handlers_run < WAITERS; i++) test_sleep_ns(TEST_MILLISECOND);
  CHECK_THAT(handlers_run == WAITERS, "%u of %d completion handlers ran after the fault", handlers_run, WAITERS);
  check_device_is_lost();
  test_sleep_ns(50 * TEST_MILLISECOND);
  other_device_stops = true;
  test_join_thread(other);
  CHECK(evaluations > 1);
  rdm_sim_objects objects = calls_count_objects();
  CHECK(objects.streams > 0);
}

static const char wild_source[] =
    "extern \"C\" __global__ void wild(float *out) {\n"
    "  if (threadIdx.x == 0 && blockIdx.x == 0) *(volatile float *)((char *)out + 0x700000000000ull) = 1.0f;\n"
    "}\n";

static void field_log_10_a_wild_write_of_a_kernel_is_its_devices_fault(void) {
  set_up();
  rdm_module module;
  rdm_kernel wild;
  rdm_stream idle;
  const rdm_module_source source = {.struct_size = sizeof source, .name = "wild", .source = wild_source};
  float *nowhere = NULL;
  void *arguments[] = {&nowhere};
  const rdm_launch_config config = {.struct_size = sizeof config, .grid = {1, 1, 1}, .block = {1, 1, 1}};
  CHECK_OK(rdm_stream_create(0, &idle));
  CHECK_OK(rdm_module_get(kernels.device, &source, &module));
  CHECK_OK(rdm_module_get_kernel(module, "wild", &wild));
  uint64_t start = test_now_ns();
  CHECK_OK(rdm_encoder_launch(encoder, wild, &config, arguments, 1));
  CHECK_STATUS(rdm_stream_synchronize(stream, 10 * TEST_SECOND), RDM_ERROR_DEVICE_FAULT);
  CHECK_THAT(test_now_ns() - start < TEST_SECOND, "the fault was seen late");
  check_names_the_cause();
  CHECK_STATUS(rdm_stream_synchronize(idle, RDM_WAIT_FOREVER), RDM_ERROR_DEVICE_FAULT);
  check_names_the_cause();
  check_device_is_lost();
  CHECK_OK(work_on_new_stream(1, 2));
}

/* ---- The context destroyed, the runtime's abort, a failed free ------------------------------------------------- */

/* Other code resets the device under us: every call from then on says what happened. */
static void a_context_destroyed_by_other_code_is_told_as_what_it_is(void) {
  set_up();
  rdm_error error = {.struct_size = sizeof error};
  CHECK_OK(rdm_sim_fault(0, 709));
  CHECK_STATUS(work_submit_step(encoder, &kernels, buffers.first, 1), RDM_ERROR_DEVICE_FAULT);
  for (int i = 0; i < 2; i++) {
    CHECK_OK(rdm_last_error(&error));
    CHECK_THAT(error.driver_code == 709 && strstr(error.message, "hipErrorContextIsDestroyed") != NULL, "%s",
               error.message);
    CHECK_STATUS(rdm_stream_synchronize(stream, RDM_WAIT_FOREVER), RDM_ERROR_DEVICE_FAULT);
  }
  CHECK_OK(rdm_stream_release(stream));
  CHECK_OK(work_buffers_free(&buffers));
  CHECK_OK(work_on_new_stream(1, 1));
}

static int abort_in_a_kernel(void) {
  set_up();
  const rdm_module_source source = {.struct_size = sizeof source,
                                    .name = "aborts",
                                    .source =
                                        "extern \"C\" void abort(void);\n"
                                        "extern \"C\" __global__ void aborts(float *out) { abort(); }\n"};
  rdm_module module;
  rdm_kernel kernel;
  float *out = buffers.first;
  void *arguments[] = {&out};
  const rdm_launch_config config = {.struct_size = sizeof config, .grid = {1, 1, 1}, .block = {1, 1, 1}};
  CHECK_OK(rdm_module_get(kernels.device, &source, &module));
  CHECK_OK(rdm_module_get_kernel(module, "aborts", &kernel));
  CHECK_OK(rdm_encoder_launch(encoder, kernel, &config, arguments, 1));
  rdm_stream_synchronize(stream, RDM_WAIT_FOREVER);
  return 0;
}

/* The runtime ends the process from a thread of its own: at once, and not by a hang. */
static void field_log_11_an_abort_of_the_runtime_ends_the_process_at_once(void) {
  process_outcome outcome;
  test_run_body("abort_in_a_kernel", NULL, 30, &outcome);
  CHECK_THAT(outcome.signal == SIGABRT, "signal %d, exit code %d: %s", outcome.signal, outcome.exit_code,
             outcome.standard_error);
  CHECK_THAT(outcome.seconds < 3 * TEST_SLOWDOWN, "it took %.1f s", outcome.seconds);
}

static void field_log_15_a_failed_free_is_nobody_elses_error(void) {
  set_up();
  rdm_error error = {.struct_size = sizeof error};
  CHECK_OK(rdm_sim_inject("hipFree", 1, 1, 1, 0));
  CHECK_STATUS(rdm_memory_free(kernels.device, buffers.second), RDM_ERROR_DRIVER);
  uint32_t wrong = 1;
  CHECK_OK(work_on_new_stream(0, 1));
  CHECK_OK(work_on_new_stream(1, 1));
  CHECK_OK(work_evaluate(stream, &kernels, &buffers, &wrong));
  CHECK_OK(rdm_take_unattributed_error(&error));
  CHECK_THAT(error.status == RDM_ERROR_DRIVER && error.device_index == 0 && strcmp(error.call, "hipFree") == 0, "%s",
             error.message);
  CHECK_OK(rdm_take_unattributed_error(&error));
  CHECK_STATUS(error.status, RDM_OK);
}

static void memory_that_is_not_there_is_refused_and_nothing_is_lost(void) {
  set_up();
  void *pointer = NULL;
  CHECK_STATUS(rdm_memory_allocate(kernels.device, SIZE_MAX / 2, &pointer), RDM_ERROR_OUT_OF_MEMORY);
  CHECK(pointer == NULL && strstr(rdm_last_error_message(), "hipMalloc") != NULL);
  uint32_t wrong = 1;
  CHECK_OK(work_evaluate(stream, &kernels, &buffers, &wrong));
  CHECK(wrong == 0);
}

static void a_thread_without_a_key_left_is_refused_until_there_is_one(void) {
  enum { MOST_KEYS = 1024 };
  static pthread_key_t keys[MOST_KEYS];
  int count = 0;
  rdm_thread_local_stream handle;
  rdm_stream resolved;
  /* Before the first lookup, with which the library would take one. */
  while (count < MOST_KEYS && pthread_key_create(&keys[count], NULL) == 0) count++;
  set_up();
  /* A thread that can not be told of its end remembers nothing, and all that it looks up is found and counted. */
  rdm_counters before = {.struct_size = sizeof before};
  rdm_counters after = before;
  CHECK_OK(rdm_get_counters(&before));
  for (int i = 0; i < 10; i++) {
    rdm_device device;
    rdm_encoder found;
    CHECK_OK(rdm_device_get(0, &device));
    CHECK_OK(rdm_encoder_get(stream, &found));
    CHECK(device.bits == kernels.device.bits && found.bits == encoder.bits);
    CHECK_OK(work_load(0, &kernels));
  }
  CHECK_OK(rdm_get_counters(&after));
  CHECK(after.device_lookups == before.device_lookups + 20 && after.device_hits == 0);
  CHECK(after.encoder_lookups == before.encoder_lookups + 10 && after.encoder_hits == 0);
  CHECK(after.module_lookups == before.module_lookups + 10 && after.module_hits == 0);
  CHECK_OK(rdm_thread_local_stream_create(0, &handle));
  CHECK_STATUS(rdm_thread_local_stream_resolve(handle, &resolved), RDM_ERROR_RESOURCE);
  CHECK_STATUS(rdm_default_stream_set(stream), RDM_ERROR_RESOURCE);
  CHECK(count > 0 && pthread_key_delete(keys[count - 1]) == 0);
  CHECK_OK(rdm_thread_local_stream_resolve(handle, &resolved));
  CHECK_OK(rdm_default_stream_set(stream));
}

const test_body fault_bodies[] = {{"abort_in_a_kernel", abort_in_a_kernel}, {0}};

/* ---- Deadlines -------------------------------------------------------------------------------------------------- */

static uint64_t thread_cpu_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return (uint64_t)time.tv_sec * TEST_SECOND + (uint64_t)time.tv_nsec;
}

static void check_wait(rdm_status status, rdm_status expected, uint64_t start, uint64_t cpu, uint64_t timeout_ns) {
  uint64_t waited = test_now_ns() - start;
  CHECK_STATUS(status, expected);
  CHECK_THAT(waited >= timeout_ns && waited < timeout_ns + timeout_ns / 5 * TEST_SLOWDOWN,
             "the wait of %.2f s took %.3f s", (double)timeout_ns * 1e-9, (double)waited * 1e-9);
  CHECK_THAT(thread_cpu_ns() - cpu < waited / 4, "the wait burned %.3f s of processor time in %.3f s",
             (double)(thread_cpu_ns() - cpu) * 1e-9, (double)waited * 1e-9);
}

static void field_log_12_a_wait_times_out_when_asked_to_and_nothing_is_lost(void) {
  set_up();
  rdm_event event;
  CHECK_OK(rdm_event_create(kernels.device, RDM_EVENT_DEFAULT, &event));
  CHECK_OK(rdm_sim_hold(0, 1));
  CHECK_OK(work_submit(encoder, &kernels, &buffers));
  CHECK_OK(rdm_encoder_record_event(encoder, event));
  uint64_t start = test_now_ns();
  uint64_t cpu = thread_cpu_ns();
  check_wait(rdm_stream_synchronize(stream, TEST_SECOND), RDM_ERROR_TIMEOUT, start, cpu, TEST_SECOND);
  start = test_now_ns();
  cpu = thread_cpu_ns();
  check_wait(rdm_event_wait(event, TEST_SECOND), RDM_ERROR_TIMEOUT, start, cpu, TEST_SECOND);
  CHECK_STATUS(rdm_event_wait(event, 0), RDM_ERROR_TIMEOUT);
  CHECK_STATUS(rdm_stream_synchronize(stream, 0), RDM_ERROR_TIMEOUT);
  rdm_device_info info = {.struct_size = sizeof info};
  CHECK_OK(rdm_device_get_info(kernels.device, &info));
  CHECK(info.faulted == 0);
  CHECK_OK(work_on_new_stream(1, 1));
  CHECK_OK(rdm_sim_hold(0, 0));
  CHECK_OK(rdm_event_wait(event, RDM_WAIT_FOREVER));
  CHECK_OK(rdm_stream_synchronize(stream, RDM_WAIT_FOREVER));
  CHECK(work_count_wrong(&buffers) == 0);
  CHECK_OK(work_on_new_stream(0, 1));
}

static void the_watchdog_ends_a_wait_without_a_deadline(void) {
  setenv("RDM_WATCHDOG_SECS", "1", 1);
  set_up();
  rdm_event event;
  CHECK_OK(rdm_event_create(kernels.device, RDM_EVENT_DEFAULT, &event));
  CHECK_OK(rdm_sim_hold(0, 1));
  CHECK_OK(rdm_encoder_record_event(encoder, event));
  uint64_t start = test_now_ns();
  uint64_t cpu = thread_cpu_ns();
  check_wait(rdm_stream_synchronize(stream, RDM_WAIT_FOREVER), RDM_ERROR_WATCHDOG, start, cpu, TEST_SECOND);
  CHECK(strstr(rdm_last_error_message(), "RDM_WATCHDOG_SECS") != NULL);
  start = test_now_ns();
  cpu = thread_cpu_ns();
  check_wait(rdm_event_wait(event, RDM_WAIT_FOREVER), RDM_ERROR_WATCHDOG, start, cpu, TEST_SECOND);
  CHECK_STATUS(rdm_event_wait(event, 20 * TEST_MILLISECOND), RDM_ERROR_TIMEOUT);
  CHECK_OK(rdm_sim_hold(0, 0));
  CHECK_OK(rdm_event_wait(event, RDM_WAIT_FOREVER));
}

static void a_watchdog_that_is_no_number_is_warned_of_once_and_ignored(void) {
  const char *value = "1.5";
  setenv("RDM_WATCHDOG_SECS", value, 1);
  log_lines_capture();
  set_up();
  CHECK_OK(rdm_sim_hold(0, 1));
  CHECK_OK(rdm_encoder_fill(encoder, buffers.first, 0, 4));
  for (int i = 0; i < 3; i++) CHECK_STATUS(rdm_stream_synchronize(stream, 5 * TEST_MILLISECOND), RDM_ERROR_TIMEOUT);
  CHECK_OK(rdm_sim_hold(0, 0));
  CHECK_OK(rdm_stream_synchronize(stream, RDM_WAIT_FOREVER));
  CHECK_THAT(log_lines_with("RDM_WATCHDOG_SECS") == 1, "%u warnings for \"%s\"", log_lines_with("RDM_WATCHDOG_SECS"),
             value);
  CHECK(log_lines_with(value) >= 1);
}

/* ---- Errors of a stream ------------------------------------------------------------------------------------------ */

static void launch_too_large(rdm_status expected) {
  float *memory = buffers.first;
  uint32_t count = 1;
  void *arguments[] = {&memory, &count};
  const rdm_launch_config config = {.struct_size = sizeof config, .grid = {1, 1, 1}, .block = {2048, 1, 1}};
  CHECK_STATUS(rdm_encoder_launch(encoder, kernels.step, &config, arguments, 2), expected);
}

static void a_refused_launch_is_returned_and_leaves_everything_usable(void) {
  set_up();
  for (int i = 0; i < 3; i++) {
    launch_too_large(RDM_ERROR_LAUNCH);
    rdm_error error = {.struct_size = sizeof error};
    CHECK_OK(rdm_stream_take_error(stream, &error));
    CHECK_STATUS(error.status, RDM_ERROR_LAUNCH);
    uint32_t wrong = 1;
    CHECK_OK(work_evaluate(stream, &kernels, &buffers, &wrong));
    CHECK(wrong == 0);
    CHECK_OK(work_on_new_stream(0, 1));
  }
}

static void field_log_10_an_injected_launch_error_is_of_its_stream_alone(void) {
  set_up();
  CHECK_OK(rdm_sim_inject("hipModuleLaunchKernel", 1, 1, 701, 0));
  CHECK_STATUS(work_submit_step(encoder, &kernels, buffers.first, 1), RDM_ERROR_LAUNCH);
  rdm_error error = {.struct_size = sizeof error};
  CHECK_OK(rdm_last_error(&error));
  CHECK(error.driver_code == 701 && strstr(error.message, "step") != NULL);
  CHECK_OK(work_on_new_stream(0, 1));
  CHECK_STATUS(rdm_stream_synchronize(stream, RDM_WAIT_FOREVER), RDM_ERROR_LAUNCH);
  CHECK_OK(rdm_stream_take_error(stream, &error));
  CHECK_STATUS(error.status, RDM_ERROR_LAUNCH);
  CHECK_OK(rdm_stream_synchronize(stream, RDM_WAIT_FOREVER));
}

enum { RECORDERS = 8 };
static pthread_barrier_t barrier;

static void record_an_error(unsigned number) {
  pthread_barrier_wait(&barrier);
  CHECK_OK(rdm_stream_record_error(stream, number % 2 == 0 ? RDM_ERROR_DRIVER : RDM_ERROR_LAUNCH, "recorded"));
}

static void the_first_recorded_error_is_kept_until_it_is_taken(void) {
  set_up();
  rdm_error error = {.struct_size = sizeof error};
  uint64_t before = calls_made(NULL);
  CHECK_OK(rdm_stream_record_error(stream, RDM_ERROR_RESOURCE, "the first"));
  pthread_barrier_init(&barrier, NULL, RECORDERS);
  test_run_threads(RECORDERS, record_an_error);
  CHECK(calls_made(NULL) == before);
  CHECK_STATUS(rdm_stream_synchronize(stream, RDM_WAIT_FOREVER), RDM_ERROR_RESOURCE);
  CHECK(strstr(rdm_last_error_message(), "the first") != NULL);
  CHECK_STATUS(rdm_stream_synchronize(stream, RDM_WAIT_FOREVER), RDM_ERROR_RESOURCE);
  CHECK_OK(rdm_stream_take_error(stream, &error));
  CHECK_STATUS(error.status, RDM_ERROR_RESOURCE);
  CHECK_OK(rdm_stream_take_error(stream, &error));
  CHECK_STATUS(error.status, RDM_OK);
  CHECK_OK(rdm_stream_synchronize(stream, RDM_WAIT_FOREVER));
}

const test_case fault_tests[] = {
    {.name = "a_context_destroyed_by_other_code_is_told_as_what_it_is",
     .function = a_context_destroyed_by_other_code_is_told_as_what_it_is,
     .writes_to_standard_error = true},
    {.name = "field_log_11_an_abort_of_the_runtime_ends_the_process_at_once",
     .function = field_log_11_an_abort_of_the_runtime_ends_the_process_at_once},
    {.name = "field_log_15_a_failed_free_is_nobody_elses_error",
     .function = field_log_15_a_failed_free_is_nobody_elses_error},
    {.name = "memory_that_is_not_there_is_refused_and_nothing_is_lost",
     .function = memory_that_is_not_there_is_refused_and_nothing_is_lost},
    {.name = "a_thread_without_a_key_left_is_refused_until_there_is_one",
     .function = a_thread_without_a_key_left_is_refused_until_there_is_one},
    {.name = "field_log_10_a_fault_ends_the_waits_of_16_threads_and_other_devices_go_on",
     .function = field_log_10_a_fault_ends_the_waits_of_16_threads_and_other_devices_go_on,
     .writes_to_standard_error = true},
    {.name = "field_log_10_a_wild_write_of_a_kernel_is_its_devices_fault",
     .function = field_log_10_a_wild_write_of_a_kernel_is_its_devices_fault,
     .writes_to_standard_error = true},
    {.name = "field_log_12_a_wait_times_out_when_asked_to_and_nothing_is_lost",
     .function = field_log_12_a_wait_times_out_when_asked_to_and_nothing_is_lost},
    {.name = "the_watchdog_ends_a_wait_without_a_deadline", .function = the_watchdog_ends_a_wait_without_a_deadline},
    {.name = "a_watchdog_that_is_no_number_is_warned_of_once_and_ignored",
     .function = a_watchdog_that_is_no_number_is_warned_of_once_and_ignored},
    {.name = "a_refused_launch_is_returned_and_leaves_everything_usable",
     .function = a_refused_launch_is_returned_and_leaves_everything_usable},
    {.name = "field_log_10_an_injected_launch_error_is_of_its_stream_alone",
     .function = field_log_10_an_injected_launch_error_is_of_its_stream_alone},
    {.name = "the_first_recorded_error_is_kept_until_it_is_taken",
     .function = the_first_recorded_error_is_kept_until_it_is_taken},
    {0},
};
