/* Events taken, recorded, polled and released by many threads, on several devices. */
#include "calls.h"
#include "concurrency.h"
#include "other_code.h"
#include "driver/driver.h"
#include "work.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- The pool -------------------------------------------------------------------------------------------------- */

enum { DEVICES = 4, THREADS = 8 };
/* HIP's number. */
enum { INVALID_DEVICE = 101 };

static work_kernels kernels[DEVICES];
static rdm_stream streams[DEVICES];

static void set_up(int32_t device_count) {
  test_use_sim(device_count);
  for (int32_t i = 0; i < device_count; i++) {
    CHECK_OK(work_load(i, &kernels[i]));
    CHECK_OK(rdm_stream_create(i, &streams[i]));
  }
}

static void record_and_wait(rdm_stream stream, rdm_event event) {
  rdm_encoder encoder;
  CHECK_OK(rdm_encoder_get(stream, &encoder));
  CHECK_OK(rdm_encoder_record_event(encoder, event));
  CHECK_OK(rdm_event_wait(event, RDM_WAIT_FOREVER));
}

static void use_events_at_random(unsigned number) {
  uint64_t state = number + 100;
  for (int i = 0; i < 400 / TEST_SLOWDOWN; i++) {
    int32_t device = (int32_t)(test_random(&state) % DEVICES);
    uint32_t flags = test_random(&state) % 2;
    rdm_event start;
    rdm_event end;
    CHECK_OK(rdm_event_create(kernels[device].device, flags, &start));
    CHECK_OK(rdm_event_create(kernels[device].device, flags, &end));
    CHECK(start.bits != end.bits);
    CHECK_STATUS(rdm_event_wait(end, 0), RDM_ERROR_NOT_RECORDED);
    record_and_wait(streams[device], start);
    record_and_wait(streams[device], end);
    float milliseconds = -1.0f;
    rdm_status status = rdm_event_elapsed(start, end, &milliseconds);
    CHECK_STATUS(status, flags == RDM_EVENT_TIMING ? RDM_OK : RDM_ERROR_INVALID_ARGUMENT);
    if (status == RDM_OK) CHECK_THAT(milliseconds >= 0.0f, "%g ms", (double)milliseconds);
    CHECK_OK(rdm_event_release(start));
    CHECK_OK(rdm_event_release(end));
  }
}

static void field_log_08_pooled_events_keep_to_their_device_and_flags(void) {
  set_up(DEVICES);
  test_run_threads(THREADS, use_events_at_random);
  call_list list = calls_read(0);
  calls_check_current_device(&list);
  for (size_t i = 0; i < list.count; i++) {
    const rdm_sim_call *call = &list.calls[i];
    if (!call_is(call, "hipEventRecord")) continue;
    CHECK_THAT(call->result == 0, "hipEventRecord returned %d", call->result);
  }
  calls_free(&list);
  rdm_sim_objects objects = calls_count_objects();
  CHECK_THAT(objects.events <= THREADS * 2 * DEVICES * 2, "%llu driver events", (unsigned long long)objects.events);
  CHECK_THAT(calls_made("hipEventCreateWithFlags") < 400, "events are not used again");
}

static void a_pool_is_bounded(void) {
  set_up(1);
  enum { EVENTS = 5000 };
  rdm_event *events = malloc(EVENTS * sizeof *events);
  CHECK(events != NULL);
  for (int i = 0; i < EVENTS; i++) CHECK_OK(rdm_event_create(kernels[0].device, RDM_EVENT_DEFAULT, &events[i]));
  CHECK(calls_count_objects().events >= EVENTS);
  for (int i = 0; i < EVENTS; i++) CHECK_OK(rdm_event_release(events[i]));
  /* A release makes no driver call, so what is over the bound goes as events are next taken. */
  for (int i = 0; i < EVENTS / 4; i++) {
    rdm_event event;
    CHECK_OK(rdm_event_create(kernels[0].device, RDM_EVENT_DEFAULT, &event));
    CHECK_OK(rdm_event_release(event));
  }
  uint64_t kept = calls_count_objects().events;
  /* 1024 in the pool, and what this thread has in its magazine. */
  CHECK_THAT(kept <= 1024 + 30, "%llu of %d released events are kept", (unsigned long long)kept, EVENTS);
  free(events);
}

/* What is over the bound is ended later, and none of it is lost to the driver meanwhile. */
static void a_pool_that_can_not_be_trimmed_fails_no_call(void) {
  set_up(1);
  enum { EVENTS = 1200, KEPT = 1024 + 30 };
  rdm_event events[EVENTS];
  rdm_event none = {0};
  CHECK_STATUS(rdm_event_release(none), RDM_ERROR_NULL_HANDLE);
  for (int i = 0; i < EVENTS; i++) CHECK_OK(rdm_event_create(kernels[0].device, RDM_EVENT_DEFAULT, &events[i]));
  for (int i = 0; i < EVENTS; i++) CHECK_OK(rdm_event_release(events[i]));
  uint64_t fired = 0;
  CHECK_OK(rdm_sim_inject("hipGetDevice", 1, 1, INVALID_DEVICE, 0));
  CHECK_OK(rdm_event_create(kernels[0].device, RDM_EVENT_DEFAULT, &events[0]));
  CHECK_OK(rdm_sim_clear_injections(&fired));
  CHECK(fired == 1);
  rdm_error error = {.struct_size = sizeof error};
  CHECK_OK(rdm_last_error(&error));
  CHECK_THAT(error.status == RDM_ERROR_NULL_HANDLE, "a call that succeeded left: %s", error.message);
  CHECK_OK(rdm_event_release(events[0]));
  for (int i = 0; i < EVENTS; i++) {
    CHECK_OK(rdm_event_create(kernels[0].device, RDM_EVENT_DEFAULT, &events[0]));
    CHECK_OK(rdm_event_release(events[0]));
  }
  uint64_t kept = calls_count_objects().events;
  CHECK_THAT(kept <= KEPT, "%llu events are kept, and %d can be used again", (unsigned long long)kept, KEPT);
}

static void field_log_08_a_record_that_fails_leaves_the_event_not_recorded(void) {
  set_up(1);
  rdm_encoder encoder;
  rdm_event event;
  CHECK_OK(rdm_encoder_get(streams[0], &encoder));
  CHECK_OK(rdm_event_create(kernels[0].device, RDM_EVENT_DEFAULT, &event));
  record_and_wait(streams[0], event);
  CHECK_OK(rdm_event_query(event));
  CHECK_OK(rdm_sim_inject("hipEventRecord", 1, 1, 400, 0));
  CHECK_STATUS(rdm_encoder_record_event(encoder, event), RDM_ERROR_DRIVER);
  CHECK_STATUS(rdm_event_wait(event, RDM_WAIT_FOREVER), RDM_ERROR_NOT_RECORDED);
  rdm_status status = rdm_event_query(event);
  CHECK_THAT(status != RDM_OK, "an event whose record failed says that it has completed");
  rdm_error error = {.struct_size = sizeof error};
  CHECK_OK(rdm_stream_take_error(streams[0], &error));
  CHECK_OK(rdm_encoder_get(streams[0], &encoder));
  record_and_wait(streams[0], event);
}

/* ---- Across streams and devices --------------------------------------------------------------------------------- */

static void an_event_orders_work_of_two_devices(void) {
  set_up(2);
  rdm_encoder first;
  rdm_encoder second;
  rdm_event event;
  rdm_event done;
  void *host = NULL;
  void *seen = NULL;
  CHECK_OK(rdm_host_memory_allocate(kernels[0].device, sizeof(float), &host));
  CHECK_OK(rdm_host_memory_allocate(kernels[1].device, sizeof(float), &seen));
  *(float *)host = 1.0f;
  *(float *)seen = -1.0f;
  void *memory[2];
  for (int i = 0; i < 2; i++) CHECK_OK(rdm_memory_allocate(kernels[i].device, sizeof(float), &memory[i]));
  CHECK_OK(rdm_encoder_get(streams[0], &first));
  CHECK_OK(rdm_encoder_get(streams[1], &second));
  CHECK_OK(rdm_event_create(kernels[0].device, RDM_EVENT_DEFAULT, &event));
  CHECK_OK(rdm_event_create(kernels[1].device, RDM_EVENT_DEFAULT, &done));
  CHECK_OK(rdm_sim_hold(0, 1));
  CHECK_OK(rdm_encoder_copy(first, memory[0], host, sizeof(float), RDM_COPY_HOST_TO_DEVICE));
  CHECK_OK(work_submit_step(first, &kernels[0], memory[0], 1));
  CHECK_OK(rdm_encoder_copy(first, host, memory[0], sizeof(float), RDM_COPY_DEVICE_TO_HOST));
  CHECK_OK(rdm_encoder_record_event(first, event));
  CHECK_OK(rdm_encoder_wait_event(second, event));
  CHECK_OK(rdm_encoder_copy(second, memory[1], host, sizeof(float), RDM_COPY_HOST_TO_DEVICE));
  CHECK_OK(work_submit_step(second, &kernels[1], memory[1], 1));
  CHECK_OK(rdm_encoder_copy(second, seen, memory[1], sizeof(float), RDM_COPY_DEVICE_TO_HOST));
  CHECK_OK(rdm_encoder_record_event(second, done));
  /* What waits for the event still does once its handle is gone. */
  CHECK_OK(rdm_event_release(event));
  CHECK_STATUS(rdm_event_wait(done, 50 * TEST_MILLISECOND), RDM_ERROR_TIMEOUT);
  CHECK_OK(rdm_sim_hold(0, 0));
  CHECK_OK(rdm_event_wait(done, RDM_WAIT_FOREVER));
  double result = *(float *)seen;
  CHECK_THAT(result == 7.0, "device 1 computed %g, from what device 0 had not finished", result);
}

/* ---- Lives ------------------------------------------------------------------------------------------------------ */

static void field_log_09_an_event_outlives_its_stream_and_its_encoder(void) {
  set_up(1);
  rdm_stream stream;
  rdm_encoder encoder;
  rdm_event event;
  CHECK_OK(rdm_event_create(kernels[0].device, RDM_EVENT_DEFAULT, &event));
  for (int i = 0; i < 2; i++) {
    CHECK_OK(rdm_stream_create(0, &stream));
    CHECK_OK(rdm_encoder_get(stream, &encoder));
    CHECK_OK(rdm_sim_hold(0, 1));
    CHECK_OK(rdm_encoder_record_event(encoder, event));
    if (i == 0) CHECK_OK(rdm_clear_encoders());
    CHECK_OK(rdm_stream_release(stream));
    CHECK_STATUS(rdm_event_query(event), RDM_NOT_READY);
    CHECK_OK(rdm_sim_hold(0, 0));
    CHECK_OK(rdm_event_wait(event, RDM_WAIT_FOREVER));
    CHECK_OK(rdm_event_query(event));
  }
}

static rdm_event shared_event;
static atomic_uint waiting;

static void wait_for_shared_event(unsigned number) {
  (void)number;
  waiting++;
  rdm_status status = rdm_event_wait(shared_event, 10 * TEST_SECOND);
  CHECK_THAT(status == RDM_OK || status == RDM_ERROR_STALE_HANDLE, "%s", rdm_status_name(status));
}

static void *release_while_others_wait(void *argument) {
  (void)argument;
  while (waiting < THREADS) test_sleep_ns(TEST_MILLISECOND);
  test_sleep_ns(20 * TEST_MILLISECOND);
  CHECK_OK(rdm_event_release(shared_event));
  CHECK_STATUS(rdm_event_release(shared_event), RDM_ERROR_STALE_HANDLE);
  /* The pool may hand the driver's event to someone else at once; the waiting threads must not notice. */
  rdm_event other;
  CHECK_OK(rdm_event_create(kernels[0].device, RDM_EVENT_DEFAULT, &other));
  test_sleep_ns(20 * TEST_MILLISECOND);
  CHECK_OK(rdm_sim_hold(0, 0));
  return NULL;
}

static void an_event_released_while_others_wait_ends_their_waits(void) {
  set_up(1);
  rdm_encoder encoder;
  CHECK_OK(rdm_event_create(kernels[0].device, RDM_EVENT_DEFAULT, &shared_event));
  CHECK_OK(rdm_encoder_get(streams[0], &encoder));
  CHECK_OK(rdm_sim_hold(0, 1));
  CHECK_OK(rdm_encoder_record_event(encoder, shared_event));
  pthread_t releaser = test_start_thread(release_while_others_wait, NULL);
  uint64_t start = test_now_ns();
  test_run_threads(THREADS, wait_for_shared_event);
  test_join_thread(releaser);
  CHECK_THAT(test_now_ns() - start < 5 * TEST_SECOND, "the waits ended late");
}

static _Atomic(uint64_t) published_bits;
static atomic_bool stop;

static void release_or_query(unsigned number) {
  if (number > 0) {
    while (!stop) {
      rdm_event event = {published_bits};
      rdm_status status = event.bits == 0 ? RDM_ERROR_STALE_HANDLE : rdm_event_query(event);
      CHECK_THAT(status == RDM_NOT_READY || status == RDM_ERROR_NOT_RECORDED || status == RDM_ERROR_STALE_HANDLE,
                 "%s: %s", rdm_status_name(status), rdm_last_error_message());
    }
    return;
  }
  for (int i = 0; i < 200000 / TEST_SLOWDOWN; i++) {
    rdm_event event;
    CHECK_OK(rdm_event_create(kernels[0].device, RDM_EVENT_DEFAULT, &event));
    published_bits = event.bits;
    CHECK_OK(rdm_event_release(event));
  }
  stop = true;
}

static void field_log_09_a_handle_released_at_any_moment_is_stale_and_never_foreign(void) {
  set_up(1);
  test_run_threads(4, release_or_query);
}

/* ---- Not ready is no error -------------------------------------------------------------------------------------- */

static rdm_event make_pending_event(void) {
  rdm_encoder encoder;
  rdm_event event;
  CHECK_OK(rdm_encoder_get(streams[0], &encoder));
  CHECK_OK(rdm_event_create(kernels[0].device, RDM_EVENT_DEFAULT, &event));
  CHECK_OK(rdm_sim_hold(0, 1));
  CHECK_OK(rdm_encoder_record_event(encoder, event));
  return event;
}

static void field_log_13_polling_a_pending_event_leaves_no_error_for_a_later_launch(void) {
  set_up(2);
  rdm_event event = make_pending_event();
  for (int i = 0; i < 1000; i++) CHECK_STATUS(rdm_event_query(event), RDM_NOT_READY);
  CHECK_STATUS(rdm_event_wait(event, 5 * TEST_MILLISECOND), RDM_ERROR_TIMEOUT);
  int left = other_code_peeks_at_last_error();
  CHECK_THAT(left == 0, "polling left the driver's last error at %d", left);
  CHECK_OK(work_on_new_stream(1, 1));
  CHECK_OK(rdm_sim_hold(0, 0));
  CHECK_OK(rdm_event_wait(event, RDM_WAIT_FOREVER));
  CHECK_OK(rdm_stream_synchronize(streams[0], RDM_WAIT_FOREVER));
  rdm_error error = {.struct_size = sizeof error};
  CHECK_OK(rdm_stream_take_error(streams[0], &error));
  CHECK_STATUS(error.status, RDM_OK);
}

static void not_ready_leaves_the_threads_last_error_as_it_is(void) {
  set_up(1);
  rdm_event event = make_pending_event();
  rdm_device device;
  CHECK_STATUS(rdm_device_get(-1, &device), RDM_ERROR_INVALID_DEVICE);
  for (int i = 0; i < 10; i++) CHECK_STATUS(rdm_event_query(event), RDM_NOT_READY);
  rdm_error error = {.struct_size = sizeof error};
  CHECK_OK(rdm_last_error(&error));
  CHECK_STATUS(error.status, RDM_ERROR_INVALID_DEVICE);
  CHECK_OK(rdm_sim_hold(0, 0));
}

/* Other code of this thread leaves its error 101 in the driver's last-error slot. */
static void leave_an_error(void) {
  CHECK(other_code_sets_device(77) == INVALID_DEVICE);
  CHECK(other_code_peeks_at_last_error() == INVALID_DEVICE);
}

static void an_error_pending_from_other_code_is_not_blamed_on_us(void) {
  set_up(1);
  leave_an_error();
  CHECK_OK(work_on_new_stream(0, 1));
  leave_an_error();
  rdm_event event;
  CHECK_OK(rdm_event_create(kernels[0].device, RDM_EVENT_DEFAULT, &event));
  record_and_wait(streams[0], event);
  CHECK_OK(rdm_event_release(event));
}

static void an_error_pending_from_other_code_is_left_by_calls_that_succeed(void) {
  set_up(1);
  rdm_encoder encoder;
  rdm_event event;
  void *memory = NULL;
  CHECK_OK(rdm_memory_allocate(kernels[0].device, 64, &memory));
  leave_an_error();
  CHECK_OK(rdm_encoder_get(streams[0], &encoder));
  CHECK_OK(rdm_event_create(kernels[0].device, RDM_EVENT_DEFAULT, &event));
  CHECK_OK(rdm_encoder_fill(encoder, memory, 0, 64));
  CHECK_OK(work_submit_step(encoder, &kernels[0], memory, 1));
  CHECK_OK(rdm_encoder_record_event(encoder, event));
  CHECK_OK(rdm_stream_finalize(streams[0]));
  int pending = other_code_peeks_at_last_error();
  CHECK_THAT(pending == INVALID_DEVICE, "other code's pending error 101 became %d", pending);
}

/* Every wait and query of ours, with the device held and let go, on a thread where other code's error is pending. */
static void field_log_13_an_error_pending_from_other_code_outlives_our_polls(void) {
  set_up(2);
  rdm_stream stream;
  rdm_encoder encoder;
  rdm_event event = make_pending_event();
  leave_an_error();
  uint64_t polls = calls_made("hipEventQuery");
  for (int i = 0; i < 1000; i++) CHECK_STATUS(rdm_event_query(event), RDM_NOT_READY);
  CHECK(calls_made("hipEventQuery") >= polls + 1000);
  CHECK(other_code_peeks_at_last_error() == INVALID_DEVICE);
  CHECK_STATUS(rdm_event_wait(event, 5 * TEST_MILLISECOND), RDM_ERROR_TIMEOUT);
  CHECK_STATUS(rdm_stream_synchronize(streams[0], 5 * TEST_MILLISECOND), RDM_ERROR_TIMEOUT);
  CHECK_STATUS(rdm_device_synchronize(kernels[0].device, 5 * TEST_MILLISECOND), RDM_ERROR_TIMEOUT);
  CHECK(other_code_peeks_at_last_error() == INVALID_DEVICE);
  /* An ended stream whose queue still has work is passed over by the next one. */
  CHECK_OK(rdm_stream_create(0, &stream));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
  CHECK_OK(rdm_encoder_record_event(encoder, event));
  CHECK_OK(rdm_stream_release(stream));
  CHECK_OK(rdm_stream_create(0, &stream));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
  CHECK(other_code_peeks_at_last_error() == INVALID_DEVICE);
  CHECK_OK(rdm_sim_hold(0, 0));
  CHECK_OK(rdm_event_wait(event, RDM_WAIT_FOREVER));
  CHECK_OK(rdm_event_query(event));
  CHECK_OK(rdm_stream_synchronize(streams[0], RDM_WAIT_FOREVER));
  CHECK_OK(rdm_device_synchronize(kernels[0].device, RDM_WAIT_FOREVER));
  CHECK(other_code_peeks_at_last_error() == INVALID_DEVICE);
  /* What fails of ours is told as ours, and is not other code's. */
  CHECK_OK(rdm_sim_inject("hipEventQuery", 1, 1, RDM_HIP_INVALID_VALUE, 0));
  CHECK_STATUS(rdm_event_query(event), RDM_ERROR_DRIVER);
  rdm_error error = {.struct_size = sizeof error};
  CHECK_OK(rdm_last_error(&error));
  CHECK_THAT(error.driver_code == RDM_HIP_INVALID_VALUE && strcmp(error.call, "hipEventQuery") == 0, "%s",
             error.message);
  CHECK(other_code_peeks_at_last_error() == INVALID_DEVICE);
}

static atomic_uint polls_ended;

static void poll_with_an_error_pending(unsigned number) {
  leave_an_error();
  rdm_status status;
  do {
    status = number % 2 == 0 ? rdm_event_query(shared_event) : rdm_event_wait(shared_event, TEST_MILLISECOND);
  } while (status == RDM_NOT_READY || status == RDM_ERROR_TIMEOUT);
  CHECK_STATUS(status, RDM_ERROR_DEVICE_FAULT);
  CHECK(strstr(rdm_last_error_message(), "hipErrorIllegalAddress") != NULL);
  polls_ended++;
}

static void *fault_soon(void *argument) {
  (void)argument;
  test_sleep_ns(50 * TEST_MILLISECOND);
  CHECK_OK(rdm_sim_fault(0, RDM_HIP_ILLEGAL_ADDRESS));
  return NULL;
}

static void many_threads_with_errors_pending_poll_at_once_and_see_a_fault(void) {
  set_up(2);
  shared_event = make_pending_event();
  pthread_t thread = test_start_thread(fault_soon, NULL);
  test_run_threads(THREADS, poll_with_an_error_pending);
  test_join_thread(thread);
  CHECK(polls_ended == THREADS);
  CHECK_OK(work_on_new_stream(1, 1));
}

/* The runtime refuses what is not permitted while a stream captures: an error like another, and no fault. */
static void field_log_16_a_call_refused_during_a_capture_latches_nothing(void) {
  enum { CAPTURE_UNSUPPORTED = 900 };
  set_up(1);
  rdm_event event;
  rdm_encoder encoder;
  CHECK_OK(rdm_encoder_get(streams[0], &encoder));
  CHECK_OK(rdm_event_create(kernels[0].device, RDM_EVENT_DEFAULT, &event));
  CHECK_OK(rdm_encoder_record_event(encoder, event));
  CHECK_OK(rdm_sim_inject("hipEventQuery", 1, 3, CAPTURE_UNSUPPORTED, 0));
  for (int i = 0; i < 3; i++) CHECK_STATUS(rdm_event_query(event), RDM_ERROR_CAPTURING);
  rdm_error error = {.struct_size = sizeof error};
  CHECK_OK(rdm_last_error(&error));
  CHECK(error.driver_code == CAPTURE_UNSUPPORTED && other_code_peeks_at_last_error() == 0);
  CHECK_OK(rdm_event_wait(event, RDM_WAIT_FOREVER));
  CHECK_OK(work_on_new_stream(0, 1));
}

const test_case event_tests[] = {
    {.name = "field_log_13_an_error_pending_from_other_code_outlives_our_polls",
     .function = field_log_13_an_error_pending_from_other_code_outlives_our_polls},
    {.name = "many_threads_with_errors_pending_poll_at_once_and_see_a_fault",
     .function = many_threads_with_errors_pending_poll_at_once_and_see_a_fault,
     .writes_to_standard_error = true},
    {.name = "field_log_16_a_call_refused_during_a_capture_latches_nothing",
     .function = field_log_16_a_call_refused_during_a_capture_latches_nothing},
    {.name = "field_log_08_pooled_events_keep_to_their_device_and_flags",
     .function = field_log_08_pooled_events_keep_to_their_device_and_flags},
    {.name = "a_pool_is_bounded", .function = a_pool_is_bounded},
    {.name = "a_pool_that_can_not_be_trimmed_fails_no_call", .function = a_pool_that_can_not_be_trimmed_fails_no_call},
    {.name = "field_log_08_a_record_that_fails_leaves_the_event_not_recorded",
     .function = field_log_08_a_record_that_fails_leaves_the_event_not_recorded},
    {.name = "an_event_orders_work_of_two_devices", .function = an_event_orders_work_of_two_devices},
    {.name = "field_log_09_an_event_outlives_its_stream_and_its_encoder",
     .function = field_log_09_an_event_outlives_its_stream_and_its_encoder},
    {.name = "an_event_released_while_others_wait_ends_their_waits",
     .function = an_event_released_while_others_wait_ends_their_waits},
    {.name = "field_log_09_a_handle_released_at_any_moment_is_stale_and_never_foreign",
     .function = field_log_09_a_handle_released_at_any_moment_is_stale_and_never_foreign},
    {.name = "field_log_13_polling_a_pending_event_leaves_no_error_for_a_later_launch",
     .function = field_log_13_polling_a_pending_event_leaves_no_error_for_a_later_launch},
    {.name = "not_ready_leaves_the_threads_last_error_as_it_is",
     .function = not_ready_leaves_the_threads_last_error_as_it_is},
    {.name = "an_error_pending_from_other_code_is_not_blamed_on_us",
     .function = an_error_pending_from_other_code_is_not_blamed_on_us},
    {.name = "an_error_pending_from_other_code_is_left_by_calls_that_succeed",
     .function = an_error_pending_from_other_code_is_left_by_calls_that_succeed},
    {0},
};
