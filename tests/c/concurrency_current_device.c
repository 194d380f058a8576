/* Each driver call is made on the device that it is about, whatever the calling thread had current before. */
#include "calls.h"
#include "concurrency.h"
#include "other_code.h"
#include "work.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { DEVICES = 4, THREADS = 8 };

static work_kernels kernels[DEVICES];
static rdm_stream streams[DEVICES];
static rdm_event events[DEVICES];

/* Loads every device and gives each a stream and a recorded event, from one thread. */
static void make_streams_and_events(int32_t first, int32_t last) {
  for (int32_t i = first; i <= last; i++) {
    rdm_encoder encoder;
    CHECK_OK(work_load(i, &kernels[i]));
    CHECK_OK(rdm_stream_create(i, &streams[i]));
    CHECK_OK(rdm_encoder_get(streams[i], &encoder));
    CHECK_OK(rdm_event_create(kernels[i].device, RDM_EVENT_DEFAULT, &events[i]));
    CHECK_OK(rdm_encoder_record_event(encoder, events[i]));
  }
}

static void check_log(void) {
  call_list list = calls_read(0);
  calls_check_current_device(&list);
  calls_free(&list);
}

/* One call of the library on a device, of a kind chosen at random. */
static void use_device(int32_t index, uint32_t kind, work_buffers *buffers) {
  rdm_encoder encoder;
  rdm_event event;
  uint32_t wrong = 0;
  CHECK_OK(rdm_encoder_get(streams[index], &encoder));
  switch (kind % 6) {
    case 0:
      CHECK_OK(work_evaluate(streams[index], &kernels[index], &buffers[index], &wrong));
      CHECK(wrong == 0);
      break;
    case 1:
      CHECK_OK(rdm_event_create(kernels[index].device, kind / 6 % 2, &event));
      CHECK_OK(rdm_encoder_record_event(encoder, event));
      CHECK_OK(rdm_event_wait(event, RDM_WAIT_FOREVER));
      CHECK_OK(rdm_event_release(event));
      break;
    case 2:
      CHECK_OK(rdm_encoder_wait_event(encoder, events[(index + 1) % DEVICES]));
      break;
    case 3:
      CHECK_OK(work_on_new_stream(index, 1));
      break;
    case 4:
      CHECK_OK(rdm_encoder_fill(encoder, buffers[index].first, 1, 64));
      CHECK_OK(rdm_stream_finalize(streams[index]));
      break;
    default:
      CHECK_OK(rdm_device_synchronize(kernels[index].device, RDM_WAIT_FOREVER));
      break;
  }
}

static void use_devices_at_random(unsigned number) {
  uint64_t state = number;
  work_buffers buffers[DEVICES];
  for (int32_t i = 0; i < DEVICES; i++) CHECK_OK(work_buffers_allocate(kernels[i].device, &buffers[i]));
  for (int i = 0; i < 200 / TEST_SLOWDOWN; i++) {
    /* Other code on this thread moves the current device behind the library's back. */
    if (i % 3 == 0) CHECK(other_code_sets_device((int)(test_random(&state) % DEVICES)) == 0);
    use_device((int32_t)(test_random(&state) % DEVICES), test_random(&state), buffers);
  }
  for (int32_t i = 0; i < DEVICES; i++) CHECK_OK(work_buffers_free(&buffers[i]));
}

static void every_call_runs_on_the_device_it_names(void) {
  test_use_sim(DEVICES);
  make_streams_and_events(0, DEVICES - 1);
  test_run_threads(THREADS, use_devices_at_random);
  check_log();
}

/* A thread that has made no device current, and then one that other code has moved to device 0, use a cached stream. */
static void *use_cached_stream(void *argument) {
  (void)argument;
  rdm_encoder encoder;
  work_buffers buffers;
  uint32_t wrong = 1;
  for (int i = 0; i < 2; i++) {
    CHECK_OK(rdm_encoder_get(streams[1], &encoder));
    CHECK_OK(rdm_encoder_record_event(encoder, events[1]));
    CHECK_OK(work_buffers_allocate(kernels[1].device, &buffers));
    CHECK_OK(work_evaluate(streams[1], &kernels[1], &buffers, &wrong));
    CHECK(wrong == 0);
    CHECK_OK(work_buffers_free(&buffers));
    CHECK(other_code_sets_device(0) == 0);
  }
  return NULL;
}

static void field_log_04_a_cached_stream_is_used_on_its_device_by_a_fresh_thread(void) {
  test_use_sim(2);
  make_streams_and_events(1, 1);
  test_join_thread(test_start_thread(use_cached_stream, NULL));
  check_log();
}

static void make_current_holds_after_other_code_moved_the_device(void) {
  test_use_sim(3);
  rdm_device device;
  CHECK_OK(rdm_device_get(2, &device));
  for (int i = 0; i < 3; i++) {
    CHECK_OK(rdm_device_make_current(device));
    CHECK(other_code_gets_device() == 2);
    CHECK(other_code_sets_device(i % 2) == 0);
  }
}

/* Fresh threads, which start on device 0, wait for, query and release what device 2 owns. */
static void poll_device_2(unsigned number) {
  rdm_event event;
  rdm_encoder encoder;
  CHECK_OK(rdm_event_create(kernels[2].device, RDM_EVENT_DEFAULT, &event));
  CHECK_OK(rdm_encoder_get(streams[2], &encoder));
  CHECK_OK(rdm_encoder_record_event(encoder, event));
  while (rdm_event_query(event) == RDM_NOT_READY) test_sleep_ns(TEST_MILLISECOND);
  CHECK_OK(rdm_event_wait(events[2], RDM_WAIT_FOREVER));
  CHECK_OK(rdm_stream_synchronize(streams[2], RDM_WAIT_FOREVER));
  CHECK_OK(rdm_event_release(event));
  if (number % 2 == 0) CHECK_OK(work_on_new_stream(2, 1));
  if (number == 1) CHECK_OK(rdm_clear_encoders());
}

static void ignore_status(rdm_status status, void *user_data) {
  (void)status;
  (void)user_data;
}

static void field_log_03_fresh_threads_of_a_process_on_device_2_leave_device_0_alone(void) {
  test_use_sim(DEVICES);
  make_streams_and_events(2, 2);
  rdm_encoder encoder;
  CHECK_OK(rdm_encoder_get(streams[2], &encoder));
  CHECK_OK(rdm_encoder_add_completion_handler(encoder, ignore_status, NULL));
  CHECK_OK(rdm_encoder_commit(encoder));
  for (int i = 0; i < 4; i++) {
    /* One at a time where encoders are cleared, so that no thread holds one that goes stale. */
    poll_device_2(1);
    test_run_threads(1, poll_device_2);
  }
  CHECK_OK(rdm_stream_release(streams[2]));
  CHECK_OK(rdm_event_release(events[2]));
  test_sleep_ns(50 * TEST_MILLISECOND);
  call_list list = calls_read(0);
  calls_check_only_device(&list, 2);
  calls_free(&list);
}

const test_case current_device_tests[] = {
    {.name = "every_call_runs_on_the_device_it_names", .function = every_call_runs_on_the_device_it_names},
    {.name = "field_log_04_a_cached_stream_is_used_on_its_device_by_a_fresh_thread",
     .function = field_log_04_a_cached_stream_is_used_on_its_device_by_a_fresh_thread},
    {.name = "make_current_holds_after_other_code_moved_the_device",
     .function = make_current_holds_after_other_code_moved_the_device},
    {.name = "field_log_03_fresh_threads_of_a_process_on_device_2_leave_device_0_alone",
     .function = field_log_03_fresh_threads_of_a_process_on_device_2_leave_device_0_alone},
    {0},
};
