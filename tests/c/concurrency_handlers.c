/* Completion handlers: once each, in order, off the driver's own threads, and free to call the library. */
#include "calls.h"
#include "concurrency.h"
#include "work.h"

#include <stdatomic.h>
#include <stdlib.h>

static rdm_device device;
static rdm_stream stream;
static rdm_encoder encoder;

static void set_up(void) {
  test_use_sim(2);
  CHECK_OK(rdm_device_get(0, &device));
  CHECK_OK(rdm_stream_create(0, &stream));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
}

static void wait_until(const atomic_uint *value, unsigned expected) {
  for (int i = 0; i < 20000 && *value != expected; i++) test_sleep_ns(TEST_MILLISECOND);
  CHECK_THAT(*value == expected, "%u of %u handlers have run", *value, expected);
}

/* ---- How many, and in which order ------------------------------------------------------------------------------- */

enum { OUTSTANDING = 60000 / TEST_SLOWDOWN };
static atomic_uint next_expected;

static void check_order(rdm_status status, void *user_data) {
  CHECK_STATUS(status, RDM_OK);
  unsigned number = (unsigned)(uintptr_t)user_data;
  unsigned expected = atomic_fetch_add(&next_expected, 1);
  CHECK_THAT(number == expected, "handler %u ran in place of %u", number, expected);
}

static void field_log_17_sixty_thousand_outstanding_handlers_run_once_each_in_order(void) {
  set_up();
  CHECK_OK(rdm_sim_hold(0, 1));
  for (unsigned i = 0; i < OUTSTANDING; i++) {
    CHECK_OK(rdm_encoder_add_completion_handler(encoder, check_order, (void *)(uintptr_t)i));
    CHECK_OK(rdm_encoder_commit(encoder));
  }
  CHECK(next_expected == 0);
  CHECK_OK(rdm_sim_hold(0, 0));
  CHECK_OK(rdm_stream_synchronize(stream, RDM_WAIT_FOREVER));
  CHECK_THAT(next_expected == OUTSTANDING, "synchronize returned after %u of %d handlers", next_expected, OUTSTANDING);
  test_sleep_ns(20 * TEST_MILLISECOND);
  CHECK(next_expected == OUTSTANDING);
}

static void handlers_of_one_batch_run_after_its_work_in_order(void) {
  set_up();
  CHECK_OK(rdm_sim_hold(0, 1));
  for (unsigned i = 0; i < 100; i++) {
    CHECK_OK(rdm_encoder_add_completion_handler(encoder, check_order, (void *)(uintptr_t)i));
  }
  test_sleep_ns(20 * TEST_MILLISECOND);
  CHECK_OK(rdm_stream_finalize(stream));
  test_sleep_ns(20 * TEST_MILLISECOND);
  CHECK_THAT(next_expected == 0, "handlers ran before the work had completed");
  CHECK_OK(rdm_sim_hold(0, 0));
  wait_until(&next_expected, 100);
}

static void a_batch_without_handlers_makes_no_driver_call(void) {
  set_up();
  uint64_t before = calls_made(NULL);
  CHECK_OK(rdm_encoder_commit(encoder));
  CHECK_OK(rdm_stream_finalize(stream));
  CHECK(calls_made(NULL) == before);
}

/* ---- What a handler may do -------------------------------------------------------------------------------------- */

typedef struct gift {
  rdm_stream stream;
  rdm_event event;
} gift;

static atomic_uint handlers_run;

/* Releases what was made for it, submits to the shared stream, and finds every function that waits refused. */
static void call_back_in(rdm_status status, void *user_data) {
  gift *own = user_data;
  rdm_encoder shared;
  CHECK_STATUS(status, RDM_OK);
  CHECK_STATUS(rdm_stream_synchronize(stream, RDM_WAIT_FOREVER), RDM_ERROR_IN_CALLBACK);
  CHECK_STATUS(rdm_stream_synchronize(own->stream, 0), RDM_ERROR_IN_CALLBACK);
  CHECK_STATUS(rdm_device_synchronize(device, RDM_WAIT_FOREVER), RDM_ERROR_IN_CALLBACK);
  CHECK_STATUS(rdm_event_wait(own->event, RDM_WAIT_FOREVER), RDM_ERROR_IN_CALLBACK);
  CHECK_OK(rdm_event_query(own->event));
  CHECK_OK(rdm_event_release(own->event));
  CHECK_OK(rdm_stream_release(own->stream));
  CHECK_OK(rdm_encoder_get(stream, &shared));
  rdm_status committed = rdm_encoder_commit(shared);
  CHECK(committed == RDM_OK || committed == RDM_ERROR_STALE_HANDLE);
  if (handlers_run % 16 == 3) CHECK_OK(rdm_clear_encoders());
  free(own);
  handlers_run++;
}

enum { GIFTS_EACH = 200 / TEST_SLOWDOWN };

static void submit_gifts(unsigned number) {
  (void)number;
  for (int i = 0; i < GIFTS_EACH; i++) {
    gift *own = malloc(sizeof *own);
    rdm_encoder gift_encoder;
    rdm_status status;
    CHECK(own != NULL);
    CHECK_OK(rdm_stream_create(0, &own->stream));
    CHECK_OK(rdm_event_create(device, RDM_EVENT_DEFAULT, &own->event));
    do {
      CHECK_OK(rdm_encoder_get(own->stream, &gift_encoder));
      status = rdm_encoder_record_event(gift_encoder, own->event);
    } while (status == RDM_ERROR_STALE_HANDLE);
    CHECK_OK(status);
    do {
      CHECK_OK(rdm_encoder_get(own->stream, &gift_encoder));
      status = rdm_encoder_add_completion_handler(gift_encoder, call_back_in, own);
    } while (status == RDM_ERROR_STALE_HANDLE);
    CHECK_OK(status);
    /* From here on the handler may have ended the stream already, where a clear committed the batch. */
    status = rdm_encoder_commit(gift_encoder);
    CHECK(status == RDM_OK || status == RDM_ERROR_STALE_HANDLE);
  }
}

static void field_log_17_handlers_call_the_library_while_two_threads_submit(void) {
  set_up();
  test_run_threads(2, submit_gifts);
  wait_until(&handlers_run, 2 * GIFTS_EACH);
  call_list list = calls_read(0);
  calls_check_current_device(&list);
  calls_free(&list);
}

static atomic_bool handler_may_go;

static void wait_in_handler(rdm_status status, void *user_data) {
  (void)status;
  (void)user_data;
  while (!handler_may_go) test_sleep_ns(TEST_MILLISECOND);
  handlers_run++;
}

static void a_slow_handler_delays_no_submission_and_no_device_work(void) {
  set_up();
  work_kernels kernels;
  work_buffers buffers;
  rdm_event event;
  CHECK_OK(work_load(0, &kernels));
  CHECK_OK(work_buffers_allocate(kernels.device, &buffers));
  CHECK_OK(rdm_event_create(device, RDM_EVENT_DEFAULT, &event));
  CHECK_OK(rdm_encoder_add_completion_handler(encoder, wait_in_handler, NULL));
  CHECK_OK(rdm_encoder_commit(encoder));
  CHECK_OK(work_submit(encoder, &kernels, &buffers));
  CHECK_OK(rdm_encoder_record_event(encoder, event));
  CHECK_OK(rdm_event_wait(event, 5 * TEST_SECOND));
  CHECK(work_count_wrong(&buffers) == 0);
  CHECK_OK(work_on_new_stream(1, 1));
  CHECK_STATUS(rdm_stream_synchronize(stream, 20 * TEST_MILLISECOND), RDM_ERROR_TIMEOUT);
  handler_may_go = true;
  CHECK_OK(rdm_stream_synchronize(stream, RDM_WAIT_FOREVER));
  CHECK(handlers_run == 1);
}

const test_case handler_tests[] = {
    {.name = "field_log_17_sixty_thousand_outstanding_handlers_run_once_each_in_order",
     .function = field_log_17_sixty_thousand_outstanding_handlers_run_once_each_in_order},
    {.name = "handlers_of_one_batch_run_after_its_work_in_order",
     .function = handlers_of_one_batch_run_after_its_work_in_order},
    {.name = "a_batch_without_handlers_makes_no_driver_call",
     .function = a_batch_without_handlers_makes_no_driver_call},
    {.name = "field_log_17_handlers_call_the_library_while_two_threads_submit",
     .function = field_log_17_handlers_call_the_library_while_two_threads_submit},
    {.name = "a_slow_handler_delays_no_submission_and_no_device_work",
     .function = a_slow_handler_delays_no_submission_and_no_device_work},
    {0},
};
