/* Streams made, used and ended by different threads; streams of short threads. */
#include "calls.h"
#include "concurrency.h"
#include "work.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- One queue, whoever submits -------------------------------------------------------------------------------- */

typedef struct chain {
  work_kernels kernels;
  rdm_stream stream;
  float *values;
  uint32_t steps;
} chain;

enum { CHAIN_VALUES = 64 };

static void submit_steps(const chain *work, uint32_t count) {
  rdm_encoder encoder;
  CHECK_OK(rdm_encoder_get(work->stream, &encoder));
  for (uint32_t i = 0; i < count; i++) {
    CHECK_OK(work_submit_step(encoder, &work->kernels, work->values, CHAIN_VALUES));
  }
}

static void *create_stream_and_submit(void *argument) {
  chain *work = argument;
  rdm_encoder encoder;
  CHECK_OK(rdm_stream_create(0, &work->stream));
  CHECK_OK(rdm_encoder_get(work->stream, &encoder));
  CHECK_OK(rdm_encoder_fill(encoder, work->values, 0, CHAIN_VALUES * sizeof(float)));
  submit_steps(work, 2);
  return NULL;
}

static void *submit_more(void *argument) {
  submit_steps(argument, 3);
  return NULL;
}

/* Adds 10 to each value, so that the result tells the order of this among the steps. */
static void submit_add(const chain *work) {
  rdm_encoder encoder;
  float *values = work->values;
  float by = 10.0f;
  uint32_t count = CHAIN_VALUES;
  void *arguments[] = {&values, &values, &by, &count};
  const rdm_launch_config config = {.struct_size = sizeof config, .grid = {1, 1, 1}, .block = {64, 1, 1}};
  CHECK_OK(rdm_encoder_get(work->stream, &encoder));
  CHECK_OK(rdm_encoder_launch(encoder, work->kernels.add, &config, arguments, 4));
}

static void check_values(const chain *work, float expected) {
  rdm_encoder encoder;
  float values[CHAIN_VALUES];
  CHECK_OK(rdm_encoder_get(work->stream, &encoder));
  CHECK_OK(rdm_encoder_copy(encoder, values, work->values, sizeof values, RDM_COPY_DEVICE_TO_HOST));
  CHECK_OK(rdm_stream_synchronize(work->stream, RDM_WAIT_FOREVER));
  for (int i = 0; i < CHAIN_VALUES; i++) {
    CHECK_THAT(values[i] == expected, "value %d is %g, expected %g", i, (double)values[i], (double)expected);
  }
}

static chain make_chain(int32_t device_index) {
  chain work = {0};
  void *values = NULL;
  CHECK_OK(work_load(device_index, &work.kernels));
  CHECK_OK(rdm_memory_allocate(work.kernels.device, CHAIN_VALUES * sizeof(float), &values));
  work.values = values;
  return work;
}

static void field_log_06_a_stream_made_on_one_thread_is_used_by_others_in_order(void) {
  test_use_sim(2);
  chain work = make_chain(0);
  CHECK_OK(rdm_sim_hold(0, 1));
  test_join_thread(test_start_thread(create_stream_and_submit, &work));
  test_join_thread(test_start_thread(submit_more, &work));
  submit_add(&work);
  test_join_thread(test_start_thread(submit_more, &work));
  CHECK_OK(rdm_sim_hold(0, 0));
  /* Five steps from 0 give 31; plus 10; three steps more. */
  check_values(&work, (31.0f + 10.0f) * 8.0f + 7.0f);
}

static chain shared_chain;
static pthread_barrier_t barrier;
enum { SUBMITTERS = 8, STEPS_EACH = 2 };

static void submit_with_the_others(unsigned number) {
  (void)number;
  pthread_barrier_wait(&barrier);
  submit_steps(&shared_chain, STEPS_EACH);
}

static void submissions_at_once_to_one_stream_all_count(void) {
  test_use_sim(1);
  shared_chain = make_chain(0);
  create_stream_and_submit(&shared_chain);
  pthread_barrier_init(&barrier, NULL, SUBMITTERS);
  test_run_threads(SUBMITTERS, submit_with_the_others);
  check_values(&shared_chain, ldexpf(1.0f, 2 + SUBMITTERS * STEPS_EACH) - 1.0f);
}

/* ---- The default stream and thread-local streams --------------------------------------------------------------- */

static rdm_thread_local_stream shared_handle;
static _Atomic(uint64_t) resolved_bits[SUBMITTERS];

static void resolve_and_install(unsigned number) {
  rdm_stream stream;
  rdm_stream again;
  rdm_stream current;
  CHECK_OK(rdm_default_stream_get(&current));
  CHECK(current.bits == 0);
  CHECK_OK(rdm_thread_local_stream_resolve(shared_handle, &stream));
  CHECK_OK(rdm_thread_local_stream_resolve(shared_handle, &again));
  CHECK(stream.bits == again.bits);
  CHECK_OK(rdm_default_stream_set(stream));
  CHECK_OK(rdm_default_stream_get(&current));
  CHECK(current.bits == stream.bits);
  resolved_bits[number] = stream.bits;
  /* Nobody ends before all have resolved, so no stream can have been handed on. */
  pthread_barrier_wait(&barrier);
  CHECK_OK(rdm_stream_synchronize(stream, RDM_WAIT_FOREVER));
}

static void each_thread_resolves_to_a_stream_of_its_own(void) {
  test_use_sim(2);
  CHECK_OK(rdm_thread_local_stream_get_shared(1, &shared_handle));
  pthread_barrier_init(&barrier, NULL, SUBMITTERS);
  test_run_threads(SUBMITTERS, resolve_and_install);
  for (int i = 0; i < SUBMITTERS; i++) {
    for (int j = 0; j < i; j++) CHECK(resolved_bits[i] != resolved_bits[j]);
    CHECK_STATUS(rdm_stream_finalize((rdm_stream){resolved_bits[i]}), RDM_ERROR_STALE_HANDLE);
  }
}

static void a_default_stream_outlives_its_release_until_it_changes(void) {
  test_use_sim(1);
  rdm_stream stream;
  rdm_stream current;
  rdm_encoder encoder;
  CHECK_OK(rdm_stream_create(0, &stream));
  CHECK_OK(rdm_default_stream_set(stream));
  CHECK_OK(rdm_stream_release(stream));
  CHECK_OK(rdm_default_stream_get(&current));
  CHECK(current.bits == stream.bits);
  CHECK_OK(rdm_encoder_get(current, &encoder));
  CHECK_OK(rdm_encoder_commit(encoder));
  CHECK_OK(rdm_default_stream_set((rdm_stream){0}));
  CHECK_STATUS(rdm_encoder_commit(encoder), RDM_ERROR_STALE_HANDLE);
  CHECK_STATUS(rdm_encoder_get(stream, &encoder), RDM_ERROR_STALE_HANDLE);
}

/* ---- Short threads --------------------------------------------------------------------------------------------- */

enum { SHORT_THREADS = 5000 / TEST_SLOWDOWN, AT_ONCE = 8, MOST_STREAMS = 4 * AT_ONCE };

static work_kernels short_kernels;
static float *short_values[AT_ONCE];
static atomic_uint short_completed;

static void count_completed(rdm_status status, void *user_data) {
  (void)user_data;
  CHECK_STATUS(status, RDM_OK);
  short_completed++;
}

/* Takes its stream, submits one kernel, and ends without waiting for it. */
static void run_short_thread(unsigned number) {
  rdm_stream stream;
  rdm_encoder encoder;
  CHECK_OK(rdm_thread_local_stream_resolve(shared_handle, &stream));
  CHECK_OK(rdm_default_stream_set(stream));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
  CHECK_OK(work_submit_step(encoder, &short_kernels, short_values[number], CHAIN_VALUES));
  CHECK_OK(rdm_encoder_add_completion_handler(encoder, count_completed, NULL));
}

static void prepare_short_threads(void) {
  CHECK_OK(work_load(0, &short_kernels));
  CHECK_OK(rdm_thread_local_stream_get_shared(0, &shared_handle));
  for (int i = 0; i < AT_ONCE; i++) {
    void *values = NULL;
    CHECK_OK(rdm_memory_allocate(short_kernels.device, CHAIN_VALUES * sizeof(float), &values));
    short_values[i] = values;
  }
}

static void wait_for_short_threads(unsigned expected) {
  for (int i = 0; i < 10000 && short_completed != expected; i++) test_sleep_ns(TEST_MILLISECOND);
  CHECK_THAT(short_completed == expected, "%u of %u handlers ran", short_completed, expected);
}

static void field_log_07_short_threads_give_their_streams_back_and_their_work_completes(void) {
  test_use_sim(1);
  prepare_short_threads();
  uint64_t most = 0;
  for (int i = 0; i < SHORT_THREADS / AT_ONCE; i++) {
    test_run_threads(AT_ONCE, run_short_thread);
    uint64_t streams = calls_count_objects().streams;
    if (streams > most) most = streams;
  }
  CHECK_THAT(most <= MOST_STREAMS, "%llu driver streams for %d threads at once", (unsigned long long)most, AT_ONCE);
  wait_for_short_threads(SHORT_THREADS / AT_ONCE * AT_ONCE);
  /* What is idle is used again: as many threads more make no new one. */
  uint64_t made = calls_made("hipStreamCreateWithFlags");
  for (int i = 0; i < 20; i++) {
    test_run_threads(AT_ONCE / 2, run_short_thread);
    test_sleep_ns(2 * TEST_MILLISECOND);
  }
  CHECK_THAT(calls_made("hipStreamCreateWithFlags") <= made + AT_ONCE, "idle streams are not used again");
}

/* A thread that evaluates: its own stream, an event, and a result that is looked at; the last batch is left open. */
static void run_evaluating_thread(unsigned number) {
  rdm_stream stream;
  rdm_encoder encoder;
  rdm_event event;
  float value = -1;
  CHECK_OK(rdm_thread_local_stream_resolve(shared_handle, &stream));
  CHECK_OK(rdm_default_stream_set(stream));
  CHECK_OK(rdm_event_create(short_kernels.device, RDM_EVENT_DEFAULT, &event));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
  CHECK_OK(rdm_encoder_fill(encoder, short_values[number], 0, sizeof(float)));
  CHECK_OK(work_submit_step(encoder, &short_kernels, short_values[number], 1));
  CHECK_OK(rdm_encoder_copy(encoder, &value, short_values[number], sizeof value, RDM_COPY_DEVICE_TO_HOST));
  CHECK_OK(rdm_encoder_record_event(encoder, event));
  CHECK_OK(rdm_event_wait(event, RDM_WAIT_FOREVER));
  CHECK_THAT(value == 1.0f, "thread %u computed %g", number, (double)value);
  CHECK_OK(rdm_encoder_add_completion_handler(encoder, count_completed, NULL));
  CHECK_OK(rdm_event_release(event));
}

static uint64_t resident_bytes(void) {
  unsigned long long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  CHECK(file != NULL && fscanf(file, "%*u %llu", &pages) == 1);
  fclose(file);
  return pages * 4096;
}

static void ten_thousand_short_threads_leave_memory_streams_and_events_flat(void) {
  const char *text = getenv("RDM_TEST_LONG");
  const int threads = (text != NULL && strcmp(text, "1") == 0 ? 10000 : 1000) / (TEST_SLOWDOWN > 3 ? 4 : 1);
  test_use_sim(1);
  prepare_short_threads();
  /* A few at once in each round, so the first hundred threads make as many streams as are ever needed. */
  for (int i = 0; i < 100 / AT_ONCE + 1; i++) test_run_threads(AT_ONCE, run_evaluating_thread);
  wait_for_short_threads((100 / AT_ONCE + 1) * AT_ONCE);
  rdm_sim_objects before = calls_count_objects();
  uint64_t memory_before = resident_bytes();
  for (int i = 0; i < threads / AT_ONCE; i++) test_run_threads(AT_ONCE, run_evaluating_thread);
  wait_for_short_threads((100 / AT_ONCE + 1 + (unsigned)threads / AT_ONCE) * AT_ONCE);
  rdm_sim_objects after = calls_count_objects();
  uint64_t memory_after = resident_bytes();
  /* Those in use, and eight that may be busy; one or two more where threads met in looking for one. */
  CHECK_THAT(after.streams <= AT_ONCE + 8 + 2, "%llu streams after the first hundred threads, %llu after %d more",
             (unsigned long long)before.streams, (unsigned long long)after.streams, threads);
  CHECK_THAT(after.events <= before.events + AT_ONCE, "%llu events, then %llu", (unsigned long long)before.events,
             (unsigned long long)after.events);
  /* The call log of the simulated driver fills as it goes: 65,536 calls. Sanitizers keep what was freed. */
  uint64_t log_bytes = 65536 * sizeof(rdm_sim_call);
  if (TEST_SLOWDOWN == 1) {
    CHECK_THAT(memory_after < memory_before + log_bytes + (UINT64_C(2) << 20), "%llu KiB resident, then %llu",
               (unsigned long long)memory_before / 1024, (unsigned long long)memory_after / 1024);
  }
  printf("%d threads: %llu streams, %llu events, %llu KiB resident; before %llu, %llu, %llu\n", threads,
         (unsigned long long)after.streams, (unsigned long long)after.events, (unsigned long long)memory_after / 1024,
         (unsigned long long)before.streams, (unsigned long long)before.events,
         (unsigned long long)memory_before / 1024);
}

static rdm_event event_of_the_dead;

/* Ends with a batch open, behind work that can not start yet. */
static void *die_with_an_open_batch(void *argument) {
  rdm_stream stream;
  rdm_encoder encoder;
  CHECK_OK(rdm_thread_local_stream_resolve(shared_handle, &stream));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
  CHECK_OK(rdm_encoder_fill(encoder, short_values[0], 0, CHAIN_VALUES * sizeof(float)));
  CHECK_OK(work_submit_step(encoder, &short_kernels, short_values[0], CHAIN_VALUES));
  CHECK_OK(rdm_encoder_copy(encoder, argument, short_values[0], sizeof(float), RDM_COPY_DEVICE_TO_HOST));
  CHECK_OK(rdm_encoder_record_event(encoder, event_of_the_dead));
  for (int i = 0; i < 10; i++) CHECK_OK(rdm_encoder_add_completion_handler(encoder, count_completed, NULL));
  return NULL;
}

static void a_thread_that_dies_with_an_open_batch_loses_nothing(void) {
  rdm_stream other;
  rdm_encoder encoder;
  float value = -1;
  test_use_sim(1);
  prepare_short_threads();
  CHECK_OK(rdm_event_create(short_kernels.device, RDM_EVENT_DEFAULT, &event_of_the_dead));
  CHECK_OK(rdm_sim_hold(0, 1));
  test_join_thread(test_start_thread(die_with_an_open_batch, &value));
  CHECK_OK(rdm_stream_create(0, &other));
  CHECK_OK(rdm_encoder_get(other, &encoder));
  CHECK_OK(rdm_encoder_wait_event(encoder, event_of_the_dead));
  CHECK_STATUS(rdm_event_query(event_of_the_dead), RDM_NOT_READY);
  CHECK(short_completed == 0);
  CHECK_OK(rdm_sim_hold(0, 0));
  CHECK_OK(rdm_event_wait(event_of_the_dead, RDM_WAIT_FOREVER));
  CHECK_OK(rdm_stream_synchronize(other, RDM_WAIT_FOREVER));
  CHECK_THAT(value == 1.0f, "the dead thread's work gave %g", (double)value);
  wait_for_short_threads(10);
}

static void streams_created_and_released_in_a_loop_do_not_grow(void) {
  test_use_sim(1);
  CHECK_OK(work_on_new_stream(0, 1));
  for (int i = 0; i < 300 / TEST_SLOWDOWN; i++) CHECK_OK(work_on_new_stream(0, 1));
  rdm_sim_objects objects = calls_count_objects();
  CHECK_THAT(objects.streams <= 4, "%llu driver streams", (unsigned long long)objects.streams);
  CHECK_THAT(objects.device_allocations == 0 && objects.host_allocations == 0, "memory is left");
}

static void a_stream_that_does_nothing_makes_no_driver_stream(void) {
  test_use_sim(1);
  rdm_device device;
  rdm_stream streams[50];
  CHECK_OK(rdm_device_get(0, &device));
  for (int i = 0; i < 50; i++) CHECK_OK(rdm_stream_create(0, &streams[i]));
  for (int i = 0; i < 50; i++) CHECK_OK(rdm_stream_synchronize(streams[i], RDM_WAIT_FOREVER));
  CHECK(calls_made("hipStreamCreateWithFlags") == 0);
  for (int i = 0; i < 50; i++) {
    rdm_stream_info info = {.struct_size = sizeof info};
    CHECK_OK(rdm_stream_get_info(streams[i], &info));
    CHECK(info.device_index == 0);
    CHECK_OK(rdm_stream_release(streams[i]));
  }
}

const test_case stream_tests[] = {
    {.name = "ten_thousand_short_threads_leave_memory_streams_and_events_flat",
     .function = ten_thousand_short_threads_leave_memory_streams_and_events_flat,
     .limit_seconds = 200},
    {.name = "a_thread_that_dies_with_an_open_batch_loses_nothing",
     .function = a_thread_that_dies_with_an_open_batch_loses_nothing},
    {.name = "field_log_06_a_stream_made_on_one_thread_is_used_by_others_in_order",
     .function = field_log_06_a_stream_made_on_one_thread_is_used_by_others_in_order},
    {.name = "submissions_at_once_to_one_stream_all_count", .function = submissions_at_once_to_one_stream_all_count},
    {.name = "each_thread_resolves_to_a_stream_of_its_own", .function = each_thread_resolves_to_a_stream_of_its_own},
    {.name = "a_default_stream_outlives_its_release_until_it_changes",
     .function = a_default_stream_outlives_its_release_until_it_changes},
    {.name = "field_log_07_short_threads_give_their_streams_back_and_their_work_completes",
     .function = field_log_07_short_threads_give_their_streams_back_and_their_work_completes,
     .limit_seconds = 120},
    {.name = "streams_created_and_released_in_a_loop_do_not_grow",
     .function = streams_created_and_released_in_a_loop_do_not_grow},
    {.name = "a_stream_that_does_nothing_makes_no_driver_stream",
     .function = a_stream_that_does_nothing_makes_no_driver_stream},
    {0},
};
