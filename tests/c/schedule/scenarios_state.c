/* The small words: recorded errors, faults, the state of the process, the log's sink. */
#include "driver.h"
#include "scenario.h"

#include <string.h>

static rdm_device device;
static rdm_stream stream;
static rdm_encoder encoder;
static rdm_event event;
static char memory[16];
static int taken;
static char causes[2][2048];

static void prepare_unloaded(void) {
  rdm_set_log_handler(NULL, NULL, RDM_LOG_ERROR);
  /* Registers the exit handler, and loads nothing. */
  rdm_configure(NULL);
}

static void prepare_loaded(void) {
  int32_t count = 0;
  prepare_unloaded();
  rdm_device_count(&count);
}

static void prepare(void) {
  prepare_unloaded();
  rdm_device_get(1, &device);
  rdm_stream_create(1, &stream);
  rdm_encoder_get(stream, &encoder);
  rdm_event_create(device, RDM_EVENT_DEFAULT, &event);
}

/* A stream that has no work reports its error and no more. */
static void prepare_idle(void) {
  prepare_unloaded();
  rdm_device_get(1, &device);
  rdm_stream_create(1, &stream);
}

/* ---- Recorded errors ------------------------------------------------------------------------------------------- */

static void record_a(void) {
  EXPECT_STATUS(RDM_OK, rdm_stream_record_error(stream, RDM_ERROR_LAUNCH, "a"));
}

static void record_b(void) {
  EXPECT_STATUS(RDM_OK, rdm_stream_record_error(stream, RDM_ERROR_LAUNCH, "b"));
}

/* The first error is kept: what was seen once is seen again, and again. */
static void record_a_and_look(void) {
  char first[8];
  record_a();
  for (int i = 0; i < 5; i++) {
    EXPECT(rdm_stream_synchronize(stream, 0) == RDM_ERROR_LAUNCH);
    if (i == 0) memcpy(first, rdm_last_error_message(), sizeof first);
    EXPECT(strcmp(first, rdm_last_error_message()) == 0);
  }
}

/* To a stream that has ended, so that it is kept for the process. Here two threads meet in the slot and nowhere else.
 */
static void prepare_ended(void) {
  prepare_idle();
  rdm_stream_release(stream);
  schedule_watch_blocks(sizeof(rdm_error));
}

static void take_unattributed(void) {
  rdm_error error = {.struct_size = sizeof error};
  EXPECT_STATUS(RDM_OK, rdm_take_unattributed_error(&error));
  if (error.status != RDM_OK) taken++;
}

static void record_and_take_unattributed(void) {
  record_a();
  take_unattributed();
}

static void check_none_leaked(void) {
  take_unattributed();
  EXPECT(taken == 1 || taken == 2);
  take_unattributed();
  EXPECT(taken == 1 || taken == 2);
  if (schedule_watched_blocks() != 0) schedule_fail("an error is leaked: another was recorded over it");
}

static void take(void) {
  rdm_error error = {.struct_size = sizeof error};
  EXPECT_STATUS(RDM_OK, rdm_stream_take_error(stream, &error));
  if (error.status == RDM_OK) return;
  EXPECT(strcmp(error.message, "a") == 0 || strcmp(error.message, "b") == 0);
  taken++;
}

static void look(void) {
  rdm_status status = rdm_stream_synchronize(stream, 0);
  EXPECT(status == RDM_OK || status == RDM_ERROR_LAUNCH);
}

static void record_and_take(void) {
  record_a();
  take();
}

static void take_twice(void) {
  take();
  take();
}

static void check_taken_once(void) {
  take();
  EXPECT(taken == 1);
}

static void check_taken_once_or_twice(void) {
  take();
  EXPECT(taken == 1 || taken == 2);
}

static void release_stream(void) {
  EXPECT_STATUS(RDM_OK, rdm_stream_release(stream));
}

/* Of a stream that has ended it is the process's. */
static void check_not_lost(void) {
  rdm_error error = {.struct_size = sizeof error};
  EXPECT_STATUS(RDM_OK, rdm_take_unattributed_error(&error));
  EXPECT(error.status == RDM_ERROR_LAUNCH);
}

/* ---- Faults ---------------------------------------------------------------------------------------------------- */

static void meet_fault(int thread, int error) {
  driver_fault(1, error);
  EXPECT(rdm_encoder_fill(encoder, memory, 0, sizeof memory) == RDM_ERROR_DEVICE_FAULT);
  /* From now on the cause stands: this message names it, and every later one the same. */
  EXPECT(rdm_device_make_current(device) == RDM_ERROR_DEVICE_FAULT);
  memcpy(causes[thread], rdm_last_error_message(), sizeof causes[thread]);
}

static void meet_fault_first(void) {
  meet_fault(0, RDM_HIP_ILLEGAL_ADDRESS);
}

static void meet_fault_second(void) {
  meet_fault(1, RDM_HIP_LAUNCH_FAILURE);
}

static void check_one_cause(void) {
  EXPECT(strcmp(causes[0], causes[1]) == 0);
}

static int handler_runs;

static void on_end(rdm_status status, void *user_data) {
  (void)user_data;
  EXPECT(status == RDM_OK || status == RDM_ERROR_DEVICE_FAULT);
  handler_runs++;
}

/* Every handler learns of it, whether or not its callback came. */
static void complete_on_lost_device(void) {
  rdm_status status = rdm_encoder_add_completion_handler(encoder, on_end, NULL);
  EXPECT(status == RDM_OK || status == RDM_ERROR_DEVICE_FAULT);
  if (status != RDM_OK) {
    handler_runs++;
    return;
  }
  status = rdm_encoder_commit(encoder);
  EXPECT(status == RDM_OK || status == RDM_ERROR_DEVICE_FAULT);
  status = rdm_stream_synchronize(stream, RDM_WAIT_FOREVER);
  EXPECT(status == RDM_OK || status == RDM_ERROR_DEVICE_FAULT);
}

static void lose_device(void) {
  schedule_driver_point("the device faults", NULL);
  driver_fault(1, RDM_HIP_ILLEGAL_ADDRESS);
}

/* ---- The end of the process ------------------------------------------------------------------------------------- */

static void get_device(void) {
  rdm_status status = rdm_device_get(1, &device);
  EXPECT(status == RDM_OK || status == RDM_ERROR_SHUTTING_DOWN);
}

static void use_stream(void) {
  rdm_status status = rdm_encoder_fill(encoder, memory, 0, sizeof memory);
  EXPECT(status == RDM_OK || status == RDM_ERROR_SHUTTING_DOWN);
  EXPECT_STATUS(RDM_OK, rdm_stream_release(stream));
}

static void exit_process(void) {
  schedule_run_exit_handlers();
  EXPECT(rdm_device_get(2, &device) == RDM_ERROR_SHUTTING_DOWN);
}

static void check_over(void) {
  rdm_device late = {0};
  EXPECT(rdm_device_get(0, &late) == RDM_ERROR_SHUTTING_DOWN);
  EXPECT(driver_constructions(2) == 0);
}

/* ---- The log's sink -------------------------------------------------------------------------------------------- */

static void count_line(rdm_log_level level, const char *message, void *user_data) {
  (void)level, (void)message;
  ++*(int *)user_data;
}

static int lines[2];

static void prepare_log(void) {
  prepare_loaded();
  rdm_set_log_handler(count_line, &lines[0], RDM_LOG_INFO);
}

static void replace_sink(void) {
  EXPECT_STATUS(RDM_OK, rdm_set_log_handler(count_line, &lines[1], RDM_LOG_INFO));
}

static void check_one_line(void) {
  EXPECT(lines[0] + lines[1] == 1);
}

const scenario state_scenarios[] = {
    {"error_recorded_twice", prepare_ended, {record_a, record_b}, check_none_leaked, 0},
    {"error_recorded_and_taken", prepare_ended, {record_and_take_unattributed, record_b}, check_none_leaked, 0},
    {"error_first_is_kept", prepare_idle, {record_a_and_look, record_b}, check_taken_once, SCENARIO_IS_LARGE},
    {"error_record_and_take", prepare_idle, {record_and_take, record_b}, check_taken_once_or_twice, SCENARIO_IS_LARGE},
    {"error_take_and_look", prepare_idle, {record_and_take, look}, NULL, SCENARIO_IS_LARGE},
    {"error_taken_twice", prepare_idle, {record_a, take_twice}, check_taken_once, 0},
    {"error_of_ended_stream", prepare_idle, {record_a, release_stream}, check_not_lost, 0},
    {"fault_first_is_kept", prepare, {meet_fault_first, meet_fault_second}, check_one_cause, 0},
    {"fault_and_completion",
     prepare,
     {complete_on_lost_device, lose_device},
     NULL,
     SCENARIO_HAS_GPU | SCENARIO_TIMERS_END_WAITS | SCENARIO_IS_LARGE},
    {"exit_and_first_use", prepare_loaded, {get_device, exit_process}, check_over, 0},
    {"exit_and_load", prepare_unloaded, {get_device, exit_process}, check_over, 0},
    {"exit_and_submit", prepare, {use_stream, exit_process}, NULL, 0},
    {"log_sink_replaced", prepare_log, {get_device, replace_sink}, check_one_line, 0},
    {.name = NULL},
};
