/* Stream captures by other code, while the library works: field log 16. */
#include "capture_work.h"
#include "concurrency.h"
#include "other_code.h"
#include "work.h"

#include <stdatomic.h>
#include <string.h>

enum { GLOBAL = 0, THREAD_LOCAL = 1, RELAXED = 2 };
enum { NOTHING = 0, WHOLE = 1 };
enum { THREADS = 6, ROUNDS = 4, INVALIDATED = 901 };

static void *foreign;

/* What leaves an error pending makes the library's own thread poll. */
static void work_and_keep_the_mode(unsigned number) {
  bool polled_elsewhere = number % 2 == 1;
  for (int i = 0; i < ROUNDS; i++) {
    if (polled_elsewhere) CHECK(other_code_sets_device(99) != 0);
    capture_work_do((int32_t)(number % 2));
    CHECK(other_code_gets_capture_mode() == GLOBAL);
  }
}

static void begin_capture(int mode) {
  CHECK(other_code_sets_device(0) == 0);
  if (foreign == NULL) foreign = other_code_creates_stream();
  CHECK(other_code_begins_capture(foreign, mode) == 0);
}

static void check_whole_and_end(void) {
  CHECK(other_code_asks_for_capture(foreign) == WHOLE);
  CHECK(other_code_ends_capture(foreign) == 0);
  capture_work_do(0);
}

static void field_log_16_a_global_capture_of_other_code_outlives_all_that_the_library_does(void) {
  test_use_sim(2);
  rdm_device device;
  CHECK_OK(rdm_device_get(0, &device));
  begin_capture(GLOBAL);
  /* That it is one which another call of other code would end. */
  test_run_threads(THREADS, work_and_keep_the_mode);
  check_whole_and_end();
}

static void *allocate_elsewhere(void *argument) {
  *(int *)argument = other_code_allocates();
  return NULL;
}

static void the_same_capture_is_lost_to_an_allocation_of_other_code(void) {
  test_use_sim(1);
  capture_work_do(0);
  begin_capture(GLOBAL);
  int error = 0;
  test_join_thread(test_start_thread(allocate_elsewhere, &error));
  CHECK(error == 900 && other_code_asks_for_capture(foreign) == 2);
  CHECK(other_code_ends_capture(foreign) == INVALIDATED);
  capture_work_do(0);
}

/* The capturing thread itself may use the library for its other streams, whatever the mode. */
static void field_log_16_the_capturing_thread_may_use_the_library_for_other_streams(void) {
  test_use_sim(2);
  CHECK_OK(work_on_new_stream(0, 1));
  for (int mode = GLOBAL; mode <= RELAXED; mode++) {
    begin_capture(mode);
    capture_work_do(0);
    capture_work_do(1);
    CHECK(other_code_sets_device(0) == 0);
    check_whole_and_end();
  }
}

/* ---- A capture of a stream of the library's own ------------------------------------------------------------------ */

static work_kernels kernels;
static work_buffers buffers;
static rdm_stream stream;
static rdm_encoder encoder;
static rdm_event event;
static void *native;
static atomic_uint handlers_run;

static void count_run(rdm_status status, void *user_data) {
  (void)user_data;
  CHECK_OK(status);
  handlers_run++;
}

static void capture_own_stream(void) {
  test_use_sim(1);
  CHECK_OK(work_load(0, &kernels));
  CHECK_OK(work_buffers_allocate(kernels.device, &buffers));
  CHECK_OK(rdm_event_create(kernels.device, RDM_EVENT_DEFAULT, &event));
  CHECK_OK(rdm_stream_create(0, &stream));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
  CHECK_OK(rdm_encoder_get_native_stream(encoder, &native));
  CHECK(other_code_begins_capture(native, GLOBAL) == 0);
}

static void check_capturing(rdm_status status) {
  rdm_device_info info = {.struct_size = sizeof info};
  CHECK_THAT(status == RDM_ERROR_CAPTURING, "%s: %s", rdm_status_name(status), rdm_last_error_message());
  CHECK_OK(rdm_device_get_info(kernels.device, &info));
  CHECK(info.faulted == 0);
}

static void check_all_works(void) {
  uint32_t wrong = 1;
  rdm_error error = {.struct_size = sizeof error};
  CHECK_OK(rdm_stream_take_error(stream, &error));
  CHECK_OK(work_evaluate(stream, &kernels, &buffers, &wrong));
  CHECK(wrong == 0);
  CHECK_OK(rdm_encoder_record_event(encoder, event));
  CHECK_OK(rdm_event_wait(event, RDM_WAIT_FOREVER));
  CHECK_OK(work_on_new_stream(0, 1));
}

/* What is refused by the library itself costs the capture nothing. */
static void field_log_16_to_wait_for_a_captured_stream_is_refused_and_its_capture_stays(void) {
  capture_own_stream();
  CHECK_OK(work_submit(encoder, &kernels, &buffers));
  check_capturing(rdm_stream_synchronize(stream, RDM_WAIT_FOREVER));
  check_capturing(rdm_device_synchronize(kernels.device, RDM_WAIT_FOREVER));
  CHECK(other_code_asks_for_capture(native) == WHOLE && other_code_ends_capture(native) == 0);
  /* What was captured did not run. */
  CHECK(work_count_wrong(&buffers) > 0);
  check_all_works();
}

/* Handlers of a batch that is committed meanwhile run when the capture is over, once, and break it neither. */
static void field_log_16_handlers_wait_until_the_capture_is_over(void) {
  capture_own_stream();
  CHECK_OK(rdm_encoder_add_completion_handler(encoder, count_run, NULL));
  CHECK_OK(rdm_encoder_commit(encoder));
  /* Several looks of the completion thread. */
  test_sleep_ns(100 * TEST_MILLISECOND);
  CHECK(handlers_run == 0 && other_code_asks_for_capture(native) == WHOLE);
  CHECK(other_code_ends_capture(native) == 0);
  CHECK_OK(rdm_stream_synchronize(stream, RDM_WAIT_FOREVER));
  CHECK(handlers_run == 1);
  check_all_works();
}

/* The driver refuses it, and by that the capture is lost; nothing else is. */
static void field_log_16_to_ask_for_a_captured_event_is_refused_and_no_fault(void) {
  capture_own_stream();
  CHECK_OK(rdm_encoder_record_event(encoder, event));
  check_capturing(rdm_event_query(event));
  CHECK(strstr(rdm_last_error_message(), "hipErrorCapturedEvent") != NULL);
  check_capturing(rdm_event_wait(event, RDM_WAIT_FOREVER));
  CHECK(other_code_peeks_at_last_error() == 0);
  check_capturing(rdm_encoder_fill(encoder, buffers.first, 0, 4));
  CHECK(other_code_ends_capture(native) == INVALIDATED);
  check_all_works();
}

/* A stream that has ended may still be captured by who was lent it: a new one is not given that queue, nor asks it. */
static void a_queue_that_is_captured_serves_no_new_stream(void) {
  capture_own_stream();
  CHECK_OK(rdm_stream_release(stream));
  CHECK_OK(work_on_new_stream(0, 2));
  CHECK(other_code_asks_for_capture(native) == WHOLE && other_code_ends_capture(native) == 0);
  CHECK_OK(work_on_new_stream(0, 2));
}

const test_case capture_tests[] = {
    {.name = "field_log_16_a_global_capture_of_other_code_outlives_all_that_the_library_does",
     .function = field_log_16_a_global_capture_of_other_code_outlives_all_that_the_library_does},
    {.name = "the_same_capture_is_lost_to_an_allocation_of_other_code",
     .function = the_same_capture_is_lost_to_an_allocation_of_other_code},
    {.name = "field_log_16_the_capturing_thread_may_use_the_library_for_other_streams",
     .function = field_log_16_the_capturing_thread_may_use_the_library_for_other_streams},
    {.name = "field_log_16_to_wait_for_a_captured_stream_is_refused_and_its_capture_stays",
     .function = field_log_16_to_wait_for_a_captured_stream_is_refused_and_its_capture_stays},
    {.name = "field_log_16_handlers_wait_until_the_capture_is_over",
     .function = field_log_16_handlers_wait_until_the_capture_is_over},
    {.name = "field_log_16_to_ask_for_a_captured_event_is_refused_and_no_fault",
     .function = field_log_16_to_ask_for_a_captured_event_is_refused_and_no_fault},
    {.name = "a_queue_that_is_captured_serves_no_new_stream",
     .function = a_queue_that_is_captured_serves_no_new_stream},
    {0},
};
