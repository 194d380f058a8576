/* The simulated driver's rules on streams, events and host callbacks. */
#include "sim_driver_test.h"

static void streams(void) {
  open_driver(2);
  void *stream = NULL;
  RETURNS(RDM_HIP_NOT_SUPPORTED, driver->stream_create(&stream, 0));
  RETURNS(RDM_HIP_INVALID_VALUE, driver->stream_create(&stream, 2));
  RETURNS(RDM_HIP_INVALID_VALUE, driver->stream_create(NULL, 1));
  stream = create_stream();
  RETURNS(0, driver->stream_query(stream));
  RETURNS(0, driver->stream_synchronize(stream));
  char *device = allocate(16);
  hold(0, true);
  RETURNS(0, driver->memory_set_async(device, 1, 16, stream));
  RETURNS(RDM_HIP_NOT_READY, driver->stream_query(stream));
  sleep_ms(20);
  RETURNS(RDM_HIP_NOT_READY, driver->stream_query(stream));
  hold(0, false);
  RETURNS(0, driver->stream_synchronize(stream));
  RETURNS(0, driver->stream_query(stream));

  RETURNS(RDM_HIP_NOT_SUPPORTED, driver->stream_query(NULL));
  RETURNS(RDM_HIP_NOT_SUPPORTED, driver->stream_synchronize(NULL));
  RETURNS(RDM_HIP_INVALID_HANDLE, driver->stream_destroy(NULL));
  RETURNS(RDM_HIP_INVALID_HANDLE, driver->stream_query(&device));
  RETURNS(RDM_HIP_INVALID_HANDLE, driver->stream_query((char *)stream + 1));
  /* An event is no stream. */
  void *event = create_event(0);
  RETURNS(RDM_HIP_INVALID_HANDLE, driver->stream_query(event));
  RETURNS(RDM_HIP_INVALID_HANDLE, driver->event_query(stream));
  RETURNS(0, driver->event_destroy(event));
  RETURNS(RDM_HIP_INVALID_HANDLE, driver->event_destroy(event));
  CHECK(rdm__sim_handle_count(RDM__SIM_STREAM) == 1 && rdm__sim_handle_count(RDM__SIM_EVENT) == 0);

  /* Work that is in a stream completes after the stream was destroyed. */
  char back[16] = {0};
  hold(0, true);
  RETURNS(0, driver->memory_copy_async(back, device, 16, RDM_COPY_DEVICE_TO_HOST, stream));
  RETURNS(0, driver->stream_destroy(stream));
  RETURNS(RDM_HIP_INVALID_HANDLE, driver->stream_destroy(stream));
  RETURNS(RDM_HIP_INVALID_HANDLE, driver->stream_query(stream));
  RETURNS(RDM_HIP_INVALID_HANDLE, driver->memory_set_async(device, 2, 16, stream));
  void *next = create_stream();
  CHECK(next != stream);
  RETURNS(RDM_HIP_INVALID_HANDLE, driver->stream_query(stream));
  hold(0, false);
  RETURNS(0, driver->device_synchronize());
  CHECK(back[15] == 1);
  RETURNS(0, driver->memory_free(device));
  RETURNS(0, driver->stream_destroy(next));
  CHECK(rdm__sim_handle_count(RDM__SIM_STREAM) == 0);
}

static void *free_memory(void *pointer) {
  RETURNS(0, driver->memory_free(pointer));
  return NULL;
}

static void free_waits(void) {
  open_driver(1);
  void *stream = create_stream();
  char *device = allocate(16);
  char back[16] = {0};
  hold(0, true);
  RETURNS(0, driver->memory_set_async(device, 3, 16, stream));
  RETURNS(0, driver->memory_copy_async(back, device, 16, RDM_COPY_DEVICE_TO_HOST, stream));
  pthread_t thread;
  pthread_create(&thread, NULL, free_memory, device);
  sleep_ms(30);
  CHECK(rdm__sim_memory_device_allocation_count() == 1);
  hold(0, false);
  pthread_join(thread, NULL);
  CHECK(back[0] == 3 && rdm__sim_memory_device_allocation_count() == 0);
  RETURNS(0, driver->stream_destroy(stream));
}

static void unused(void *user_data) {
  (void)user_data;
}

/* Submitting under another current device is refused; waiting and asking are not. */
static void wrong_current_device(void) {
  open_driver(2);
  void *stream = create_stream();
  void *event = create_event(0);
  char *device = allocate(16);
  char back[16];
  RETURNS(0, driver->set_device(1));
  void *other_event = create_event(0);
  RETURNS(RDM_HIP_INVALID_HANDLE, driver->event_record(event, stream));
  RETURNS(RDM_HIP_INVALID_HANDLE, driver->memory_copy_async(back, device, 16, 2, stream));
  RETURNS(RDM_HIP_INVALID_HANDLE, driver->memory_set_async(device, 0, 16, stream));
  RETURNS(RDM_HIP_INVALID_HANDLE, driver->launch_host_function(stream, unused, NULL));
  RETURNS(0, driver->stream_query(stream));
  RETURNS(0, driver->stream_synchronize(stream));
  RETURNS(0, driver->event_query(event));
  RETURNS(0, driver->stream_wait_event(stream, event, 0));
  RETURNS(0, driver->set_device(0));
  RETURNS(RDM_HIP_INVALID_HANDLE, driver->event_record(other_event, stream));
  RETURNS(0, driver->event_record(event, stream));
  RETURNS(0, driver->set_device(1));
  RETURNS(0, driver->event_synchronize(event));
  RETURNS(0, driver->event_destroy(event));
  RETURNS(0, driver->event_destroy(other_event));
  RETURNS(0, driver->stream_destroy(stream));
  RETURNS(0, driver->memory_free(device));
}

static void events(void) {
  open_driver(2);
  void *event = NULL;
  RETURNS(RDM_HIP_INVALID_VALUE, driver->event_create(&event, 4));
  RETURNS(RDM_HIP_INVALID_VALUE, driver->event_create(NULL, 0));
  event = create_event(RDM_HIP_EVENT_BLOCKING_SYNC | RDM_HIP_EVENT_DISABLE_TIMING);
  void *stream = create_stream();
  RETURNS(0, driver->event_query(event));
  RETURNS(0, driver->event_synchronize(event));
  RETURNS(0, driver->stream_wait_event(stream, event, 0));
  RETURNS(RDM_HIP_INVALID_VALUE, driver->stream_wait_event(stream, event, 1));
  RETURNS(RDM_HIP_NOT_SUPPORTED, driver->stream_wait_event(NULL, event, 0));
  RETURNS(RDM_HIP_INVALID_HANDLE, driver->stream_wait_event(stream, NULL, 0));
  RETURNS(RDM_HIP_NOT_SUPPORTED, driver->event_record(event, NULL));
  RETURNS(RDM_HIP_INVALID_HANDLE, driver->event_record(NULL, stream));
  RETURNS(RDM_HIP_INVALID_HANDLE, driver->event_query(NULL));
  hold(0, true);
  RETURNS(0, driver->event_record(event, stream));
  RETURNS(RDM_HIP_NOT_READY, driver->event_query(event));
  /* The event outlives its stream. */
  RETURNS(0, driver->stream_destroy(stream));
  RETURNS(RDM_HIP_NOT_READY, driver->event_query(event));
  hold(0, false);
  RETURNS(0, driver->event_synchronize(event));
  RETURNS(0, driver->event_query(event));
  RETURNS(0, driver->event_destroy(event));
  /* And work that waits for an event outlives the event. */
  stream = create_stream();
  void *second = create_stream();
  event = create_event(0);
  hold(0, true);
  RETURNS(0, driver->event_record(event, stream));
  RETURNS(0, driver->stream_wait_event(second, event, 0));
  RETURNS(0, driver->event_destroy(event));
  hold(0, false);
  RETURNS(0, driver->stream_synchronize(second));
  RETURNS(0, driver->stream_destroy(stream));
  RETURNS(0, driver->stream_destroy(second));
}

static void elapsed_time(void) {
  open_driver(2);
  void *start = create_event(0);
  void *end = create_event(RDM_HIP_EVENT_BLOCKING_SYNC);
  void *untimed = create_event(RDM_HIP_EVENT_DISABLE_TIMING);
  void *stream = create_stream();
  float milliseconds = -1;
  RETURNS(RDM_HIP_INVALID_HANDLE, driver->event_elapsed_time(&milliseconds, start, end));
  RETURNS(0, driver->event_record(start, stream));
  RETURNS(0, driver->stream_synchronize(stream));
  RETURNS(RDM_HIP_INVALID_HANDLE, driver->event_elapsed_time(&milliseconds, start, end));
  hold(0, true);
  RETURNS(0, driver->event_record(end, stream));
  RETURNS(RDM_HIP_NOT_READY, driver->event_elapsed_time(&milliseconds, start, end));
  sleep_ms(20);
  hold(0, false);
  RETURNS(0, driver->event_record(untimed, stream));
  RETURNS(0, driver->stream_synchronize(stream));
  RETURNS(RDM_HIP_INVALID_HANDLE, driver->event_elapsed_time(&milliseconds, start, untimed));
  RETURNS(RDM_HIP_INVALID_VALUE, driver->event_elapsed_time(NULL, start, end));
  CHECK(milliseconds == -1);
  RETURNS(0, driver->event_elapsed_time(&milliseconds, start, end));
  CHECK(milliseconds >= 20 && milliseconds < 20000);
  driver->event_destroy(start);
  driver->event_destroy(end);
  driver->event_destroy(untimed);
  driver->stream_destroy(stream);
}

/* A stream waits for the record that was the latest at the call, not for a later one; also across devices. */
static void waiting_across_devices(void) {
  open_driver(2);
  void *producer = create_stream();
  void *event = create_event(RDM_HIP_EVENT_DISABLE_TIMING);
  char *first = allocate(8);
  char value = 0;
  MUST(driver->set_device(1));
  void *consumer = create_stream();
  MUST(driver->set_device(0));
  hold(0, true);
  RETURNS(0, driver->memory_set_async(first, 5, 8, producer));
  RETURNS(0, driver->event_record(event, producer));
  RETURNS(0, driver->set_device(1));
  RETURNS(0, driver->stream_wait_event(consumer, event, 0));
  RETURNS(0, driver->memory_copy_async(&value, first, 1, RDM_COPY_DEVICE_TO_HOST, consumer));
  sleep_ms(20);
  RETURNS(RDM_HIP_NOT_READY, driver->stream_query(consumer));
  hold(0, false);
  RETURNS(0, driver->stream_synchronize(consumer));
  CHECK(value == 5);

  RETURNS(0, driver->set_device(0));
  RETURNS(0, driver->event_record(event, producer));
  RETURNS(0, driver->event_synchronize(event));
  RETURNS(0, driver->stream_wait_event(consumer, event, 0));
  hold(0, true);
  RETURNS(0, driver->event_record(event, producer));
  RETURNS(RDM_HIP_NOT_READY, driver->event_query(event));
  RETURNS(0, driver->stream_synchronize(consumer));
  hold(0, false);
  RETURNS(0, driver->memory_free(first));
  driver->stream_destroy(producer);
  driver->stream_destroy(consumer);
  driver->event_destroy(event);
}

typedef struct seen_in_callback {
  atomic_int runs;
  int order[3];
  pthread_t thread;
  int result;
} seen_in_callback;

static void note_run(seen_in_callback *seen, int which) {
  sleep_ms(5);
  seen->order[atomic_load(&seen->runs)] = which;
  seen->thread = pthread_self();
  atomic_fetch_add(&seen->runs, 1);
}

static void first_callback(void *user_data) {
  note_run(user_data, 1);
}

static void second_callback(void *user_data) {
  note_run(user_data, 2);
  int device = 0;
  ((seen_in_callback *)user_data)->result = driver->get_device(&device);
}

static void callbacks(void) {
  open_driver(2);
  void *stream = create_stream();
  char *device = allocate(1);
  char value = 0;
  seen_in_callback seen = {.result = -1};
  RETURNS(RDM_HIP_INVALID_VALUE, driver->launch_host_function(stream, NULL, NULL));
  RETURNS(RDM_HIP_NOT_SUPPORTED, driver->launch_host_function(NULL, first_callback, NULL));
  RETURNS(0, driver->memory_set_async(device, 9, 1, stream));
  RETURNS(0, driver->launch_host_function(stream, first_callback, &seen));
  RETURNS(0, driver->launch_host_function(stream, second_callback, &seen));
  RETURNS(0, driver->memory_copy_async(&value, device, 1, RDM_COPY_DEVICE_TO_HOST, stream));
  RETURNS(0, driver->stream_synchronize(stream));
  /* The stream waited for both. */
  CHECK(atomic_load(&seen.runs) == 2 && seen.order[0] == 1 && seen.order[1] == 2 && value == 9);
  CHECK(seen.result == RDM_HIP_NOT_PERMITTED);
  CHECK(!pthread_equal(seen.thread, pthread_self()));
  rdm_sim_call calls[256];
  size_t count = rdm__sim_call_log_read(0, calls, 256);
  int in_callback = 0;
  for (size_t i = 0; i < count; i++) {
    if (!calls[i].in_callback) continue;
    in_callback++;
    CHECK(strcmp(calls[i].entry_point, "hipGetDevice") == 0 && calls[i].result == RDM_HIP_NOT_PERMITTED);
  }
  CHECK(in_callback == 1);

  /* Two streams of one device share the callback thread; another device has its own. */
  seen_in_callback other = {.result = -1};
  void *second = create_stream();
  pthread_t first_thread = seen.thread;
  RETURNS(0, driver->launch_host_function(second, first_callback, &seen));
  RETURNS(0, driver->stream_synchronize(second));
  CHECK(pthread_equal(first_thread, seen.thread));
  RETURNS(0, driver->set_device(1));
  void *third = create_stream();
  RETURNS(0, driver->launch_host_function(third, first_callback, &other));
  RETURNS(0, driver->stream_synchronize(third));
  CHECK(!pthread_equal(first_thread, other.thread));
  driver->stream_destroy(stream);
  driver->stream_destroy(second);
  driver->stream_destroy(third);
  driver->memory_free(device);
}

enum { STRESS_THREADS = 8, STRESS_ROUNDS = 150 };

/* Streams, events and copies made, used and destroyed by many threads on two devices at once. */
static void *stress_thread(void *argument) {
  int device = (int)(intptr_t)argument % 2;
  MUST(driver->set_device(device));
  void *shared = create_stream();
  for (int round = 0; round < STRESS_ROUNDS; round++) {
    void *stream = create_stream();
    void *event = create_event(RDM_HIP_EVENT_DISABLE_TIMING);
    char *memory = allocate(64);
    char values[64] = {0};
    MUST(driver->memory_set_async(memory, round & 0x7F, 64, stream));
    MUST(driver->event_record(event, stream));
    MUST(driver->stream_wait_event(shared, event, 0));
    MUST(driver->memory_copy_async(values, memory, 64, RDM_COPY_DEVICE_TO_HOST, shared));
    MUST(driver->event_record(event, shared));
    MUST(driver->stream_destroy(stream));
    MUST(driver->event_synchronize(event));
    CHECK(values[0] == (round & 0x7F) && values[63] == (round & 0x7F));
    MUST(driver->event_destroy(event));
    MUST(driver->memory_free(memory));
  }
  MUST(driver->stream_destroy(shared));
  return NULL;
}

static void stress(void) {
  open_driver(2);
  pthread_t threads[STRESS_THREADS];
  for (int i = 0; i < STRESS_THREADS; i++) pthread_create(&threads[i], NULL, stress_thread, (void *)(intptr_t)i);
  for (int i = 0; i < STRESS_THREADS; i++) pthread_join(threads[i], NULL);
  CHECK(rdm__sim_handle_count(RDM__SIM_STREAM) == 0 && rdm__sim_handle_count(RDM__SIM_EVENT) == 0);
  CHECK(rdm__sim_memory_device_allocation_count() == 0);
}

/* Of many threads that destroy one handle, one does. */
static void *shared_handle;
static atomic_int destroyed;
static pthread_barrier_t barrier;

static void *destroy_shared(void *argument) {
  (void)argument;
  pthread_barrier_wait(&barrier);
  for (int i = 0; i < 20; i++) driver->event_query(shared_handle);
  int result = driver->event_destroy(shared_handle);
  if (result == 0) atomic_fetch_add(&destroyed, 1);
  CHECK(result == 0 || result == RDM_HIP_INVALID_HANDLE);
  return NULL;
}

static void destroying_at_once(void) {
  open_driver(1);
  for (int round = 0; round < 20; round++) {
    shared_handle = create_event(0);
    pthread_t threads[4];
    pthread_barrier_init(&barrier, NULL, 4);
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, destroy_shared, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
  }
  CHECK(atomic_load(&destroyed) == 20 && rdm__sim_handle_count(RDM__SIM_EVENT) == 0);
}

const sim_test stream_tests[] = {
    {"streams", streams, NULL, 0},
    {"free_waits", free_waits, NULL, 0},
    {"wrong_current_device", wrong_current_device, NULL, 0},
    {"events", events, NULL, 0},
    {"elapsed_time", elapsed_time, NULL, 0},
    {"waiting_across_devices", waiting_across_devices, NULL, 0},
    {"callbacks", callbacks, NULL, 0},
    {"stress", stress, NULL, 0},
    {"destroying_at_once", destroying_at_once, NULL, 0},
    {NULL, NULL, NULL, 0},
};
