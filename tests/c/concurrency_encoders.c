/* Encoders looked up, used, cleared and ended at once. */
#include "calls.h"
#include "concurrency.h"
#include "work.h"

#include <stdatomic.h>
#include <stdlib.h>

static pthread_barrier_t barrier;

/* ---- The maps ------------------------------------------------------------------------------------------------- */

enum { MAP_THREADS = 32, MAP_STREAMS = 64, MAP_DEVICES = 2, MAP_ROUNDS = 10000 / TEST_SLOWDOWN };

static _Atomic(uint64_t) registered[MAP_DEVICES][MAP_STREAMS];
static rdm_device map_devices[MAP_DEVICES];

/* OK, or that the encoder was cleared by another thread. */
static void check_ok_or_stale(rdm_status status) {
  CHECK_THAT(status == RDM_OK || status == RDM_ERROR_STALE_HANDLE, "%s: %s", rdm_status_name(status),
             rdm_last_error_message());
}

static void use_maps_at_random(unsigned number) {
  uint64_t state = number * 7919;
  pthread_barrier_wait(&barrier);
  for (int i = 0; i < MAP_ROUNDS; i++) {
    int32_t device = (int32_t)(test_random(&state) % MAP_DEVICES);
    int32_t index = (int32_t)(test_random(&state) % MAP_STREAMS);
    rdm_stream stream;
    rdm_encoder encoder;
    CHECK_OK(rdm_stream_get(device, 1000 + index, &stream));
    uint64_t expected = 0;
    if (!atomic_compare_exchange_strong(&registered[device][index], &expected, stream.bits)) {
      CHECK_THAT(expected == stream.bits, "one key gave two streams");
    }
    if (i % 4 == 0) {
      CHECK_OK(rdm_encoder_get(stream, &encoder));
      check_ok_or_stale(rdm_encoder_commit(encoder));
    }
    if (i % 16 == 0) CHECK_OK(rdm_stream_finalize(stream));
    if ((unsigned)i % 512 == number) CHECK_OK(rdm_clear_encoders());
    if (i % 512 == 7) CHECK_OK(rdm_device_synchronize(map_devices[device], RDM_WAIT_FOREVER));
    if (i % 64 == 0) {
      rdm_stream own;
      CHECK_OK(rdm_stream_create(device, &own));
      CHECK_OK(rdm_stream_release(own));
    }
  }
}

static void field_log_05_maps_used_by_32_threads_keep_one_stream_for_each_key(void) {
  test_use_sim(MAP_DEVICES);
  for (int32_t i = 0; i < MAP_DEVICES; i++) CHECK_OK(rdm_device_get(i, &map_devices[i]));
  pthread_barrier_init(&barrier, NULL, MAP_THREADS);
  test_run_threads(MAP_THREADS, use_maps_at_random);
}

static void field_log_05_ten_thousand_streams_keep_the_handles_that_were_given_out(void) {
  test_use_sim(1);
  enum { STREAMS = 10000 };
  rdm_stream *streams = malloc(STREAMS * sizeof *streams);
  CHECK(streams != NULL);
  for (int i = 0; i < STREAMS; i++) CHECK_OK(rdm_stream_create(0, &streams[i]));
  rdm_encoder first;
  rdm_encoder again;
  CHECK_OK(rdm_encoder_get(streams[0], &first));
  for (int i = 0; i < STREAMS; i++) {
    rdm_stream_info info = {.struct_size = sizeof info};
    rdm_stream found;
    CHECK_OK(rdm_stream_get_info(streams[i], &info));
    if (i % 100 != 0) continue;
    CHECK_OK(rdm_stream_get(0, info.stream_index, &found));
    CHECK(found.bits == streams[i].bits);
  }
  CHECK_OK(rdm_encoder_get(streams[0], &again));
  CHECK(first.bits == again.bits);
  for (int i = 0; i < STREAMS; i++) CHECK_OK(rdm_stream_release(streams[i]));
  free(streams);
}

/* ---- Clearing ------------------------------------------------------------------------------------------------- */

static void *submit_to_encoder(void *argument) {
  rdm_encoder *encoder = argument;
  CHECK_STATUS(rdm_encoder_commit(*encoder), RDM_ERROR_STALE_HANDLE);
  return NULL;
}

static void field_log_05_an_encoder_cleared_by_another_thread_is_stale_everywhere(void) {
  test_use_sim(1);
  rdm_stream stream;
  rdm_encoder encoder;
  rdm_encoder fresh;
  CHECK_OK(rdm_stream_create(0, &stream));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
  CHECK_OK(rdm_clear_encoders());
  CHECK_STATUS(rdm_encoder_commit(encoder), RDM_ERROR_STALE_HANDLE);
  test_join_thread(test_start_thread(submit_to_encoder, &encoder));
  CHECK_OK(rdm_encoder_get(stream, &fresh));
  CHECK(fresh.bits != encoder.bits);
  CHECK_OK(rdm_encoder_commit(fresh));
  CHECK_STATUS(rdm_encoder_commit(encoder), RDM_ERROR_STALE_HANDLE);
}

static atomic_uint handlers_run;

static void count_handler(rdm_status status, void *user_data) {
  (void)user_data;
  CHECK_STATUS(status, RDM_OK);
  handlers_run++;
}

static void clearing_commits_open_batches_and_loses_no_work(void) {
  test_use_sim(1);
  work_kernels kernels;
  work_buffers buffers;
  rdm_stream stream;
  rdm_encoder encoder;
  CHECK_OK(work_load(0, &kernels));
  CHECK_OK(work_buffers_allocate(kernels.device, &buffers));
  CHECK_OK(rdm_stream_create(0, &stream));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
  CHECK_OK(rdm_sim_hold(0, 1));
  CHECK_OK(work_submit(encoder, &kernels, &buffers));
  CHECK_OK(rdm_encoder_add_completion_handler(encoder, count_handler, NULL));
  CHECK_OK(rdm_clear_encoders());
  CHECK(handlers_run == 0 && work_count_wrong(&buffers) > 0);
  CHECK_OK(rdm_sim_hold(0, 0));
  for (int i = 0; i < 5000 && handlers_run == 0; i++) test_sleep_ns(TEST_MILLISECOND);
  CHECK(handlers_run == 1 && work_count_wrong(&buffers) == 0);
}

static void synchronize_waits_for_work_of_an_encoder_that_was_cleared(void) {
  test_use_sim(1);
  work_kernels kernels;
  work_buffers buffers;
  rdm_stream stream;
  rdm_encoder encoder;
  CHECK_OK(work_load(0, &kernels));
  CHECK_OK(work_buffers_allocate(kernels.device, &buffers));
  CHECK_OK(rdm_stream_create(0, &stream));
  for (int round = 0; round < 2; round++) {
    CHECK_OK(rdm_encoder_get(stream, &encoder));
    CHECK_OK(rdm_sim_hold(0, 1));
    CHECK_OK(work_submit(encoder, &kernels, &buffers));
    CHECK_OK(rdm_clear_encoders());
    /* In the second round there is a fresh encoder as well. */
    if (round == 1) CHECK_OK(rdm_encoder_get(stream, &encoder));
    CHECK_STATUS(rdm_stream_synchronize(stream, 50 * TEST_MILLISECOND), RDM_ERROR_TIMEOUT);
    CHECK_OK(rdm_sim_hold(0, 0));
    CHECK_OK(rdm_stream_synchronize(stream, RDM_WAIT_FOREVER));
    CHECK_THAT(work_count_wrong(&buffers) == 0, "synchronize returned before the work had completed");
    CHECK_OK(rdm_encoder_get(stream, &encoder));
    CHECK_OK(rdm_encoder_fill(encoder, buffers.third, 0, sizeof(float)));
    CHECK_OK(rdm_stream_synchronize(stream, RDM_WAIT_FOREVER));
  }
}

static void work_after_a_clear_follows_the_work_before_it(void) {
  test_use_sim(1);
  work_kernels kernels;
  rdm_stream stream;
  rdm_encoder encoder;
  void *memory = NULL;
  float value = -1.0f;
  CHECK_OK(work_load(0, &kernels));
  CHECK_OK(rdm_memory_allocate(kernels.device, sizeof value, &memory));
  CHECK_OK(rdm_stream_create(0, &stream));
  for (int i = 0; i < 50 / TEST_SLOWDOWN; i++) {
    CHECK_OK(rdm_encoder_get(stream, &encoder));
    CHECK_OK(rdm_encoder_fill(encoder, memory, 0, sizeof value));
    for (int step = 0; step < 6; step++) {
      CHECK_OK(rdm_encoder_get(stream, &encoder));
      CHECK_OK(work_submit_step(encoder, &kernels, memory, 1));
      CHECK_OK(rdm_clear_encoders());
    }
    CHECK_OK(rdm_encoder_get(stream, &encoder));
    CHECK_OK(rdm_encoder_copy(encoder, &value, memory, sizeof value, RDM_COPY_DEVICE_TO_HOST));
    CHECK_OK(rdm_stream_synchronize(stream, RDM_WAIT_FOREVER));
    CHECK_THAT(value == 63.0f, "six steps gave %g", (double)value);
  }
}

/* ---- Ended by one thread while others use it -------------------------------------------------------------------- */

static _Atomic(uint64_t) victim_stream;
static _Atomic(uint64_t) victim_encoder;
static atomic_bool stop;

static void use_victim(void) {
  rdm_encoder encoder = {victim_encoder};
  rdm_encoder own;
  rdm_stream stream = {victim_stream};
  rdm_error error = {.struct_size = sizeof error};
  if (encoder.bits == 0) return;
  check_ok_or_stale(rdm_encoder_add_completion_handler(encoder, count_handler, NULL));
  check_ok_or_stale(rdm_encoder_commit(encoder));
  check_ok_or_stale(rdm_encoder_get(stream, &own));
  check_ok_or_stale(rdm_stream_synchronize(stream, RDM_WAIT_FOREVER));
  check_ok_or_stale(rdm_stream_take_error(stream, &error));
}

static void make_or_use_victims(unsigned number) {
  if (number > 0) {
    while (!stop) use_victim();
    return;
  }
  for (int i = 0; i < 400 / TEST_SLOWDOWN; i++) {
    rdm_stream stream;
    rdm_encoder encoder;
    CHECK_OK(rdm_stream_create(0, &stream));
    CHECK_OK(rdm_encoder_get(stream, &encoder));
    victim_stream = stream.bits;
    victim_encoder = encoder.bits;
    test_sleep_ns(TEST_MILLISECOND / 4);
    CHECK_OK(rdm_stream_release(stream));
  }
  stop = true;
}

static void a_stream_released_while_others_use_it_is_stale_and_nothing_worse(void) {
  test_use_sim(1);
  test_run_threads(5, make_or_use_victims);
  CHECK_OK(work_on_new_stream(0, 1));
}

const test_case encoder_tests[] = {
    {.name = "field_log_05_maps_used_by_32_threads_keep_one_stream_for_each_key",
     .function = field_log_05_maps_used_by_32_threads_keep_one_stream_for_each_key,
     .limit_seconds = 120},
    {.name = "field_log_05_ten_thousand_streams_keep_the_handles_that_were_given_out",
     .function = field_log_05_ten_thousand_streams_keep_the_handles_that_were_given_out},
    {.name = "field_log_05_an_encoder_cleared_by_another_thread_is_stale_everywhere",
     .function = field_log_05_an_encoder_cleared_by_another_thread_is_stale_everywhere},
    {.name = "clearing_commits_open_batches_and_loses_no_work",
     .function = clearing_commits_open_batches_and_loses_no_work},
    {.name = "synchronize_waits_for_work_of_an_encoder_that_was_cleared",
     .function = synchronize_waits_for_work_of_an_encoder_that_was_cleared},
    {.name = "work_after_a_clear_follows_the_work_before_it",
     .function = work_after_a_clear_follows_the_work_before_it},
    {.name = "a_stream_released_while_others_use_it_is_stale_and_nothing_worse",
     .function = a_stream_released_while_others_use_it_is_stale_and_nothing_worse},
    {0},
};
