/* rdm_get_counters: exact for a known sequence, and whatever threads do, count, and end meanwhile. */
#include "calls.h"
#include "concurrency.h"
#include "count.h"
#include "event_pool.h"
#include "tally.h"
#include "work.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static rdm_counters read_counters(void) {
  rdm_counters counters = {.struct_size = sizeof counters};
  CHECK_OK(rdm_get_counters(&counters));
  return counters;
}

#define CHECK_COUNT(counters, field, expected)                                      \
  CHECK_THAT((counters).field == (uint64_t)(expected), #field " is %llu, not %llu", \
             (unsigned long long)(counters).field, (unsigned long long)(expected))

/* ---- A known sequence ------------------------------------------------------------------------------------------ */

static void nothing_is_counted_before_the_first_use(void) {
  rdm_counters counters = read_counters();
  rdm_counters zero = {.struct_size = sizeof zero};
  CHECK(memcmp(&counters, &zero, sizeof zero) == 0);
  /* And it was no use of the driver. */
  CHECK_OK(rdm_configure(NULL));
  CHECK_STATUS(rdm_get_counters(NULL), RDM_ERROR_INVALID_ARGUMENT);
  counters.struct_size = offsetof(rdm_counters, device_lookups);
  CHECK_STATUS(rdm_get_counters(&counters), RDM_ERROR_INVALID_ARGUMENT);
}

static void an_older_callers_struct_is_filled_as_far_as_it_goes(void) {
  test_use_sim(1);
  rdm_device device;
  CHECK_OK(rdm_device_get(0, &device));
  rdm_counters counters;
  memset(&counters, 0x55, sizeof counters);
  counters.struct_size = offsetof(rdm_counters, device_constructions);
  CHECK_OK(rdm_get_counters(&counters));
  CHECK_COUNT(counters, device_lookups, 1);
  CHECK_COUNT(counters, device_hits, 0);
  CHECK_COUNT(counters, device_constructions, UINT64_C(0x5555555555555555));
  CHECK_COUNT(counters, struct_size, offsetof(rdm_counters, device_constructions));
}

static void lookups_are_counted(void) {
  test_use_sim(2);
  rdm_device device;
  rdm_stream stream;
  rdm_encoder encoder;
  rdm_module module;
  for (int i = 0; i < 10; i++) CHECK_OK(rdm_device_get(0, &device));
  for (int i = 0; i < 5; i++) CHECK_OK(rdm_device_get_within(1, 0, &device));
  CHECK_STATUS(rdm_device_get(2, &device), RDM_ERROR_INVALID_DEVICE);
  /* A stream is created on a device, which is one more lookup. */
  CHECK_OK(rdm_stream_create(0, &stream));
  for (int i = 0; i < 10; i++) CHECK_OK(rdm_encoder_get(stream, &encoder));
  CHECK_OK(rdm_clear_encoders());
  for (int i = 0; i < 10; i++) CHECK_OK(rdm_encoder_get(stream, &encoder));
  for (int i = 0; i < 10; i++) CHECK_OK(rdm_module_get(device, &work_source, &module));
  rdm_counters counters = read_counters();
  CHECK_COUNT(counters, device_lookups, 16);
  CHECK_COUNT(counters, device_hits, 14);
  CHECK_COUNT(counters, device_constructions, 2);
  CHECK_COUNT(counters, encoder_lookups, 20);
  CHECK_COUNT(counters, encoder_hits, 18);
  CHECK_COUNT(counters, encoders_created, 2);
  CHECK_COUNT(counters, encoders_alive, 1);
  CHECK_COUNT(counters, streams_created, 1);
  CHECK_COUNT(counters, streams_alive, 1);
  CHECK_COUNT(counters, driver_streams, 1);
  CHECK_COUNT(counters, module_lookups, 10);
  CHECK_COUNT(counters, module_hits, 9);
  CHECK_COUNT(counters, modules_loaded, 1);
  CHECK_COUNT(counters, compiles, 1);
  CHECK_COUNT(counters, compiles_running, 0);
  CHECK_COUNT(counters, compile_failures, 0);
  CHECK(counters.compile_time_ns > 0);
  CHECK_OK(rdm_stream_release(stream));
  CHECK_OK(rdm_clear_encoders());
  counters = read_counters();
  CHECK_COUNT(counters, encoders_alive, 0);
  CHECK_COUNT(counters, streams_created, 1);
  CHECK_COUNT(counters, streams_alive, 0);
  CHECK_COUNT(counters, driver_streams, 1);
}

static void events_are_counted(void) {
  test_use_sim(1);
  rdm_device device;
  rdm_event events[5];
  CHECK_OK(rdm_device_get(0, &device));
  for (int i = 0; i < 5; i++) CHECK_OK(rdm_event_create(device, RDM_EVENT_DEFAULT, &events[i]));
  rdm_counters counters = read_counters();
  CHECK_COUNT(counters, events_created, 5);
  CHECK_COUNT(counters, events_released, 0);
  CHECK_COUNT(counters, events_alive, 5);
  CHECK_COUNT(counters, events_pooled, 0);
  CHECK_COUNT(counters, driver_events, 5);
  CHECK_COUNT(counters, event_pool_visits, 5);
  for (int i = 0; i < 3; i++) CHECK_OK(rdm_event_release(events[i]));
  CHECK_OK(rdm_event_create(device, RDM_EVENT_DEFAULT, &events[0]));
  CHECK_STATUS(rdm_event_release(events[1]), RDM_ERROR_STALE_HANDLE);
  counters = read_counters();
  CHECK_COUNT(counters, events_created, 6);
  CHECK_COUNT(counters, events_released, 3);
  CHECK_COUNT(counters, events_alive, 3);
  CHECK_COUNT(counters, events_pooled, 2);
  CHECK_COUNT(counters, driver_events, 5);
  CHECK_COUNT(counters, event_pool_visits, 5);
}

static atomic_uint handlers_run;

static void count_handler(rdm_status status, void *user_data) {
  (void)user_data;
  CHECK_OK(status);
  handlers_run++;
}

static void work_is_counted(void) {
  test_use_sim(1);
  work_kernels kernels;
  work_buffers buffers;
  rdm_stream stream;
  rdm_encoder encoder;
  rdm_event event;
  CHECK_OK(work_load(0, &kernels));
  CHECK_OK(work_buffers_allocate(kernels.device, &buffers));
  CHECK_OK(rdm_stream_create(0, &stream));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
  CHECK_OK(rdm_event_create(kernels.device, RDM_EVENT_DEFAULT, &event));
  /* Three launches and a copy. */
  CHECK_OK(work_submit(encoder, &kernels, &buffers));
  CHECK_OK(rdm_encoder_fill(encoder, buffers.first, 0, 8));
  CHECK_OK(rdm_encoder_fill(encoder, buffers.first, 0, 0));
  CHECK_OK(rdm_encoder_copy(encoder, buffers.first, buffers.second, 100, RDM_COPY_DEVICE_TO_DEVICE));
  for (int i = 0; i < 2; i++) CHECK_OK(rdm_encoder_record_event(encoder, event));
  for (int i = 0; i < 3; i++) CHECK_OK(rdm_encoder_wait_event(encoder, event));
  const rdm_launch_config config = {.struct_size = sizeof config, .grid = {1, 1, 1}, .block = {2048, 1, 1}};
  unsigned count = 1;
  void *arguments[] = {&buffers.first, &count};
  CHECK_STATUS(rdm_encoder_launch(encoder, kernels.step, &config, arguments, 2), RDM_ERROR_LAUNCH);
  for (int i = 0; i < 4; i++) {
    CHECK_OK(rdm_encoder_add_completion_handler(encoder, count_handler, NULL));
    if (i != 0) CHECK_OK(rdm_encoder_commit(encoder));
  }
  CHECK_STATUS(rdm_stream_synchronize(stream, RDM_WAIT_FOREVER), RDM_ERROR_LAUNCH);
  CHECK(handlers_run == 4);
  rdm_counters counters = read_counters();
  CHECK_COUNT(counters, launches, 3);
  CHECK_COUNT(counters, launches_refused, 1);
  CHECK_COUNT(counters, copies, 2);
  CHECK_COUNT(counters, copied_bytes, WORK_ELEMENTS * sizeof(float) + 100);
  CHECK_COUNT(counters, fills, 1);
  CHECK_COUNT(counters, event_records, 2);
  CHECK_COUNT(counters, event_waits, 3);
  CHECK_COUNT(counters, batches_committed, 3);
  CHECK_COUNT(counters, batches_pending, 0);
  CHECK_COUNT(counters, driver_errors, 1);
  CHECK_COUNT(counters, stream_errors, 1);
  CHECK_COUNT(counters, device_allocations, 3);
  CHECK_COUNT(counters, host_allocations, 1);
  CHECK_COUNT(counters, device_frees, 0);
  CHECK_COUNT(counters, faults, 0);
  CHECK_OK(work_buffers_free(&buffers));
  counters = read_counters();
  CHECK_COUNT(counters, device_frees, 3);
  CHECK_COUNT(counters, host_frees, 1);
}

static void graphs_are_counted(void) {
  test_use_sim(1);
  rdm_device device;
  rdm_stream stream;
  rdm_encoder encoder;
  rdm_graph graph;
  void *memory;
  CHECK_OK(rdm_device_get(0, &device));
  CHECK_OK(rdm_memory_allocate(device, 64, &memory));
  CHECK_OK(rdm_stream_create(0, &stream));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
  CHECK_OK(rdm_encoder_begin_capture(encoder));
  for (int i = 0; i < 3; i++) CHECK_OK(rdm_encoder_fill(encoder, memory, 1, 64));
  CHECK_OK(rdm_encoder_end_capture(encoder, &graph));
  for (int i = 0; i < 5; i++) CHECK_OK(rdm_encoder_launch_graph(encoder, graph));
  rdm_counters counters = read_counters();
  CHECK_COUNT(counters, fills, 3);
  CHECK_COUNT(counters, graphs_created, 1);
  CHECK_COUNT(counters, graphs_alive, 1);
  CHECK_COUNT(counters, graph_launches, 5);
  CHECK_OK(rdm_sim_inject("hipGraphLaunch", 1, 1, 1, 0));
  CHECK_STATUS(rdm_encoder_launch_graph(encoder, graph), RDM_ERROR_DRIVER);
  CHECK_OK(rdm_graph_release(graph));
  counters = read_counters();
  CHECK_COUNT(counters, graphs_created, 1);
  CHECK_COUNT(counters, graphs_alive, 0);
  CHECK_COUNT(counters, graph_launches, 5);
  CHECK_COUNT(counters, launches_refused, 1);
  CHECK_COUNT(counters, launches, 0);
}

static rdm_event held_event;

static void *wait_for_event(void *argument) {
  (void)argument;
  CHECK_OK(rdm_event_wait(held_event, RDM_WAIT_FOREVER));
  return NULL;
}

static void wait_until_waiting(uint64_t count) {
  uint64_t end = test_now_ns() + 20 * TEST_SECOND;
  while (read_counters().waits_running != count) {
    CHECK_THAT(test_now_ns() < end, "%llu threads wait", (unsigned long long)read_counters().waits_running);
    test_sleep_ns(TEST_MILLISECOND);
  }
}

static void waits_are_counted(void) {
  test_use_sim(1);
  work_kernels kernels;
  work_buffers buffers;
  rdm_stream stream;
  rdm_encoder encoder;
  CHECK_OK(work_load(0, &kernels));
  CHECK_OK(work_buffers_allocate(kernels.device, &buffers));
  CHECK_OK(rdm_stream_create(0, &stream));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
  CHECK_OK(rdm_event_create(kernels.device, RDM_EVENT_DEFAULT, &held_event));
  CHECK_OK(rdm_sim_hold(0, 1));
  CHECK_OK(work_submit(encoder, &kernels, &buffers));
  CHECK_OK(rdm_encoder_record_event(encoder, held_event));
  CHECK_COUNT(read_counters(), waits, 0);
  for (int i = 0; i < 2; i++) {
    CHECK_STATUS(rdm_event_wait(held_event, 20 * TEST_MILLISECOND), RDM_ERROR_TIMEOUT);
  }
  rdm_counters counters = read_counters();
  CHECK_COUNT(counters, waits, 2);
  CHECK_COUNT(counters, waits_running, 0);
  CHECK_COUNT(counters, wait_timeouts, 2);
  CHECK_THAT(counters.wait_time_ns > 35 * TEST_MILLISECOND && counters.wait_time_ns < 20 * TEST_SECOND, "%llu ns",
             (unsigned long long)counters.wait_time_ns);
  pthread_t threads[3];
  for (int i = 0; i < 3; i++) threads[i] = test_start_thread(wait_for_event, NULL);
  wait_until_waiting(3);
  CHECK_COUNT(read_counters(), waits, 5);
  CHECK_OK(rdm_sim_hold(0, 0));
  for (int i = 0; i < 3; i++) test_join_thread(threads[i]);
  /* What is done already is not waited for. */
  CHECK_OK(rdm_event_wait(held_event, RDM_WAIT_FOREVER));
  counters = read_counters();
  CHECK_COUNT(counters, waits, 5);
  CHECK_COUNT(counters, waits_running, 0);
  CHECK_COUNT(counters, wait_timeouts, 2);
  CHECK_COUNT(counters, wait_watchdogs, 0);
}

/* The wait pins the event, whose handle has ended: it is released, and its memory not free yet. */
static void an_event_that_is_released_while_another_thread_waits_is_counted_once(void) {
  test_use_sim(1);
  rdm_device device;
  rdm_stream stream;
  rdm_encoder encoder;
  void *memory;
  CHECK_OK(rdm_device_get(0, &device));
  CHECK_OK(rdm_memory_allocate(device, 64, &memory));
  CHECK_OK(rdm_stream_create(0, &stream));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
  CHECK_OK(rdm_event_create(device, RDM_EVENT_DEFAULT, &held_event));
  CHECK_OK(rdm_sim_hold(0, 1));
  CHECK_OK(rdm_encoder_fill(encoder, memory, 0, 64));
  CHECK_OK(rdm_encoder_record_event(encoder, held_event));
  pthread_t thread = test_start_thread(wait_for_event, NULL);
  wait_until_waiting(1);
  CHECK_OK(rdm_event_release(held_event));
  for (int i = 0; i < 2; i++) {
    rdm_counters counters = read_counters();
    CHECK_COUNT(counters, events_created, 1);
    CHECK_COUNT(counters, events_released, 1);
    CHECK_COUNT(counters, events_alive, 0);
    CHECK_COUNT(counters, waits_running, 1 - i);
    if (i > 0) break;
    CHECK_OK(rdm_sim_hold(0, 0));
    test_join_thread(thread);
  }
}

static void failures_are_counted(void) {
  test_use_sim(2);
  work_kernels kernels;
  rdm_stream stream;
  rdm_encoder encoder;
  rdm_module module;
  rdm_module_source broken = work_source;
  broken.source = "this is no kernel";
  CHECK_OK(work_load(0, &kernels));
  for (int i = 0; i < 2; i++) CHECK_STATUS(rdm_module_get(kernels.device, &broken, &module), RDM_ERROR_COMPILE);
  CHECK_OK(rdm_stream_create(0, &stream));
  CHECK_OK(rdm_stream_record_error(stream, RDM_ERROR_DRIVER, "first"));
  CHECK_OK(rdm_stream_record_error(stream, RDM_ERROR_DRIVER, "second, which is not kept"));
  rdm_counters counters = read_counters();
  CHECK_COUNT(counters, compiles, 3);
  CHECK_COUNT(counters, compile_failures, 2);
  CHECK_COUNT(counters, modules_loaded, 1);
  CHECK_COUNT(counters, stream_errors, 1);
  CHECK_COUNT(counters, driver_errors, 0);
  /* The error of a stream that ends is kept elsewhere, and is still one. */
  CHECK_OK(rdm_stream_release(stream));
  CHECK_COUNT(read_counters(), stream_errors, 1);
  CHECK_OK(rdm_stream_create(0, &stream));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
  CHECK_OK(rdm_sim_fault(0, 700));
  CHECK_STATUS(rdm_stream_synchronize(stream, RDM_WAIT_FOREVER), RDM_ERROR_DEVICE_FAULT);
  CHECK_STATUS(rdm_stream_synchronize(stream, RDM_WAIT_FOREVER), RDM_ERROR_DEVICE_FAULT);
  counters = read_counters();
  CHECK_COUNT(counters, faults, 1);
  CHECK_COUNT(counters, driver_errors, 1);
}

static void *launch_and_stall(void *argument) {
  const work_kernels *kernels = argument;
  CHECK_OK(work_on_new_stream(0, 1));
  (void)kernels;
  return NULL;
}

static void a_thread_that_stands_still_in_the_driver_holds_no_reader_up(void) {
  test_use_sim(1);
  work_kernels kernels;
  CHECK_OK(work_load(0, &kernels));
  CHECK_OK(rdm_sim_inject("hipModuleLaunchKernel", 1, 1, 0, TEST_SECOND));
  pthread_t thread = test_start_thread(launch_and_stall, &kernels);
  calls_wait_until_inside("hipModuleLaunchKernel", 20 * TEST_SECOND);
  uint64_t start = test_now_ns();
  for (int i = 0; i < 10; i++) CHECK_COUNT(read_counters(), launches, 0);
  CHECK(test_now_ns() - start < TEST_SECOND / 2);
  test_join_thread(thread);
  CHECK_COUNT(read_counters(), launches, 3);
}

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

const test_case counter_tests[] = {
    {.name = "nothing_is_counted_before_the_first_use", .function = nothing_is_counted_before_the_first_use},
    {.name = "an_older_callers_struct_is_filled_as_far_as_it_goes",
     .function = an_older_callers_struct_is_filled_as_far_as_it_goes},
    {.name = "lookups_are_counted", .function = lookups_are_counted},
    {.name = "events_are_counted", .function = events_are_counted},
    {.name = "work_is_counted", .function = work_is_counted},
    {.name = "graphs_are_counted", .function = graphs_are_counted},
    {.name = "waits_are_counted", .function = waits_are_counted},
    {.name = "failures_are_counted", .function = failures_are_counted},
    {.name = "a_thread_that_stands_still_in_the_driver_holds_no_reader_up",
     .function = a_thread_that_stands_still_in_the_driver_holds_no_reader_up},
    {.name = "sums_are_exact_whatever_threads_end", .function = sums_are_exact_whatever_threads_end},
    {.name = "what_threads_count_for_the_process_at_once_all_counts",
     .function = what_threads_count_for_the_process_at_once_all_counts},
    {.name = "an_event_that_is_released_while_another_thread_waits_is_counted_once",
     .function = an_event_that_is_released_while_another_thread_waits_is_counted_once},
    {.name = "cells_go_from_thread_to_thread_and_lose_nothing",
     .function = cells_go_from_thread_to_thread_and_lose_nothing},
    {.name = "lookups_of_a_thread_that_is_ending_are_counted",
     .function = lookups_of_a_thread_that_is_ending_are_counted},
    {.name = "a_slot_whose_generations_begin_anew_is_counted_on",
     .function = a_slot_whose_generations_begin_anew_is_counted_on},
    {0},
};
