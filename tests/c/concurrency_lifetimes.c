/* What ends on one thread while others use it: a handle is stale or what it was, and never stands for another's. */
#include "calls.h"
#include "concurrency.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

/* ---- A clear that stands still half way ------------------------------------------------------------------------- */

/* The submission to the middle one stands still in the driver, so whichever end a clear begins at, one is left over. */
enum { SIDES = 3, STALLED = 1, FRESH_STREAMS = 8, BYTES_EACH = 64 };

static const uint64_t stall_ns = 400 * TEST_MILLISECOND;

static rdm_stream streams[SIDES];
static rdm_encoder encoders[SIDES];
static char *memory;
static pthread_t stalled_thread;
static pthread_t clearing_thread;

static void *submit_and_stand_still(void *argument) {
  (void)argument;
  CHECK_OK(rdm_encoder_fill(encoders[STALLED], memory + STALLED * BYTES_EACH, 1, BYTES_EACH));
  return NULL;
}

static void *clear(void *argument) {
  (void)argument;
  CHECK_OK(rdm_clear_encoders());
  return NULL;
}

static void set_up(void) {
  rdm_device device;
  test_use_sim(1);
  CHECK_OK(rdm_device_get(0, &device));
  void *allocated = NULL;
  CHECK_OK(rdm_memory_allocate(device, SIDES * BYTES_EACH, &allocated));
  memory = allocated;
  for (int i = 0; i < SIDES; i++) {
    CHECK_OK(rdm_stream_create(0, &streams[i]));
    CHECK_OK(rdm_encoder_get(streams[i], &encoders[i]));
  }
}

/* Returns while the clear has taken every encoder out and waits for the submission that stands still. */
static void begin_clear_that_stands_still(void) {
  rdm_stream other;
  rdm_encoder before;
  rdm_encoder now;
  CHECK_OK(rdm_stream_create(0, &other));
  CHECK_OK(rdm_encoder_get(other, &before));
  CHECK_OK(rdm_sim_inject("hipMemsetAsync", 1, 1, 0, stall_ns));
  stalled_thread = test_start_thread(submit_and_stand_still, NULL);
  calls_wait_until_inside("hipMemsetAsync", 10 * TEST_SECOND);
  clearing_thread = test_start_thread(clear, NULL);
  do {
    CHECK_OK(rdm_encoder_get(other, &now));
  } while (now.bits == before.bits);
  test_sleep_ns(20 * TEST_MILLISECOND);
}

static void end_clear(void) {
  test_join_thread(stalled_thread);
  test_join_thread(clearing_thread);
}

static atomic_uint cleared_handlers_run;
static atomic_uint handlers_run;

static void count_call(rdm_status status, void *user_data) {
  CHECK_STATUS(status, RDM_OK);
  atomic_fetch_add((atomic_uint *)user_data, 1);
}

static void an_encoder_that_a_clear_took_out_is_stale_once_its_stream_is_released(void) {
  set_up();
  begin_clear_that_stands_still();
  for (int i = 0; i < SIDES; i += 2) {
    CHECK_OK(rdm_stream_release(streams[i]));
    CHECK_STATUS(rdm_encoder_add_completion_handler(encoders[i], count_call, &handlers_run), RDM_ERROR_STALE_HANDLE);
    CHECK_STATUS(rdm_encoder_commit(encoders[i]), RDM_ERROR_STALE_HANDLE);
  }
  end_clear();
  CHECK_OK(rdm_stream_synchronize(streams[STALLED], 10 * TEST_SECOND));
  test_sleep_ns(50 * TEST_MILLISECOND);
  CHECK(handlers_run == 0);
}

/* Fails where two streams that are alive at once submit to one stream of the driver. */
static void check_driver_streams_are_distinct(void) {
  void *natives[FRESH_STREAMS];
  for (int i = 0; i < FRESH_STREAMS; i++) {
    rdm_stream stream;
    rdm_encoder encoder;
    CHECK_OK(rdm_stream_create(0, &stream));
    CHECK_OK(rdm_encoder_get(stream, &encoder));
    CHECK_OK(rdm_encoder_get_native_stream(encoder, &natives[i]));
    for (int k = 0; k < i; k++) CHECK_THAT(natives[k] != natives[i], "streams %d and %d share a driver stream", k, i);
  }
}

static void a_release_during_a_clear_gives_its_driver_stream_back_once(void) {
  set_up();
  begin_clear_that_stands_still();
  for (int i = 0; i < SIDES; i += 2) {
    CHECK_OK(rdm_stream_release(streams[i]));
    /* Whatever these come to, they must not bring the driver stream back to life, to be retired a second time. */
    (void)rdm_encoder_add_completion_handler(encoders[i], count_call, &handlers_run);
    (void)rdm_encoder_commit(encoders[i]);
  }
  end_clear();
  test_sleep_ns(100 * TEST_MILLISECOND);
  check_driver_streams_are_distinct();
}

static void a_clear_that_ends_late_commits_nothing_of_the_fresh_encoder(void) {
  rdm_encoder fresh[SIDES];
  set_up();
  for (int i = 0; i < SIDES; i++) {
    CHECK_OK(rdm_encoder_add_completion_handler(encoders[i], count_call, &cleared_handlers_run));
  }
  begin_clear_that_stands_still();
  for (int i = 0; i < SIDES; i += 2) {
    CHECK_OK(rdm_encoder_get(streams[i], &fresh[i]));
    CHECK(fresh[i].bits != encoders[i].bits);
    CHECK_OK(rdm_encoder_add_completion_handler(fresh[i], count_call, &handlers_run));
  }
  end_clear();
  test_sleep_ns(100 * TEST_MILLISECOND);
  CHECK_THAT(handlers_run == 0, "%u handlers ran before their encoder's commit", handlers_run);
  CHECK_THAT(cleared_handlers_run == SIDES, "%u of %d handlers of cleared encoders ran", cleared_handlers_run, SIDES);
  for (int i = 0; i < SIDES; i += 2) {
    CHECK_OK(rdm_encoder_fill(fresh[i], memory + i * BYTES_EACH, 2, BYTES_EACH));
    CHECK_OK(rdm_encoder_commit(fresh[i]));
    CHECK_OK(rdm_stream_synchronize(streams[i], 10 * TEST_SECOND));
  }
  CHECK(handlers_run == 2 && cleared_handlers_run == SIDES);
}

/* ---- A stream asked for by its index while it is released ------------------------------------------------------- */

static const uint64_t race_ns = 800 * TEST_MILLISECOND;

static pthread_t getter;
/* Of the round's stream. Set before the round begins. */
static _Atomic int32_t wanted_index;
static _Atomic uint32_t rounds_begun;
static _Atomic uint32_t rounds_found;
static _Atomic uint32_t rounds_interrupted;
static _Atomic uint32_t rounds_released;
static atomic_bool stop;

static void wait_for_round(const _Atomic uint32_t *counter, uint32_t round) {
  while (*counter < round && !stop) sched_yield();
}

/*
 * Holds the getter up wherever it is, until the stream's release has begun and had time to close the handle. Not until
 * its end: that may need a lock that the getter holds here.
 */
static void hold_getter_up(int signal_number) {
  (void)signal_number;
  uint32_t round = rounds_begun;
  rounds_interrupted = round;
  wait_for_round(&rounds_released, round);
  nanosleep(&(struct timespec){.tv_nsec = 10000}, NULL);
}

static void *get_by_index(void *argument) {
  (void)argument;
  for (uint32_t round = 1; !stop; round++) {
    wait_for_round(&rounds_begun, round);
    while (rounds_released < round && !stop) {
      rdm_stream stream;
      rdm_stream_info info = {.struct_size = sizeof info};
      int32_t index = wanted_index;
      CHECK_OK(rdm_stream_get(0, index, &stream));
      rdm_status status = rdm_stream_get_info(stream, &info);
      CHECK_THAT(status == RDM_OK || status == RDM_ERROR_STALE_HANDLE, "round %u: the handle that was given is %s",
                 round, rdm_status_name(status));
      CHECK_THAT(status != RDM_OK || info.stream_index == index, "round %u: asked for stream %d and got %d", round,
                 index, info.stream_index);
      rounds_found = round;
    }
  }
  return NULL;
}

static void a_stream_asked_for_while_it_is_released_is_never_another(void) {
  rdm_device device;
  test_use_sim(1);
  CHECK_OK(rdm_device_get(0, &device));
  struct sigaction action = {.sa_handler = hold_getter_up, .sa_flags = SA_RESTART};
  CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
  getter = test_start_thread(get_by_index, NULL);
  uint64_t end = test_now_ns() + race_ns;
  for (uint32_t round = 1; test_now_ns() < end; round++) {
    rdm_stream stream;
    rdm_stream_info info = {.struct_size = sizeof info};
    CHECK_OK(rdm_stream_create(0, &stream));
    CHECK_OK(rdm_stream_get_info(stream, &info));
    wanted_index = info.stream_index;
    rounds_begun = round;
    wait_for_round(&rounds_found, round);
    CHECK(pthread_kill(getter, SIGUSR1) == 0);
    wait_for_round(&rounds_interrupted, round);
    rounds_released = round;
    CHECK_OK(rdm_stream_release(stream));
  }
  stop = true;
  test_join_thread(getter);
  CHECK_THAT(rounds_found > 100 / TEST_SLOWDOWN, "only %u rounds", rounds_found);
}

const test_case lifetime_tests[] = {
    {.name = "an_encoder_that_a_clear_took_out_is_stale_once_its_stream_is_released",
     .function = an_encoder_that_a_clear_took_out_is_stale_once_its_stream_is_released},
    {.name = "a_release_during_a_clear_gives_its_driver_stream_back_once",
     .function = a_release_during_a_clear_gives_its_driver_stream_back_once},
    {.name = "a_clear_that_ends_late_commits_nothing_of_the_fresh_encoder",
     .function = a_clear_that_ends_late_commits_nothing_of_the_fresh_encoder},
    {.name = "a_stream_asked_for_while_it_is_released_is_never_another",
     .function = a_stream_asked_for_while_it_is_released_is_never_another},
    {0},
};
