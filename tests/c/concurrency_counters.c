/* rdm_get_counters: exact for a known sequence. */
#include "calls.h"
#include "concurrency.h"
#include "counters.h"
#include "work.h"

#include <stdatomic.h>
#include <string.h>

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
    {.name = "an_event_that_is_released_while_another_thread_waits_is_counted_once",
     .function = an_event_that_is_released_while_another_thread_waits_is_counted_once},
    {0},
};
