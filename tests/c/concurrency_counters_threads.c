/* rdm_get_counters: exact whatever threads do, count, and end meanwhile. */
#include "calls.h"
#include "concurrency.h"
#include "count.h"
#include "counters.h"
#include "event_pool.h"
#include "tally.h"
#include "work.h"

#include <stdatomic.h>
#include <string.h>

/* ---- Many threads ---------------------------------------------------------------------------------------------- */

enum { THREADS = 8, WAVES = 6, ROUNDS = 400 / TEST_SLOWDOWN, DEVICES = 2 };

/* Those that go up and down. */
static bool is_of_now(size_t offset) {
  return offset == offsetof(rdm_counters, encoders_alive) || offset == offsetof(rdm_counters, streams_alive) ||
         offset == offsetof(rdm_counters, graphs_alive) || offset == offsetof(rdm_counters, batches_pending) ||
         offset == offsetof(rdm_counters, events_alive) || offset == offsetof(rdm_counters, events_pooled) ||
         offset == offsetof(rdm_counters, driver_events) || offset == offsetof(rdm_counters, waits_running) ||
         offset == offsetof(rdm_counters, compiles_running);
}

/* None of what only grows has become less. */
static void check_monotonic(const rdm_counters *before, const rdm_counters *after) {
  for (size_t offset = offsetof(rdm_counters, device_lookups); offset < sizeof *before; offset += sizeof(uint64_t)) {
    uint64_t was;
    uint64_t is;
    memcpy(&was, (const char *)before + offset, sizeof was);
    memcpy(&is, (const char *)after + offset, sizeof is);
    CHECK_THAT(is >= was || is_of_now(offset), "the counter at offset %zu was %llu and is %llu", offset,
               (unsigned long long)was, (unsigned long long)is);
    /* One that was below zero for a moment. */
    CHECK_THAT(is < UINT64_C(1) << 60, "the counter at offset %zu is %llu", offset, (unsigned long long)is);
  }
}

static atomic_bool work_is_over;
static atomic_uint reads;

static void *read_meanwhile(void *argument) {
  (void)argument;
  rdm_counters before = read_counters();
  while (!work_is_over) {
    rdm_counters after = read_counters();
    check_monotonic(&before, &after);
    CHECK(after.device_hits <= after.device_lookups && after.encoder_hits <= after.encoder_lookups);
    before = after;
    reads++;
  }
  return NULL;
}

static work_kernels kernels_of[DEVICES];
/* Of a stream of each device that all threads submit to. */
static rdm_encoder shared_encoders[DEVICES];

static void do_everything(unsigned number) {
  int32_t index = (int32_t)(number % DEVICES);
  rdm_device device;
  rdm_stream stream;
  rdm_encoder encoder;
  rdm_event event;
  rdm_module module;
  void *memory;
  /* What the shared stream works on, and no other. */
  void *shared;
  CHECK_OK(rdm_memory_allocate(kernels_of[index].device, 64, &memory));
  CHECK_OK(rdm_memory_allocate(kernels_of[index].device, 64, &shared));
  CHECK_OK(rdm_stream_create(index, &stream));
  for (unsigned round = 0; round < ROUNDS; round++) {
    CHECK_OK(rdm_device_get(index, &device));
    CHECK_OK(rdm_encoder_get(stream, &encoder));
    CHECK_OK(rdm_event_create(device, RDM_EVENT_DEFAULT, &event));
    CHECK_OK(rdm_module_get(device, &work_source, &module));
    CHECK_OK(work_submit_step(encoder, &kernels_of[index], memory, 1));
    CHECK_OK(rdm_encoder_record_event(encoder, event));
    CHECK_OK(rdm_encoder_wait_event(encoder, event));
    CHECK_OK(rdm_encoder_fill(encoder, memory, 0, 4));
    CHECK_OK(rdm_event_release(event));
    CHECK_OK(rdm_encoder_copy(shared_encoders[index], shared, (char *)shared + 32, 4, RDM_COPY_DEVICE_TO_DEVICE));
  }
  CHECK_OK(rdm_device_synchronize(device, RDM_WAIT_FOREVER));
  CHECK_OK(rdm_stream_synchronize(stream, RDM_WAIT_FOREVER));
  CHECK_OK(rdm_stream_release(stream));
  CHECK_OK(rdm_memory_free(kernels_of[index].device, memory));
  CHECK_OK(rdm_memory_free(kernels_of[index].device, shared));
}

static void sums_are_exact_whatever_threads_end(void) {
  test_use_sim(DEVICES);
  for (int32_t i = 0; i < DEVICES; i++) {
    rdm_stream stream;
    CHECK_OK(work_load(i, &kernels_of[i]));
    CHECK_OK(rdm_stream_create(i, &stream));
    CHECK_OK(rdm_encoder_get(stream, &shared_encoders[i]));
  }
  rdm_counters before = read_counters();
  pthread_t reader = test_start_thread(read_meanwhile, NULL);
  for (int wave = 0; wave < WAVES; wave++) test_run_threads(THREADS, do_everything);
  work_is_over = true;
  test_join_thread(reader);
  rdm_counters after = read_counters();
  check_monotonic(&before, &after);
  const uint64_t threads = (uint64_t)THREADS * WAVES;
  const uint64_t rounds = threads * ROUNDS;
  /* Each thread creates one stream on its device, and meets the device and the encoder for the first time once. */
  CHECK_COUNT(after, device_lookups, before.device_lookups + rounds + threads);
  CHECK_COUNT(after, device_hits, before.device_hits + rounds);
  CHECK_COUNT(after, encoder_lookups, before.encoder_lookups + rounds);
  CHECK_COUNT(after, encoder_hits, before.encoder_hits + rounds - threads);
  CHECK_COUNT(after, module_lookups, before.module_lookups + rounds);
  CHECK_COUNT(after, module_hits, before.module_hits + rounds);
  CHECK_COUNT(after, events_created, rounds);
  CHECK_COUNT(after, events_released, rounds);
  CHECK_COUNT(after, events_alive, 0);
  CHECK_COUNT(after, events_pooled, after.driver_events);
  CHECK_COUNT(after, driver_events, calls_count_objects().events);
  CHECK_COUNT(after, driver_streams, calls_count_objects().streams);
  CHECK_COUNT(after, launches, rounds);
  CHECK_COUNT(after, event_records, rounds);
  CHECK_COUNT(after, event_waits, rounds);
  CHECK_COUNT(after, fills, rounds);
  CHECK_COUNT(after, copies, rounds);
  CHECK_COUNT(after, copied_bytes, 4 * rounds);
  CHECK_COUNT(after, streams_created, threads + DEVICES);
  CHECK_COUNT(after, streams_alive, DEVICES);
  CHECK_COUNT(after, encoders_created, threads + DEVICES);
  CHECK_COUNT(after, encoders_alive, DEVICES);
  CHECK_COUNT(after, device_allocations, 2 * threads);
  CHECK_COUNT(after, device_frees, 2 * threads);
  CHECK_COUNT(after, waits_running, 0);
  CHECK(reads > 0);
}

static void count_for_the_process(unsigned number) {
  (void)number;
  for (unsigned i = 0; i < 10 * ROUNDS; i++) rdm__count(RDM__COUNT_WAIT_TIME_NS, 3);
}

static void what_threads_count_for_the_process_at_once_all_counts(void) {
  for (uint64_t wave = 1; wave <= WAVES; wave++) {
    test_run_threads(THREADS, count_for_the_process);
    CHECK_COUNT(read_counters(), wait_time_ns, wave * THREADS * 10 * ROUNDS * 3);
  }
}

/* ---- A thread's cell of a tally -------------------------------------------------------------------------------- */

static rdm__tally tally;
static _Thread_local rdm__tally_cell *own;
static atomic_uint forgotten;

static void forget(void) {
  own = NULL;
  forgotten++;
}

static unsigned cell_count(void) {
  unsigned count = 0;
  for (const rdm__tally_cell *cell = atomic_load(&tally.first); cell != NULL; cell = cell->next) count++;
  return count;
}

static pthread_barrier_t all_have_one;

static void count_in_own_cell(unsigned number) {
  (void)number;
  own = rdm__tally_join(&tally, forget);
  CHECK(own != NULL);
  pthread_barrier_wait(&all_have_one);
  for (unsigned i = 0; i < 10 * ROUNDS; i++) rdm__count_alone(&own->count, 1);
}

static void cells_go_from_thread_to_thread_and_lose_nothing(void) {
  CHECK(pthread_barrier_init(&all_have_one, NULL, THREADS) == 0);
  for (unsigned wave = 1; wave <= 10 * WAVES; wave++) {
    test_run_threads(THREADS, count_in_own_cell);
    uint64_t sum = rdm__tally_sum(&tally);
    CHECK_THAT(sum == (uint64_t)wave * THREADS * 10 * ROUNDS, "%llu after wave %u", (unsigned long long)sum, wave);
    CHECK(forgotten == wave * THREADS);
    /* No more than threads at one time: a server that starts a thread for each request does not grow. */
    CHECK_THAT(cell_count() == THREADS, "%u cells for %d threads", cell_count(), THREADS);
  }
}

/* ---- Lookups by a thread that is ending ------------------------------------------------------------------------ */

static pthread_key_t late_key;
enum { LATE_LOOKUPS = 5 };

/* Comes when the thread's cells may have been given back, and once more after those that it got anew. */
static void look_up_late(void *rounds_left) {
  rdm_device device;
  for (int i = 0; i < LATE_LOOKUPS; i++) CHECK_OK(rdm_device_get(0, &device));
  uintptr_t left = (uintptr_t)rounds_left - 1;
  if (left > 0) CHECK(pthread_setspecific(late_key, (void *)left) == 0);
}

enum { LATE_THREADS = 100 / TEST_SLOWDOWN + 4, LATE_ROUNDS = 3 };

static void look_up_and_end(unsigned number) {
  rdm_device device;
  (void)number;
  CHECK(pthread_setspecific(late_key, (void *)(uintptr_t)LATE_ROUNDS) == 0);
  for (int i = 0; i < LATE_LOOKUPS; i++) CHECK_OK(rdm_device_get(0, &device));
}

static void lookups_of_a_thread_that_is_ending_are_counted(void) {
  test_use_sim(1);
  rdm_device device;
  /* After the library's own key, so that its hooks have run when this one's function comes. */
  CHECK_OK(rdm_device_get(0, &device));
  CHECK(pthread_key_create(&late_key, look_up_late) == 0);
  for (int wave = 0; wave < WAVES; wave++) test_run_threads(LATE_THREADS, look_up_and_end);
  rdm_counters counters = read_counters();
  CHECK_COUNT(counters, device_lookups, 1 + (uint64_t)WAVES * LATE_THREADS * LATE_LOOKUPS * (1 + LATE_ROUNDS));
}

/* ---- More events than a slot has generations ------------------------------------------------------------------- */

/* The slot of the one event that the thread holds is near its last generation. */
static void a_slot_whose_generations_begin_anew_is_counted_on(void) {
  test_use_sim(1);
  rdm_device device;
  rdm_event event;
  CHECK_OK(rdm_device_get(0, &device));
  CHECK_OK(rdm_event_create(device, RDM_EVENT_DEFAULT, &event));
  rdm__object *object = NULL;
  CHECK_OK(rdm__handle_find(&rdm__events, event.bits, &object));
  CHECK_OK(rdm_event_release(event));
  atomic_store(&object->word, (UINT64_MAX - 2) << 32 | RDM__OBJECT_CLOSED);
  uint64_t expected = UINT32_MAX - 3;
  for (int i = 0; i < 8; i++) {
    rdm_event before = event;
    CHECK_OK(rdm_event_create(device, RDM_EVENT_DEFAULT, &event));
    CHECK((uint32_t)event.bits != 0);
    if (i > 0) CHECK(rdm_event_release(before) != RDM_OK);
    rdm_counters counters = read_counters();
    CHECK_COUNT(counters, events_created, expected + 1);
    CHECK_COUNT(counters, events_released, expected);
    CHECK_OK(rdm_event_release(event));
    expected++;
  }
  CHECK_COUNT(read_counters(), events_released, expected);
  CHECK_COUNT(read_counters(), events_alive, 0);
}

const test_case counter_thread_tests[] = {
    {.name = "sums_are_exact_whatever_threads_end", .function = sums_are_exact_whatever_threads_end},
    {.name = "what_threads_count_for_the_process_at_once_all_counts",
     .function = what_threads_count_for_the_process_at_once_all_counts},
    {.name = "cells_go_from_thread_to_thread_and_lose_nothing",
     .function = cells_go_from_thread_to_thread_and_lose_nothing},
    {.name = "lookups_of_a_thread_that_is_ending_are_counted",
     .function = lookups_of_a_thread_that_is_ending_are_counted},
    {.name = "a_slot_whose_generations_begin_anew_is_counted_on",
     .function = a_slot_whose_generations_begin_anew_is_counted_on},
    {0},
};
