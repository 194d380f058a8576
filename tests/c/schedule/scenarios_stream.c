/* Streams, encoders, what is submitted through them, and completion handlers. */
#include "driver.h"
#include "scenario.h"

enum { HANDLERS = 2, PLENTY_NS = 1000000000 };

static rdm_device device;
static rdm_stream stream;
static rdm_event event;
static rdm_encoder encoders[MOST_BODIES];
static rdm_stream got[MOST_BODIES];
static rdm_thread_local_stream thread_streams[MOST_BODIES];
static int handler_runs[HANDLERS];
static char memory[16];

static void prepare(void) {
  rdm_set_log_handler(NULL, NULL, RDM_LOG_ERROR);
  rdm_device_get(1, &device);
  rdm_stream_create(1, &stream);
}

static void prepare_encoder(void) {
  prepare();
  rdm_encoder_get(stream, &encoders[0]);
}

static void prepare_event(void) {
  prepare_encoder();
  rdm_event_create(device, RDM_EVENT_DEFAULT, &event);
}

/* With the tables there that the process's first handles of these kinds make, so that a schedule is short. */
static void prepare_threads(void) {
  rdm_thread_local_stream ready = {0};
  prepare_event();
  rdm_thread_local_stream_create(1, &ready);
}

/* ---- Encoders -------------------------------------------------------------------------------------------------- */

static void get_first(void) {
  EXPECT_STATUS(RDM_OK, rdm_encoder_get(stream, &encoders[0]));
}

static void get_second(void) {
  EXPECT_STATUS(RDM_OK, rdm_encoder_get(stream, &encoders[1]));
}

static void clear(void) {
  EXPECT_STATUS(RDM_OK, rdm_clear_encoders());
}

static void check_one_encoder(void) {
  EXPECT(encoders[0].bits == encoders[1].bits);
  EXPECT(driver_count(RDM__CALL_stream_create) == 1);
}

static void check_one_queue(void) {
  EXPECT(driver_count(RDM__CALL_stream_create) == 1);
}

/* An encoder that is cleared under our hands is stale, and the next one does it. */
static void submit(void) {
  for (int i = 0; i < 3; i++) {
    rdm_encoder encoder = {0};
    EXPECT_STATUS(RDM_OK, rdm_encoder_get(stream, &encoder));
    rdm_status status = rdm_encoder_fill(encoder, memory, 0, sizeof memory);
    if (status == RDM_OK) return;
    EXPECT(status == RDM_ERROR_STALE_HANDLE);
  }
  schedule_fail("an encoder is stale again and again");
}

/* Through the encoder that was there: done, or stale, or the stream has ended. */
static void submit_if_there(void) {
  rdm_status status = rdm_encoder_fill(encoders[0], memory, 0, sizeof memory);
  EXPECT(status == RDM_OK || status == RDM_ERROR_STALE_HANDLE);
}

/* Again through what the thread remembers. */
static void submit_twice(void) {
  submit();
  submit();
}

static void check_submitted_twice(void) {
  rdm_encoder encoder = {0};
  void *native = NULL;
  EXPECT_STATUS(RDM_OK, rdm_encoder_get(stream, &encoder));
  EXPECT_STATUS(RDM_OK, rdm_encoder_get_native_stream(encoder, &native));
  EXPECT(driver_submissions(native) == 2);
  check_one_queue();
}

static rdm_stream second_stream;

static void prepare_second(void) {
  prepare_encoder();
  rdm_stream_create(1, &second_stream);
}

/* The encoder of the other stream takes the memory of the one that is cleared. */
static void clear_and_use_second(void) {
  rdm_encoder encoder = {0};
  clear();
  EXPECT_STATUS(RDM_OK, rdm_encoder_get(second_stream, &encoder));
  EXPECT_STATUS(RDM_OK, rdm_encoder_fill(encoder, memory, 0, sizeof memory));
}

/* What was submitted through the cleared encoder did not go to the other stream. */
static void check_second(void) {
  rdm_encoder encoder = {0};
  void *native = NULL;
  EXPECT_STATUS(RDM_OK, rdm_encoder_get(second_stream, &encoder));
  EXPECT_STATUS(RDM_OK, rdm_encoder_get_native_stream(encoder, &native));
  EXPECT(driver_submissions(native) == 1);
}

static void release(void) {
  EXPECT_STATUS(RDM_OK, rdm_stream_release(stream));
}

/* Takes over the queue of the stream that ends, or makes another. */
static void use_another(void) {
  rdm_stream another = {0};
  rdm_encoder encoder = {0};
  EXPECT_STATUS(RDM_OK, rdm_stream_create(1, &another));
  EXPECT_STATUS(RDM_OK, rdm_encoder_get(another, &encoder));
  EXPECT_STATUS(RDM_OK, rdm_encoder_fill(encoder, memory, 0, sizeof memory));
  EXPECT_STATUS(RDM_OK, rdm_stream_release(another));
}

static void release_and_use_another(void) {
  release();
  use_another();
}

static void check_at_most_two_queues(void) {
  EXPECT(driver_count(RDM__CALL_stream_create) <= 2);
}

/* ---- Streams by index and by thread ---------------------------------------------------------------------------- */

static void register_first(void) {
  EXPECT_STATUS(RDM_OK, rdm_stream_get(1, 7, &got[0]));
}

static void register_second(void) {
  EXPECT_STATUS(RDM_OK, rdm_stream_get(1, 7, &got[1]));
}

static void check_registered(void) {
  EXPECT(got[0].bits == got[1].bits);
  rdm_stream again = {0};
  EXPECT_STATUS(RDM_OK, rdm_stream_get(1, 7, &again));
  EXPECT(again.bits == got[0].bits);
}

static void retain_and_release(void) {
  rdm_status status = rdm_stream_retain(stream);
  EXPECT(status == RDM_OK || status == RDM_ERROR_STALE_HANDLE);
  if (status == RDM_OK) EXPECT_STATUS(RDM_OK, rdm_stream_release(stream));
}

static void check_stream_ended(void) {
  EXPECT(rdm_stream_release(stream) == RDM_ERROR_STALE_HANDLE);
}

static void resolve(int thread) {
  rdm_stream mine = {0};
  rdm_encoder encoder = {0};
  EXPECT_STATUS(RDM_OK, rdm_thread_local_stream_get_shared(1, &thread_streams[thread]));
  EXPECT_STATUS(RDM_OK, rdm_thread_local_stream_resolve(thread_streams[thread], &mine));
  EXPECT_STATUS(RDM_OK, rdm_default_stream_set(mine));
  EXPECT_STATUS(RDM_OK, rdm_encoder_get(mine, &encoder));
  EXPECT_STATUS(RDM_OK, rdm_encoder_fill(encoder, memory, 0, sizeof memory));
  got[thread] = mine;
}

static void resolve_first(void) {
  resolve(0);
}

static void resolve_second(void) {
  resolve(1);
}

/* The threads have ended: their streams have too, and the queues serve the next. */
static void check_threads_ended(void) {
  EXPECT(thread_streams[0].bits == thread_streams[1].bits);
  EXPECT(got[0].bits != got[1].bits);
  for (int i = 0; i < 2; i++) EXPECT(rdm_stream_release(got[i]) == RDM_ERROR_STALE_HANDLE);
  int made = driver_count(RDM__CALL_stream_create);
  use_another();
  EXPECT(driver_count(RDM__CALL_stream_create) == made);
}

/* ---- Completion ------------------------------------------------------------------------------------------------ */

static void on_completion(rdm_status status, void *user_data) {
  EXPECT(status == RDM_OK);
  ++*(int *)user_data;
}

static void complete(int handler) {
  for (int i = 0; i < 3; i++) {
    rdm_encoder encoder = {0};
    EXPECT_STATUS(RDM_OK, rdm_encoder_get(stream, &encoder));
    rdm_status status = rdm_encoder_add_completion_handler(encoder, on_completion, &handler_runs[handler]);
    if (status == RDM_ERROR_STALE_HANDLE) continue;
    EXPECT(status == RDM_OK);
    status = rdm_encoder_commit(encoder);
    EXPECT(status == RDM_OK || status == RDM_ERROR_STALE_HANDLE);
    EXPECT_STATUS(RDM_OK, rdm_stream_synchronize(stream, PLENTY_NS));
    EXPECT(handler_runs[handler] == 1);
    return;
  }
  schedule_fail("an encoder is stale again and again");
}

static void complete_first(void) {
  complete(0);
}

static void complete_second(void) {
  complete(1);
}

static void check_handlers(void) {
  EXPECT(handler_runs[0] == 1 && handler_runs[1] == 1);
}

static void check_first_handler(void) {
  EXPECT(handler_runs[0] == 1);
}

static void synchronize_device(void) {
  EXPECT_STATUS(RDM_OK, rdm_device_synchronize(device, PLENTY_NS));
}

static void record_and_wait(void) {
  rdm_status status = rdm_encoder_record_event(encoders[0], event);
  EXPECT(status == RDM_OK || status == RDM_ERROR_STALE_HANDLE);
  if (status == RDM_OK) EXPECT_STATUS(RDM_OK, rdm_event_wait(event, PLENTY_NS));
}

/* With an error of other code left pending on the thread, so that the library's own thread asks the driver. */
static void query_elsewhere(void) {
  rdm_event mine = {0};
  EXPECT_STATUS(RDM_OK, rdm_event_create(device, RDM_EVENT_DEFAULT, &mine));
  EXPECT_STATUS(RDM_OK, rdm_encoder_record_event(encoders[0], mine));
  driver_leave_error(RDM_HIP_INVALID_VALUE);
  rdm_status status = rdm_event_query(mine);
  EXPECT(status == RDM_OK || status == RDM_NOT_READY);
  EXPECT(driver_left_error() == RDM_HIP_INVALID_VALUE);
}

const scenario stream_scenarios[] = {
    {"encoder_made_once", prepare, {get_first, get_second}, check_one_encoder, 0},
    {"encoder_clear_and_get", prepare_encoder, {get_first, clear}, check_one_queue, 0},
    {"encoder_clear_and_submit", prepare_encoder, {submit, clear}, check_one_queue, 0},
    {"encoder_remembered_and_cleared", prepare_encoder, {submit_twice, clear}, check_submitted_twice, 0},
    {"encoder_memory_reused", prepare_second, {submit_if_there, clear_and_use_second}, check_second, 0},
    {"encoder_clear_twice", prepare_encoder, {clear, clear}, check_one_queue, 0},
    {"stream_ends_and_submit",
     prepare_encoder,
     {submit_if_there, release_and_use_another},
     check_at_most_two_queues,
     0},
    {"stream_clear_and_end", prepare_encoder, {clear, release}, NULL, 0},
    {"stream_queue_taken_over", prepare_encoder, {release, use_another}, check_at_most_two_queues, 0},
    {"stream_one_index", prepare, {register_first, register_second}, check_registered, 0},
    {"stream_retain_and_release", prepare, {retain_and_release, release}, check_stream_ended, SCENARIO_IS_LARGE},
    {"stream_of_threads_that_end",
     prepare_threads,
     {resolve_first, resolve_second},
     check_threads_ended,
     SCENARIO_IS_LARGE},
    {"event_record_and_wait", prepare_event, {record_and_wait, clear}, NULL, SCENARIO_HAS_GPU},
    {"completion_and_clear",
     prepare,
     {complete_first, clear},
     check_first_handler,
     SCENARIO_HAS_GPU | SCENARIO_IS_LARGE},
    {"completion_two_threads",
     prepare,
     {complete_first, complete_second},
     check_handlers,
     SCENARIO_HAS_GPU | SCENARIO_IS_LARGE},
    {"completion_and_device",
     prepare,
     {complete_first, synchronize_device},
     check_first_handler,
     SCENARIO_HAS_GPU | SCENARIO_IS_LARGE},
    {"poll_elsewhere", prepare_event, {query_elsewhere, query_elsewhere}, NULL, SCENARIO_HAS_GPU | SCENARIO_IS_LARGE},
    {.name = NULL},
};
