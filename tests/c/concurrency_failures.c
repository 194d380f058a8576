/* What a failure leaves behind: which handlers run, which device it is held against, and what a success does not touch.
 */
#include "calls.h"
#include "concurrency.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static rdm_device devices[2];

static void set_up(void) {
  test_use_sim(2);
  for (int32_t i = 0; i < 2; i++) CHECK_OK(rdm_device_get(i, &devices[i]));
}

/* What the call that met the fault was told. */
static rdm_error first_cause;

static void fault_device_0(void) {
  void *pointer = NULL;
  CHECK_OK(rdm_sim_fault(0, 700));
  CHECK_STATUS(rdm_memory_allocate(devices[0], 64, &pointer), RDM_ERROR_DEVICE_FAULT);
  first_cause.struct_size = sizeof first_cause;
  CHECK_OK(rdm_last_error(&first_cause));
}

/* ---- Handlers of a batch that a fault finds open ---------------------------------------------------------------- */

enum { WAYS = 5 };

static rdm_stream streams[WAYS];
static rdm_encoder encoders[WAYS];
static atomic_uint handlers_run[WAYS];

static void count_fault(rdm_status status, void *user_data) {
  CHECK_STATUS(status, RDM_ERROR_DEVICE_FAULT);
  atomic_fetch_add((atomic_uint *)user_data, 1);
}

static void open_batches_and_fault(void) {
  set_up();
  for (int i = 0; i < WAYS; i++) {
    CHECK_OK(rdm_stream_create(0, &streams[i]));
    CHECK_OK(rdm_encoder_get(streams[i], &encoders[i]));
    CHECK_OK(rdm_encoder_add_completion_handler(encoders[i], count_fault, &handlers_run[i]));
  }
  fault_device_0();
  test_sleep_ns(50 * TEST_MILLISECOND);
  for (int i = 0; i < WAYS; i++) CHECK_THAT(handlers_run[i] == 0, "a handler ran before its batch was committed");
}

static void wait_for_handler(int way) {
  for (int i = 0; i < 2000 && handlers_run[way] == 0; i++) test_sleep_ns(TEST_MILLISECOND);
  CHECK_THAT(handlers_run[way] == 1, "handler %d ran %u times", way, handlers_run[way]);
}

static void a_handler_of_a_batch_that_is_committed_after_a_fault_is_told_of_it(void) {
  open_batches_and_fault();
  CHECK_STATUS(rdm_encoder_commit(encoders[0]), RDM_ERROR_DEVICE_FAULT);
  wait_for_handler(0);
  CHECK_STATUS(rdm_encoder_commit(encoders[0]), RDM_ERROR_DEVICE_FAULT);
  CHECK_STATUS(rdm_stream_synchronize(streams[0], TEST_SECOND), RDM_ERROR_DEVICE_FAULT);
  CHECK_OK(rdm_stream_release(streams[0]));
  test_sleep_ns(50 * TEST_MILLISECOND);
  CHECK_THAT(handlers_run[0] == 1, "the handler ran %u times", handlers_run[0]);
}

static void a_handler_of_an_open_batch_is_told_of_a_fault_by_whatever_ends_the_batch(void) {
  open_batches_and_fault();
  CHECK_STATUS(rdm_stream_synchronize(streams[0], TEST_SECOND), RDM_ERROR_DEVICE_FAULT);
  wait_for_handler(0);
  CHECK_STATUS(rdm_stream_finalize(streams[1]), RDM_ERROR_DEVICE_FAULT);
  wait_for_handler(1);
  CHECK_OK(rdm_stream_release(streams[2]));
  wait_for_handler(2);
  CHECK(handlers_run[3] == 0 && handlers_run[4] == 0);
  CHECK_OK(rdm_clear_encoders());
  wait_for_handler(3);
  wait_for_handler(4);
  for (int i = 0; i < WAYS; i++) CHECK_THAT(handlers_run[i] == 1, "handler %d ran %u times", i, handlers_run[i]);
}

/* ---- Which device a fault is held against ----------------------------------------------------------------------- */

static bool has_faulted(rdm_device device) {
  rdm_device_info info = {.struct_size = sizeof info};
  CHECK_OK(rdm_device_get_info(device, &info));
  return info.faulted == 1;
}

static void check_is_the_first_cause(rdm_status status) {
  rdm_error error = {.struct_size = sizeof error};
  CHECK_STATUS(status, RDM_ERROR_DEVICE_FAULT);
  CHECK_OK(rdm_last_error(&error));
  CHECK_THAT(error.driver_code == 700 && strcmp(error.call, first_cause.call) == 0, "%s: %d", error.call,
             error.driver_code);
  CHECK_THAT(strstr(error.message, first_cause.message) != NULL, "\"%s\" does not name the first cause, \"%s\"",
             error.message, first_cause.message);
}

static void a_fault_that_takes_the_process_fails_other_devices_without_a_driver_call(void) {
  CHECK(setenv("RDM_SIM_FAULT_SCOPE", "process", 1) == 0);
  set_up();
  rdm_stream stream;
  rdm_stream other;
  rdm_encoder encoder;
  rdm_event event;
  rdm_event pooled;
  void *memory = NULL;
  void *pointer = NULL;
  CHECK_OK(rdm_stream_create(1, &stream));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
  CHECK_OK(rdm_memory_allocate(devices[1], 64, &memory));
  CHECK_OK(rdm_event_create(devices[1], RDM_EVENT_DEFAULT, &event));
  CHECK_OK(rdm_encoder_record_event(encoder, event));
  CHECK_OK(rdm_stream_synchronize(stream, 10 * TEST_SECOND));
  fault_device_0();
  uint64_t before = calls_made(NULL);
  check_is_the_first_cause(rdm_memory_allocate(devices[1], 64, &pointer));
  check_is_the_first_cause(rdm_device_make_current(devices[1]));
  check_is_the_first_cause(rdm_encoder_fill(encoder, memory, 1, 64));
  check_is_the_first_cause(rdm_encoder_record_event(encoder, event));
  check_is_the_first_cause(rdm_event_query(event));
  check_is_the_first_cause(rdm_event_wait(event, RDM_WAIT_FOREVER));
  check_is_the_first_cause(rdm_stream_synchronize(stream, RDM_WAIT_FOREVER));
  check_is_the_first_cause(rdm_device_synchronize(devices[1], RDM_WAIT_FOREVER));
  check_is_the_first_cause(rdm_event_create(devices[1], RDM_EVENT_TIMING, &pooled));
  check_is_the_first_cause(rdm_stream_create(1, &other));
  CHECK_OK(rdm_memory_free(devices[1], memory));
  CHECK_OK(rdm_event_release(event));
  CHECK_OK(rdm_stream_release(stream));
  uint64_t made = calls_made(NULL) - before;
  CHECK_THAT(made == 0, "%llu driver calls after the fault", (unsigned long long)made);
  CHECK(has_faulted(devices[0]) && has_faulted(devices[1]));
}

static void a_fault_met_in_a_wait_for_an_event_is_of_the_events_device(void) {
  set_up();
  rdm_stream recording;
  rdm_stream waiting;
  rdm_encoder recorder;
  rdm_encoder waiter;
  rdm_event event;
  void *memory = NULL;
  CHECK_OK(rdm_stream_create(0, &recording));
  CHECK_OK(rdm_stream_create(1, &waiting));
  CHECK_OK(rdm_encoder_get(recording, &recorder));
  CHECK_OK(rdm_encoder_get(waiting, &waiter));
  CHECK_OK(rdm_event_create(devices[0], RDM_EVENT_DEFAULT, &event));
  CHECK_OK(rdm_memory_allocate(devices[1], 64, &memory));
  CHECK_OK(rdm_encoder_record_event(recorder, event));
  CHECK_OK(rdm_stream_synchronize(recording, 10 * TEST_SECOND));
  CHECK_OK(rdm_sim_inject("hipStreamWaitEvent", 1, 1, 700, 0));
  CHECK_STATUS(rdm_encoder_wait_event(waiter, event), RDM_ERROR_DEVICE_FAULT);
  rdm_error error = {.struct_size = sizeof error};
  CHECK_OK(rdm_last_error(&error));
  CHECK_THAT(error.device_index == 0, "the error names device %d", error.device_index);
  CHECK_THAT(!has_faulted(devices[1]), "the device of the waiting stream is held to have faulted");
  CHECK_THAT(has_faulted(devices[0]), "the event's device is not held to have faulted");
  CHECK_STATUS(rdm_encoder_wait_event(waiter, event), RDM_ERROR_DEVICE_FAULT);
  CHECK_OK(rdm_stream_take_error(waiting, &error));
  CHECK_OK(rdm_encoder_fill(waiter, memory, 1, 64));
  CHECK_OK(rdm_stream_synchronize(waiting, 10 * TEST_SECOND));
}

/* ---- What a success leaves as it was ---------------------------------------------------------------------------- */

static atomic_uint completed;

static void count_completed(rdm_status status, void *user_data) {
  (void)user_data;
  CHECK_STATUS(status, RDM_OK);
  completed++;
}

/* An inner call of a commit fails, which loses nothing: the handler's callback is tried again later. */
static void commit_over_a_failure(rdm_encoder encoder, const char *entry_point) {
  static rdm_error before;
  static rdm_error after;
  uint64_t fired = 0;
  before = (rdm_error){.struct_size = sizeof before};
  after = before;
  CHECK_OK(rdm_encoder_add_completion_handler(encoder, count_completed, NULL));
  CHECK_OK(rdm_last_error(&before));
  CHECK_OK(rdm_sim_inject(entry_point, 1, 1, 1, 0));
  CHECK_OK(rdm_encoder_commit(encoder));
  CHECK_OK(rdm_last_error(&after));
  CHECK_OK(rdm_sim_clear_injections(&fired));
  CHECK_THAT(fired == 1, "the commit did not call %s", entry_point);
  CHECK_THAT(memcmp(&before, &after, sizeof before) == 0, "a commit that succeeded left %s: \"%s\"",
             rdm_status_name(after.status), after.message);
}

static void a_commit_that_succeeds_leaves_the_last_error_as_it_was(void) {
  set_up();
  rdm_stream stream;
  rdm_stream missing;
  rdm_encoder encoder;
  rdm_error error = {.struct_size = sizeof error};
  CHECK_OK(rdm_stream_create(0, &stream));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
  commit_over_a_failure(encoder, "hipGetDevice");
  commit_over_a_failure(encoder, "hipLaunchHostFunc");
  CHECK_STATUS(rdm_stream_create(7, &missing), RDM_ERROR_INVALID_DEVICE);
  commit_over_a_failure(encoder, "hipGetDevice");
  commit_over_a_failure(encoder, "hipLaunchHostFunc");
  CHECK_OK(rdm_stream_synchronize(stream, 10 * TEST_SECOND));
  CHECK_THAT(completed == 4, "%u of 4 handlers ran", completed);
  CHECK_OK(rdm_stream_take_error(stream, &error));
  CHECK_STATUS(error.status, RDM_OK);
}

static void a_construction_that_is_tried_again_sets_the_schedule_flag_once(void) {
  rdm_device device;
  test_use_sim(2);
  for (int i = 0; i < 2; i++) {
    CHECK_OK(rdm_sim_inject("hipGetDeviceProperties", 1, 1, 1, 0));
    CHECK_STATUS(rdm_device_get(0, &device), RDM_ERROR_DRIVER);
  }
  CHECK_OK(rdm_device_get(0, &device));
  CHECK_THAT(calls_made("hipSetDeviceFlags") == 1, "the flag was set %llu times",
             (unsigned long long)calls_made("hipSetDeviceFlags"));
  CHECK_OK(rdm_device_get(1, &device));
  CHECK(calls_made("hipSetDeviceFlags") == 2);
}

const test_case failure_tests[] = {
    {.name = "a_handler_of_a_batch_that_is_committed_after_a_fault_is_told_of_it",
     .function = a_handler_of_a_batch_that_is_committed_after_a_fault_is_told_of_it,
     .writes_to_standard_error = true},
    {.name = "a_handler_of_an_open_batch_is_told_of_a_fault_by_whatever_ends_the_batch",
     .function = a_handler_of_an_open_batch_is_told_of_a_fault_by_whatever_ends_the_batch,
     .writes_to_standard_error = true},
    {.name = "a_fault_that_takes_the_process_fails_other_devices_without_a_driver_call",
     .function = a_fault_that_takes_the_process_fails_other_devices_without_a_driver_call,
     .writes_to_standard_error = true},
    {.name = "a_fault_met_in_a_wait_for_an_event_is_of_the_events_device",
     .function = a_fault_met_in_a_wait_for_an_event_is_of_the_events_device,
     .writes_to_standard_error = true},
    {.name = "a_commit_that_succeeds_leaves_the_last_error_as_it_was",
     .function = a_commit_that_succeeds_leaves_the_last_error_as_it_was},
    {.name = "a_construction_that_is_tried_again_sets_the_schedule_flag_once",
     .function = a_construction_that_is_tried_again_sets_the_schedule_flag_once},
    {0},
};
