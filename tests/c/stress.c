/*
 * Many threads on several devices at once, through the public header alone. Each thread creates streams on the devices
 * in turn, evaluates arange(256) * 2 + 1 on each and compares every element, while first uses of devices race with
 * lookups, another thread clears the encoders, events order work across devices, completion handlers run, and streams
 * and events are released by other threads than those that made them.
 *
 *   stress [DEVICES [THREADS [ROUNDS]]]
 *
 * Runs on the simulated driver where RDM_DRIVER is not set. Exit code 0 where all was exact and nothing failed.
 */
#include "rocm_device_map.h"
#include "work.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MAX_DEVICES = 64, MAX_THREADS = 256 };

static int32_t device_count = 2;
static uint32_t thread_count = 8;
static uint32_t round_count = 16;

static pthread_barrier_t barrier;
static atomic_ullong evaluations;
static atomic_ullong wrong_values;
static atomic_ullong errors;
static atomic_ullong stale_encoders;
static atomic_ullong encoder_clears;
static atomic_ullong handlers_added;
static atomic_ullong handlers_run;
static atomic_ullong streams_created;
static atomic_ullong events_created;
static atomic_bool workers_done;
static atomic_bool device_used[MAX_DEVICES];

/* What one thread leaves for another to release. */
static _Atomic(uint64_t) left_streams[MAX_THREADS];
static _Atomic(uint64_t) left_events[MAX_THREADS];

typedef struct worker {
  uint32_t number;
  rdm_thread_local_stream shared[MAX_DEVICES];
  work_kernels kernels[MAX_DEVICES];
  work_buffers buffers[MAX_DEVICES];
  bool loaded[MAX_DEVICES];
} worker;

/* Counts a failure and prints the first few. */
static bool succeeded(rdm_status status, const char *call, int line) {
  if (status == RDM_OK) return true;
  if (atomic_fetch_add(&errors, 1) < 20) {
    fprintf(stderr, "stress.c:%d: %s: %s: %s\n", line, call, rdm_status_name(status), rdm_last_error_message());
  }
  return false;
}

#define TRY(call)                                          \
  do {                                                     \
    if (!succeeded((call), #call, __LINE__)) return false; \
  } while (0)

/* Does a call on the stream's encoder, again with its fresh one where another thread has just cleared it. */
#define TRY_ON_ENCODER(stream, call)                           \
  do {                                                         \
    rdm_status status_;                                        \
    do {                                                       \
      rdm_encoder encoder;                                     \
      status_ = rdm_encoder_get((stream), &encoder);           \
      if (status_ == RDM_OK) status_ = (call);                 \
      if (status_ == RDM_ERROR_STALE_HANDLE) stale_encoders++; \
    } while (status_ == RDM_ERROR_STALE_HANDLE);               \
    if (!succeeded(status_, #call, __LINE__)) return false;    \
  } while (0)

static void count_handler(rdm_status status, void *user_data) {
  (void)user_data;
  succeeded(status, "completion handler", __LINE__);
  handlers_run++;
}

static bool load(worker *self, int32_t device_index) {
  if (self->loaded[device_index]) return true;
  TRY(rdm_thread_local_stream_get_shared(device_index, &self->shared[device_index]));
  TRY(work_load(device_index, &self->kernels[device_index]));
  TRY(work_buffers_allocate(self->kernels[device_index].device, &self->buffers[device_index]));
  self->loaded[device_index] = true;
  device_used[device_index] = true;
  return true;
}

static bool evaluate(worker *self, int32_t device_index, rdm_stream stream) {
  uint32_t wrong = 0;
  TRY(work_evaluate(stream, &self->kernels[device_index], &self->buffers[device_index], &wrong));
  evaluations++;
  wrong_values += wrong;
  return true;
}

/* Makes the work of `second` wait for an event of `first`, which may be on another device; leaves the event. */
static bool order_streams(worker *self, int32_t first_device, rdm_stream first, int32_t second_device,
                          rdm_stream second) {
  rdm_event event;
  TRY(rdm_event_create(self->kernels[first_device].device, self->number % 2, &event));
  events_created++;
  rdm_status early = rdm_event_wait(event, 0);
  if (early != RDM_ERROR_NOT_RECORDED) succeeded(early == RDM_OK ? WORK_WRONG_VALUE : early, "early wait", __LINE__);
  TRY_ON_ENCODER(first, rdm_encoder_record_event(encoder, event));
  TRY_ON_ENCODER(second, rdm_encoder_wait_event(encoder, event));
  if (!evaluate(self, second_device, second)) return false;
  TRY(rdm_event_query(event));
  TRY(rdm_event_wait(event, RDM_WAIT_FOREVER));
  uint64_t other = atomic_exchange(&left_events[(self->number + 1) % thread_count], event.bits);
  if (other != 0) TRY(rdm_event_release((rdm_event){other}));
  return true;
}

static bool run_round(worker *self, uint32_t round) {
  int32_t device_index = (int32_t)((self->number + round) % (uint32_t)device_count);
  int32_t other_index = (device_index + 1) % device_count;
  rdm_stream stream;
  TRY(rdm_stream_create(device_index, &stream));
  streams_created++;
  if (!load(self, device_index) || !load(self, other_index)) return false;
  TRY(rdm_default_stream_set(stream));
  for (int i = 0; i < 4; i++) {
    TRY_ON_ENCODER(stream, rdm_encoder_add_completion_handler(encoder, count_handler, NULL));
    handlers_added++;
    if (!evaluate(self, device_index, stream)) return false;
  }
  rdm_stream default_stream;
  TRY(rdm_default_stream_get(&default_stream));
  if (default_stream.bits != stream.bits) succeeded(WORK_WRONG_VALUE, "another default stream", __LINE__);
  rdm_stream own;
  TRY(rdm_thread_local_stream_resolve(self->shared[other_index], &own));
  if (!order_streams(self, device_index, stream, other_index, own)) return false;
  TRY(rdm_default_stream_set((rdm_stream){0}));
  uint64_t other = atomic_exchange(&left_streams[(self->number + 1) % thread_count], stream.bits);
  if (other != 0) TRY(rdm_stream_release((rdm_stream){other}));
  return true;
}

static void *run_worker(void *argument) {
  worker *self = argument;
  pthread_barrier_wait(&barrier);
  for (uint32_t round = 0; round < round_count; round++) {
    if (!run_round(self, round)) break;
  }
  for (int32_t i = 0; i < device_count; i++) {
    if (self->loaded[i]) succeeded(work_buffers_free(&self->buffers[i]), "work_buffers_free", __LINE__);
  }
  return NULL;
}

static void *clear_often(void *argument) {
  (void)argument;
  pthread_barrier_wait(&barrier);
  while (!workers_done) {
    if (succeeded(rdm_clear_encoders(), "rdm_clear_encoders", __LINE__)) encoder_clears++;
    nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
  }
  return NULL;
}

static bool finish(void) {
  for (uint32_t i = 0; i < thread_count; i++) {
    if (left_streams[i] != 0) TRY(rdm_stream_release((rdm_stream){left_streams[i]}));
    if (left_events[i] != 0) TRY(rdm_event_release((rdm_event){left_events[i]}));
  }
  /* Handlers of streams that were cleared or released run a little later. */
  for (int i = 0; i < 10000 && handlers_run != handlers_added; i++) {
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
  for (int32_t i = 0; i < device_count; i++) {
    uint64_t constructions = 0;
    TRY(rdm_device_construction_count(i, &constructions));
    if (constructions != (device_used[i] ? 1U : 0U)) {
      fprintf(stderr, "device %d was constructed %llu times\n", i, (unsigned long long)constructions);
      return false;
    }
  }
  return true;
}

/* The number in an argument, or -1. */
static long parse(const char *text, long low, long high) {
  char *end;
  long value = strtol(text, &end, 10);
  return *text != '\0' && *end == '\0' && value >= low && value <= high ? value : -1;
}

static bool read_arguments(int argc, char **argv) {
  long values[] = {device_count, thread_count, round_count};
  static const long highest[] = {MAX_DEVICES, MAX_THREADS, 1000000};
  if (argc > 4) return false;
  for (int i = 1; i < argc; i++) {
    values[i - 1] = parse(argv[i], 1, highest[i - 1]);
    if (values[i - 1] < 0) return false;
  }
  device_count = (int32_t)values[0];
  thread_count = (uint32_t)values[1];
  round_count = (uint32_t)values[2];
  return true;
}

static bool run(void) {
  rdm_config config = {.struct_size = sizeof config, .sim_device_count = device_count};
  config.driver = getenv("RDM_DRIVER") == NULL ? "sim" : NULL;
  TRY(rdm_configure(&config));
  pthread_barrier_init(&barrier, NULL, thread_count + 1);
  worker *workers = calloc(thread_count, sizeof *workers);
  pthread_t threads[MAX_THREADS];
  pthread_t clearer;
  if (workers == NULL || pthread_create(&clearer, NULL, clear_often, NULL) != 0) return false;
  for (uint32_t i = 0; i < thread_count; i++) {
    workers[i].number = i;
    if (pthread_create(&threads[i], NULL, run_worker, &workers[i]) != 0) return false;
  }
  for (uint32_t i = 0; i < thread_count; i++) pthread_join(threads[i], NULL);
  workers_done = true;
  pthread_join(clearer, NULL);
  free(workers);
  return finish();
}

int main(int argc, char **argv) {
  if (!read_arguments(argc, argv)) {
    fprintf(stderr, "usage: stress [DEVICES [THREADS [ROUNDS]]]\n");
    return 2;
  }
  bool finished = run();
  printf("devices %d, threads %u, rounds %u: %llu evaluations, %llu wrong values, %llu errors\n", device_count,
         thread_count, round_count, evaluations, wrong_values, errors);
  printf("%llu streams, %llu events, %llu of %llu completion handlers, %llu clears, %llu stale encoders taken again\n",
         streams_created, events_created, handlers_run, handlers_added, encoder_clears,
         stale_encoders + work_count_stale_encoders());
  unsigned long long expected = 5ULL * thread_count * round_count;
  bool exact = finished && evaluations == expected && wrong_values == 0 && errors == 0;
  return exact && handlers_run == handlers_added ? 0 : 1;
}
