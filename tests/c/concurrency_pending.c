/* What is pending, and who may not wait for it: batches, handlers, queues of streams that have ended. */
#include "calls.h"
#include "concurrency.h"
#include "other_code.h"

#include <stdatomic.h>

static const uint64_t in_time_ns = 5 * TEST_SECOND;

static rdm_device devices[2];
static rdm_stream stream;
static rdm_encoder encoder;
static char *memory;

static void set_up(void) {
  void *allocated = NULL;
  test_use_sim(2);
  for (int32_t i = 0; i < 2; i++) CHECK_OK(rdm_device_get(i, &devices[i]));
  CHECK_OK(rdm_memory_allocate(devices[0], 64, &allocated));
  memory = allocated;
  CHECK_OK(rdm_stream_create(0, &stream));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
}

static void *native_of(rdm_encoder of) {
  void *native = NULL;
  CHECK_OK(rdm_encoder_get_native_stream(of, &native));
  return native;
}

/* A stream made after `stream` was released, and its driver stream. */
static void *native_of_a_fresh_stream(rdm_stream *out_stream, rdm_encoder *out_encoder) {
  CHECK_OK(rdm_stream_create(0, out_stream));
  CHECK_OK(rdm_encoder_get(*out_stream, out_encoder));
  return native_of(*out_encoder);
}

/* ---- Handlers --------------------------------------------------------------------------------------------------- */

static atomic_uint runs;
static _Atomic rdm_status last_status;
static atomic_bool may_go_on;

static void count_run(rdm_status status, void *user_data) {
  (void)user_data;
  last_status = status;
  runs++;
}

static void do_nothing(rdm_status status, void *user_data) {
  (void)status;
  (void)user_data;
}

static void stand_still(rdm_status status, void *user_data) {
  (void)status;
  (void)user_data;
  runs++;
  while (!may_go_on) test_sleep_ns(TEST_MILLISECOND);
}

static void wait_for_runs(unsigned wanted) {
  uint64_t end = test_now_ns() + in_time_ns;
  while (runs < wanted && test_now_ns() < end) test_sleep_ns(TEST_MILLISECOND);
  CHECK_THAT(runs >= wanted, "%u of %u handlers ran", runs, wanted);
}

static void at_most_64_callbacks_are_outstanding(void) {
  enum { BATCHES = 300 };
  set_up();
  CHECK_OK(rdm_sim_hold(0, 1));
  for (int i = 0; i < BATCHES; i++) {
    CHECK_OK(rdm_encoder_add_completion_handler(encoder, count_run, NULL));
    CHECK_OK(rdm_encoder_commit(encoder));
  }
  uint64_t made = calls_made("hipLaunchHostFunc");
  CHECK_THAT(made == 64, "%llu callbacks are outstanding", (unsigned long long)made);
  CHECK_OK(rdm_sim_hold(0, 0));
  wait_for_runs(BATCHES);
}

/* After a fault no callback comes, and here nobody calls the library either. */
static void a_fault_that_no_call_meets_reaches_the_handlers(void) {
  set_up();
  CHECK_OK(rdm_sim_hold(0, 1));
  CHECK_OK(rdm_encoder_add_completion_handler(encoder, count_run, NULL));
  CHECK_OK(rdm_encoder_commit(encoder));
  CHECK_OK(rdm_sim_fault(0, 700));
  wait_for_runs(1);
  CHECK_STATUS(last_status, RDM_ERROR_DEVICE_FAULT);
}

enum { BUSY_THREADS = 4 };

static void *keep_committing(void *argument) {
  rdm_stream busy;
  rdm_encoder own;
  (void)argument;
  CHECK_OK(rdm_stream_create(0, &busy));
  CHECK_OK(rdm_encoder_get(busy, &own));
  while (!may_go_on) {
    CHECK_OK(rdm_encoder_add_completion_handler(own, do_nothing, NULL));
    CHECK_OK(rdm_encoder_commit(own));
    test_sleep_ns(TEST_MILLISECOND / 4);
  }
  return NULL;
}

/* No callback can be enqueued, so the thread has to look; and streams that are committed to again and again keep waking
 * it for something else. */
static void busy_streams_hide_no_other(void) {
  pthread_t threads[BUSY_THREADS];
  set_up();
  CHECK_OK(rdm_sim_inject("hipLaunchHostFunc", 1, 0, 2, 0));
  for (int i = 0; i < BUSY_THREADS; i++) threads[i] = test_start_thread(keep_committing, NULL);
  test_sleep_ns(20 * TEST_MILLISECOND);
  CHECK_OK(rdm_encoder_add_completion_handler(encoder, count_run, NULL));
  CHECK_OK(rdm_encoder_commit(encoder));
  uint64_t end = test_now_ns() + 2 * TEST_SECOND;
  while (runs == 0 && test_now_ns() < end) test_sleep_ns(TEST_MILLISECOND);
  CHECK_THAT(runs == 1, "the handler has not run");
  may_go_on = true;
  for (int i = 0; i < BUSY_THREADS; i++) test_join_thread(threads[i]);
}

static void *fault_device_0(void *argument) {
  (void)argument;
  void *pointer = NULL;
  test_sleep_ns(50 * TEST_MILLISECOND);
  CHECK_OK(rdm_sim_fault(0, 700));
  CHECK_STATUS(rdm_memory_allocate(devices[0], 64, &pointer), RDM_ERROR_DEVICE_FAULT);
  return NULL;
}

static void a_fault_ends_a_wait_for_a_handler_that_stands_still(void) {
  set_up();
  CHECK_OK(rdm_encoder_add_completion_handler(encoder, stand_still, NULL));
  CHECK_OK(rdm_encoder_commit(encoder));
  wait_for_runs(1);
  pthread_t thread = test_start_thread(fault_device_0, NULL);
  CHECK_STATUS(rdm_stream_synchronize(stream, in_time_ns), RDM_ERROR_DEVICE_FAULT);
  test_join_thread(thread);
  may_go_on = true;
}

static void a_wait_commits_what_is_open(void) {
  set_up();
  CHECK_OK(rdm_encoder_add_completion_handler(encoder, count_run, NULL));
  CHECK_OK(rdm_stream_synchronize(stream, in_time_ns));
  CHECK(runs == 1);
}

/* Each of them has an error to tell, so that whichever is met first does. */
static void a_device_is_waited_for_in_all_its_streams(void) {
  enum { STREAMS = 8 };
  rdm_stream streams[STREAMS];
  rdm_encoder own;
  set_up();
  for (int i = 0; i < STREAMS; i++) {
    CHECK_OK(rdm_stream_create(0, &streams[i]));
    CHECK_OK(rdm_encoder_get(streams[i], &own));
    CHECK_OK(rdm_encoder_add_completion_handler(own, count_run, NULL));
    CHECK_OK(rdm_stream_record_error(streams[i], RDM_ERROR_LAUNCH, "of one stream"));
  }
  CHECK_STATUS(rdm_device_synchronize(devices[0], in_time_ns), RDM_ERROR_LAUNCH);
  CHECK_THAT(runs == STREAMS, "%u of %d streams were waited for", runs, STREAMS);
}

/* ---- Queues ----------------------------------------------------------------------------------------------------- */

static void work_of_a_fresh_stream_is_not_behind_that_of_an_ended_one(void) {
  set_up();
  rdm_stream other;
  rdm_stream fresh;
  rdm_encoder other_encoder;
  rdm_encoder fresh_encoder;
  rdm_event event;
  CHECK_OK(rdm_stream_create(1, &other));
  CHECK_OK(rdm_encoder_get(other, &other_encoder));
  CHECK_OK(rdm_event_create(devices[1], RDM_EVENT_DEFAULT, &event));
  CHECK_OK(rdm_sim_hold(1, 1));
  CHECK_OK(rdm_encoder_record_event(other_encoder, event));
  CHECK_OK(rdm_encoder_wait_event(encoder, event));
  CHECK_OK(rdm_encoder_fill(encoder, memory, 1, 8));
  CHECK_OK(rdm_stream_release(stream));
  native_of_a_fresh_stream(&fresh, &fresh_encoder);
  CHECK_OK(rdm_encoder_fill(fresh_encoder, memory + 8, 1, 8));
  CHECK_OK(rdm_stream_synchronize(fresh, in_time_ns));
  CHECK_OK(rdm_sim_hold(1, 0));
}

static void handlers_of_a_fresh_stream_are_not_behind_those_of_an_ended_one(void) {
  set_up();
  rdm_stream fresh;
  rdm_encoder fresh_encoder;
  void *native = native_of(encoder);
  CHECK_OK(rdm_encoder_add_completion_handler(encoder, stand_still, NULL));
  CHECK_OK(rdm_encoder_commit(encoder));
  wait_for_runs(1);
  CHECK_OK(rdm_stream_release(stream));
  CHECK(native_of_a_fresh_stream(&fresh, &fresh_encoder) != native);
  may_go_on = true;
}

/* ---- Clears ----------------------------------------------------------------------------------------------------- */

static const uint64_t stall_ns = TEST_SECOND;

static _Atomic rdm_status status_of_second;

static void *fill_and_stand_still(void *argument) {
  (void)argument;
  (void)rdm_encoder_fill(encoder, memory, 1, 8);
  return NULL;
}

static void *fill_second(void *argument) {
  (void)argument;
  status_of_second = rdm_encoder_fill(encoder, memory + 8, 1, 8);
  return NULL;
}

static void *clear(void *argument) {
  (void)argument;
  CHECK_OK(rdm_clear_encoders());
  return NULL;
}

static pthread_t start_fill_that_stands_still(void) {
  CHECK_OK(rdm_sim_inject("hipMemsetAsync", 1, 1, 0, stall_ns));
  pthread_t thread = test_start_thread(fill_and_stand_still, NULL);
  calls_wait_until_inside("hipMemsetAsync", 10 * TEST_SECOND);
  return thread;
}

/* The clear waits for the queue of a submission that stands still, and has no lock of the device meanwhile. */
static void a_clear_that_stands_still_holds_up_no_other_stream(void) {
  set_up();
  rdm_stream other;
  rdm_encoder other_encoder;
  pthread_t filler = start_fill_that_stands_still();
  pthread_t clearer = test_start_thread(clear, NULL);
  test_sleep_ns(stall_ns / 10);
  CHECK_OK(rdm_stream_create(0, &other));
  CHECK_OK(rdm_encoder_get(other, &other_encoder));
  rdm_sim_call last = {0};
  call_list list = calls_read(0);
  for (size_t i = 0; i < list.count; i++) {
    if (call_is(&list.calls[i], "hipMemsetAsync")) last = list.calls[i];
  }
  calls_free(&list);
  CHECK_THAT(last.result == -1, "the other stream was held up until the submission ended");
  test_join_thread(filler);
  test_join_thread(clearer);
}

static void a_stream_keeps_its_driver_stream_over_a_clear(void) {
  set_up();
  void *before = native_of(encoder);
  CHECK_OK(rdm_clear_encoders());
  CHECK_OK(rdm_encoder_get(stream, &encoder));
  CHECK(native_of(encoder) == before);
}

/* It had its encoder, and waited for the queue, as another thread cleared the encoder. */
static void a_submission_that_waited_across_a_clear_is_stale(void) {
  set_up();
  pthread_t filler = start_fill_that_stands_still();
  pthread_t second = test_start_thread(fill_second, NULL);
  test_sleep_ns(stall_ns / 10);
  pthread_t clearer = test_start_thread(clear, NULL);
  test_join_thread(filler);
  test_join_thread(second);
  test_join_thread(clearer);
  CHECK_STATUS(status_of_second, RDM_ERROR_STALE_HANDLE);
}

/* ---- What others leave behind ----------------------------------------------------------------------------------- */

static void a_stream_destroyed_by_other_code_is_met_once(void) {
  set_up();
  rdm_stream fresh;
  rdm_encoder fresh_encoder;
  CHECK(other_code_destroys_stream(native_of(encoder)) == 0);
  CHECK_OK(rdm_stream_release(stream));
  CHECK_OK(rdm_stream_create(0, &fresh));
  (void)rdm_encoder_get(fresh, &fresh_encoder);
  CHECK_OK(rdm_encoder_get(fresh, &fresh_encoder));
  CHECK_OK(rdm_encoder_fill(fresh_encoder, memory, 1, 8));
  CHECK_OK(rdm_stream_synchronize(fresh, in_time_ns));
}

static void handles_made_and_released_by_one_thread_leave_no_streams(void) {
  set_up();
  for (int i = 0; i < 100; i++) {
    rdm_thread_local_stream handle;
    rdm_stream resolved;
    rdm_encoder own;
    CHECK_OK(rdm_thread_local_stream_create(0, &handle));
    CHECK_OK(rdm_thread_local_stream_resolve(handle, &resolved));
    CHECK_OK(rdm_encoder_get(resolved, &own));
    CHECK_OK(rdm_thread_local_stream_release(handle));
  }
  uint64_t made = calls_count_objects().streams;
  CHECK_THAT(made <= 12, "%llu driver streams for one handle at a time", (unsigned long long)made);
}

/* ---- Handles and errors ----------------------------------------------------------------------------------------- */

static rdm_event event_of_waiter;

static void *wait_for_event(void *argument) {
  (void)argument;
  CHECK_OK(rdm_event_wait(event_of_waiter, in_time_ns));
  return NULL;
}

static void a_released_handle_is_stale_while_others_are_inside_a_call_with_it(void) {
  set_up();
  CHECK_OK(rdm_event_create(devices[0], RDM_EVENT_DEFAULT, &event_of_waiter));
  CHECK_OK(rdm_sim_hold(0, 1));
  CHECK_OK(rdm_encoder_record_event(encoder, event_of_waiter));
  uint64_t before = calls_made("hipEventQuery");
  pthread_t waiter = test_start_thread(wait_for_event, NULL);
  while (calls_made("hipEventQuery") == before) test_sleep_ns(TEST_MILLISECOND);
  CHECK_OK(rdm_event_release(event_of_waiter));
  CHECK_STATUS(rdm_event_query(event_of_waiter), RDM_ERROR_STALE_HANDLE);
  CHECK_STATUS(rdm_event_release(event_of_waiter), RDM_ERROR_STALE_HANDLE);
  CHECK_OK(rdm_sim_hold(0, 0));
  test_join_thread(waiter);
}

static _Atomic rdm_status status_of_wait;

static void *wait_for_stream(void *argument) {
  (void)argument;
  status_of_wait = rdm_stream_synchronize(stream, in_time_ns);
  return NULL;
}

/* Its error is its own, and not that of the stream whose memory it gave to the next. */
static void a_stream_released_under_a_wait_ends_after_it(void) {
  rdm_error error = {.struct_size = sizeof error};
  set_up();
  CHECK_OK(rdm_sim_hold(0, 1));
  CHECK_OK(rdm_encoder_fill(encoder, memory, 1, 8));
  CHECK_OK(rdm_stream_record_error(stream, RDM_ERROR_LAUNCH, "of the stream that was waited for"));
  pthread_t waiter = test_start_thread(wait_for_stream, NULL);
  while (calls_made("hipEventQuery") == 0) test_sleep_ns(TEST_MILLISECOND);
  CHECK_OK(rdm_stream_release(stream));
  CHECK_OK(rdm_take_unattributed_error(&error));
  CHECK_STATUS(error.status, RDM_OK);
  CHECK_OK(rdm_sim_hold(0, 0));
  test_join_thread(waiter);
  CHECK_STATUS(status_of_wait, RDM_ERROR_LAUNCH);
  CHECK_OK(rdm_take_unattributed_error(&error));
  CHECK_STATUS(error.status, RDM_ERROR_LAUNCH);
}

/* A thread remembers a stream's encoder, which is open until the last call with the stream ends. */
static void a_released_stream_under_a_wait_gives_no_encoder(void) {
  rdm_encoder again;
  set_up();
  CHECK_OK(rdm_sim_hold(0, 1));
  CHECK_OK(rdm_encoder_fill(encoder, memory, 1, 8));
  pthread_t waiter = test_start_thread(wait_for_stream, NULL);
  while (calls_made("hipEventQuery") == 0) test_sleep_ns(TEST_MILLISECOND);
  CHECK_OK(rdm_encoder_get(stream, &again));
  CHECK_OK(rdm_stream_release(stream));
  CHECK_STATUS(rdm_encoder_get(stream, &again), RDM_ERROR_STALE_HANDLE);
  CHECK_OK(rdm_sim_hold(0, 0));
  test_join_thread(waiter);
}

static void an_error_outlives_its_stream(void) {
  rdm_error error = {.struct_size = sizeof error};
  set_up();
  CHECK_OK(rdm_stream_record_error(stream, RDM_ERROR_LAUNCH, "nobody took it"));
  CHECK_OK(rdm_stream_release(stream));
  CHECK_OK(rdm_take_unattributed_error(&error));
  CHECK_STATUS(error.status, RDM_ERROR_LAUNCH);
}

const test_case pending_tests[] = {
    {.name = "at_most_64_callbacks_are_outstanding", .function = at_most_64_callbacks_are_outstanding},
    {.name = "a_fault_that_no_call_meets_reaches_the_handlers",
     .function = a_fault_that_no_call_meets_reaches_the_handlers,
     .writes_to_standard_error = true},
    {.name = "busy_streams_hide_no_other", .function = busy_streams_hide_no_other},
    {.name = "a_fault_ends_a_wait_for_a_handler_that_stands_still",
     .function = a_fault_ends_a_wait_for_a_handler_that_stands_still,
     .writes_to_standard_error = true},
    {.name = "a_wait_commits_what_is_open", .function = a_wait_commits_what_is_open},
    {.name = "a_device_is_waited_for_in_all_its_streams", .function = a_device_is_waited_for_in_all_its_streams},
    {.name = "work_of_a_fresh_stream_is_not_behind_that_of_an_ended_one",
     .function = work_of_a_fresh_stream_is_not_behind_that_of_an_ended_one},
    {.name = "handlers_of_a_fresh_stream_are_not_behind_those_of_an_ended_one",
     .function = handlers_of_a_fresh_stream_are_not_behind_those_of_an_ended_one},
    {.name = "a_clear_that_stands_still_holds_up_no_other_stream",
     .function = a_clear_that_stands_still_holds_up_no_other_stream},
    {.name = "a_stream_keeps_its_driver_stream_over_a_clear",
     .function = a_stream_keeps_its_driver_stream_over_a_clear},
    {.name = "a_submission_that_waited_across_a_clear_is_stale",
     .function = a_submission_that_waited_across_a_clear_is_stale},
    {.name = "a_stream_destroyed_by_other_code_is_met_once", .function = a_stream_destroyed_by_other_code_is_met_once},
    {.name = "handles_made_and_released_by_one_thread_leave_no_streams",
     .function = handles_made_and_released_by_one_thread_leave_no_streams},
    {.name = "a_released_handle_is_stale_while_others_are_inside_a_call_with_it",
     .function = a_released_handle_is_stale_while_others_are_inside_a_call_with_it},
    {.name = "a_stream_released_under_a_wait_ends_after_it", .function = a_stream_released_under_a_wait_ends_after_it},
    {.name = "a_released_stream_under_a_wait_gives_no_encoder",
     .function = a_released_stream_under_a_wait_gives_no_encoder},
    {.name = "an_error_outlives_its_stream", .function = an_error_outlives_its_stream},
    {0},
};
