/* 1 to 1024 threads at once, each with its own stream, and what is left when they have ended. */
#include "measure.h"
#include "series.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_THREADS = 1024, OPERATIONS = 400000, LEAST_OF_A_THREAD = 2000, ROUNDS = 3, STACK_BYTES = 64 * 1024 };

/* More driver streams than were ever in use at once, and about eight, are never made. */
enum { SPARE_STREAMS = 16 };

typedef struct crowd {
  rdm_thread_local_stream shared;
  uint64_t count;
  pthread_barrier_t barrier;
} crowd;

/* So many that a thread's start and end are nothing beside them. */
static uint64_t operations_of_a_thread(const crowd *crowd) {
  uint64_t share = OPERATIONS / crowd->count;
  return share > LEAST_OF_A_THREAD ? share : LEAST_OF_A_THREAD;
}

static void work(rdm_thread_local_stream shared) {
  rdm_device device;
  rdm_stream stream;
  rdm_encoder encoder;
  rdm_event event;
  growth_check(rdm_device_get(0, &device), "looking up the device");
  growth_check(rdm_thread_local_stream_resolve(shared, &stream), "resolving the thread's stream");
  growth_check(rdm_encoder_get(stream, &encoder), "looking up the encoder");
  growth_check(rdm_event_create(device, RDM_EVENT_DEFAULT, &event), "an event");
  growth_check(rdm_event_release(event), "releasing an event");
}

static void *thread_main(void *argument) {
  crowd *crowd = argument;
  work(crowd->shared);
  for (int round = 0; round < ROUNDS; round++) {
    pthread_barrier_wait(&crowd->barrier);
    for (uint64_t i = 0; i < operations_of_a_thread(crowd); i++) work(crowd->shared);
    pthread_barrier_wait(&crowd->barrier);
  }
  /* Alive until it has been looked at what they take together. */
  pthread_barrier_wait(&crowd->barrier);
  return NULL;
}

static void start(crowd *crowd, pthread_t *threads) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  for (uint64_t i = 0; i < crowd->count; i++) {
    if (pthread_create(&threads[i], &attributes, thread_main, crowd) != 0) {
      fprintf(stderr, "growth: thread %llu can not be started\n", (unsigned long long)i);
      exit(EXIT_FAILURE);
    }
  }
  pthread_attr_destroy(&attributes);
}

/* Processor time, so that it does not matter how many cores share the work. */
static double least_ns(crowd *crowd) {
  double least = 1e18;
  for (int round = 0; round < ROUNDS; round++) {
    uint64_t begin = growth_processor_ns();
    pthread_barrier_wait(&crowd->barrier);
    pthread_barrier_wait(&crowd->barrier);
    double each = (double)(growth_processor_ns() - begin) / (double)(operations_of_a_thread(crowd) * crowd->count);
    if (each < least) least = each;
  }
  return least;
}

static uint64_t driver_streams(void) {
  rdm_sim_objects objects = {.struct_size = sizeof objects};
  growth_check(rdm_sim_count_objects(&objects), "counting the driver's objects");
  return objects.streams;
}

void growth_threads(void) {
  static pthread_t threads[MOST_THREADS];
  crowd crowd = {0};
  growth_check(rdm_thread_local_stream_get_shared(0, &crowd.shared), "the shared stream");
  double before = growth_resident_kib();
  uint64_t streams_before = driver_streams();
  for (uint64_t n = 1; n <= MOST_THREADS; n *= 4) {
    crowd.count = n;
    pthread_barrier_init(&crowd.barrier, NULL, (unsigned)n + 1);
    start(&crowd, threads);
    double cost = least_ns(&crowd);
    growth_point("threads", "memory while they live, KiB", n, growth_resident_kib() - before, "linear", 0);
    pthread_barrier_wait(&crowd.barrier);
    for (uint64_t i = 0; i < n; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&crowd.barrier);
    growth_point("threads", "hot paths, ns of processor time", n, cost, "flat", 0);
    growth_point("threads", "driver streams", n, (double)driver_streams(), "bounded",
                 (double)(n + streams_before + SPARE_STREAMS));
  }
}
