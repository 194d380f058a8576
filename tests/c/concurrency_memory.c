/* What a thread remembers and keeps of its own: devices, encoders and events found without a lock. */
#include "calls.h"
#include "concurrency.h"

enum { DEVICES = 12, ENDED_THREADS = 40, EVENTS = 40 };

static rdm_device devices[DEVICES];

static void set_up(int32_t device_count) {
  test_use_sim(device_count);
  for (int32_t i = 0; i < device_count; i++) CHECK_OK(rdm_device_get(i, &devices[i]));
}

static void more_devices_than_a_thread_remembers_are_told_apart(void) {
  set_up(DEVICES);
  for (int round = 0; round < 2; round++) {
    for (int32_t i = 0; i < DEVICES; i++) {
      rdm_device found;
      rdm_device_info info = {.struct_size = sizeof info};
      CHECK_OK(rdm_device_get(i, &found));
      CHECK_OK(rdm_device_get_info(found, &info));
      CHECK_THAT(info.device_index == i, "asked for device %d and got %d", i, info.device_index);
    }
  }
}

static void lookups_after_a_fault_are_told_of_it(void) {
  rdm_stream stream;
  rdm_encoder encoder;
  rdm_event event;
  void *pointer = NULL;
  set_up(1);
  CHECK_OK(rdm_stream_create(0, &stream));
  for (int i = 0; i < 2; i++) CHECK_OK(rdm_encoder_get(stream, &encoder));
  CHECK_OK(rdm_event_create(devices[0], RDM_EVENT_DEFAULT, &event));
  CHECK_OK(rdm_event_release(event));
  CHECK_OK(rdm_sim_fault(0, 700));
  CHECK_STATUS(rdm_memory_allocate(devices[0], 64, &pointer), RDM_ERROR_DEVICE_FAULT);
  CHECK_STATUS(rdm_encoder_get(stream, &encoder), RDM_ERROR_DEVICE_FAULT);
  CHECK_STATUS(rdm_event_create(devices[0], RDM_EVENT_DEFAULT, &event), RDM_ERROR_DEVICE_FAULT);
}

/* ---- What a thread holds ---------------------------------------------------------------------------------------- */

/* The magazine and the thread's streams are given back by hooks of their own. */
static void *hold_some(void *argument) {
  rdm_thread_local_stream shared;
  rdm_stream resolved;
  rdm_encoder encoder;
  rdm_event event;
  (void)argument;
  CHECK_OK(rdm_thread_local_stream_get_shared(0, &shared));
  CHECK_OK(rdm_thread_local_stream_resolve(shared, &resolved));
  CHECK_OK(rdm_encoder_get(resolved, &encoder));
  CHECK_OK(rdm_event_create(devices[0], RDM_EVENT_DEFAULT, &event));
  CHECK_OK(rdm_event_release(event));
  return NULL;
}

static void what_a_thread_held_goes_back_as_it_ends(void) {
  set_up(1);
  for (int i = 0; i < ENDED_THREADS; i++) test_join_thread(test_start_thread(hold_some, NULL));
  rdm_sim_objects objects = calls_count_objects();
  CHECK_THAT(objects.events <= 4, "%d threads, one at a time, made %llu events", ENDED_THREADS,
             (unsigned long long)objects.events);
  CHECK_THAT(objects.streams <= 12, "%d threads, one at a time, made %llu driver streams", ENDED_THREADS,
             (unsigned long long)objects.streams);
}

static void events_of_ended_threads_keep_to_their_device(void) {
  rdm_stream stream;
  rdm_encoder encoder;
  rdm_event event;
  set_up(2);
  test_join_thread(test_start_thread(hold_some, NULL));
  CHECK_OK(rdm_stream_create(1, &stream));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
  CHECK_OK(rdm_event_create(devices[1], RDM_EVENT_DEFAULT, &event));
  CHECK_OK(rdm_encoder_record_event(encoder, event));
  CHECK_OK(rdm_event_wait(event, RDM_WAIT_FOREVER));
}

/* More than a magazine holds, so that each round goes to the shared pool and back several times. */
static void use_many_events(unsigned number) {
  rdm_event events[EVENTS];
  (void)number;
  for (int round = 0; round < 200 / TEST_SLOWDOWN; round++) {
    for (int i = 0; i < EVENTS; i++) CHECK_OK(rdm_event_create(devices[0], RDM_EVENT_DEFAULT, &events[i]));
    for (int i = 0; i < EVENTS; i++) CHECK_OK(rdm_event_release(events[i]));
  }
}

static void threads_that_empty_and_fill_the_pool_at_once_lose_nothing(void) {
  enum { THREADS = 4 };
  set_up(1);
  test_run_threads(THREADS, use_many_events);
  uint64_t made = calls_count_objects().events;
  CHECK_THAT(made <= THREADS * (EVENTS + 30), "%llu events for %d at a time", (unsigned long long)made,
             THREADS * EVENTS);
}

static void *create_event(void *argument) {
  rdm_event event;
  (void)argument;
  CHECK_OK(rdm_event_create(devices[0], RDM_EVENT_DEFAULT, &event));
  return NULL;
}

/* So many that a magazine does not hold them, and the shared pool has to take some. */
static void what_a_thread_gives_back_waits_for_no_creation(void) {
  rdm_event events[EVENTS];
  set_up(1);
  for (int i = 0; i < EVENTS; i++) CHECK_OK(rdm_event_create(devices[0], RDM_EVENT_DEFAULT, &events[i]));
  CHECK_OK(rdm_sim_inject("hipEventCreateWithFlags", 1, 1, 0, TEST_SECOND));
  pthread_t creator = test_start_thread(create_event, NULL);
  calls_wait_until_inside("hipEventCreateWithFlags", 10 * TEST_SECOND);
  uint64_t start = test_now_ns();
  for (int i = 0; i < EVENTS; i++) CHECK_OK(rdm_event_release(events[i]));
  CHECK_THAT(test_now_ns() - start < TEST_SECOND / 2, "a release was held up by a creation");
  test_join_thread(creator);
}

const test_case memory_tests[] = {
    {.name = "more_devices_than_a_thread_remembers_are_told_apart",
     .function = more_devices_than_a_thread_remembers_are_told_apart},
    {.name = "lookups_after_a_fault_are_told_of_it",
     .function = lookups_after_a_fault_are_told_of_it,
     .writes_to_standard_error = true},
    {.name = "what_a_thread_held_goes_back_as_it_ends", .function = what_a_thread_held_goes_back_as_it_ends},
    {.name = "events_of_ended_threads_keep_to_their_device", .function = events_of_ended_threads_keep_to_their_device},
    {.name = "threads_that_empty_and_fill_the_pool_at_once_lose_nothing",
     .function = threads_that_empty_and_fill_the_pool_at_once_lose_nothing},
    {.name = "what_a_thread_gives_back_waits_for_no_creation",
     .function = what_a_thread_gives_back_waits_for_no_creation},
    {0},
};
