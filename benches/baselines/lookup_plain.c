/*
 * Other designs of a device lookup: a mutex over a hash map, a pthread_rwlock over an array, upstream's vector that is
 * filled eagerly and never locked, and thread-local memory with nothing behind it, which is the floor. Each lookup is a
 * call, as one into a library is.
 */
#include "designs.h"
#include "hash_map.h"
#include "lookup_devices.h"

#include <pthread.h>
#include <stdlib.h>

static rdm__bench_device all_devices[RDM__BENCH_DEVICES];

rdm__bench_device *rdm__bench_device_at(int index) {
  return &all_devices[index];
}

static pthread_once_t fill_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t map_mutex = PTHREAD_MUTEX_INITIALIZER;
static rdm__bench_map map;
static pthread_rwlock_t array_lock = PTHREAD_RWLOCK_INITIALIZER;
static rdm__bench_device *array[64];
static struct {
  rdm__bench_device *begin;
  rdm__bench_device *end;
} eager;

static void fill(void) {
  for (int i = 0; i < RDM__BENCH_DEVICES; i++) {
    all_devices[i].index = i;
    rdm__bench_map_set(&map, i, &all_devices[i]);
    array[i] = &all_devices[i];
  }
  eager.begin = all_devices;
  eager.end = all_devices + RDM__BENCH_DEVICES;
}

static void begin(void *state) {
  (void)state;
  pthread_once(&fill_once, fill);
}

__attribute__((noinline)) static rdm__bench_device *find_in_mutex_map(int index) {
  pthread_mutex_lock(&map_mutex);
  rdm__bench_device *device = rdm__bench_map_find(&map, index);
  pthread_mutex_unlock(&map_mutex);
  return device;
}

__attribute__((noinline)) static rdm__bench_device *find_in_locked_array(int index) {
  pthread_rwlock_rdlock(&array_lock);
  rdm__bench_device *device = array[index];
  pthread_rwlock_unlock(&array_lock);
  return device;
}

/* With the check that at() makes. */
__attribute__((noinline)) static rdm__bench_device *find_in_eager_vector(int index) {
  if ((size_t)index >= (size_t)(eager.end - eager.begin)) abort();
  return eager.begin + index;
}

static _Thread_local int last_index = -1;
static _Thread_local rdm__bench_device *last_device;

__attribute__((noinline)) static rdm__bench_device *find_in_thread(int index) {
  if (last_index == index) return last_device;
  last_device = find_in_locked_array(index);
  last_index = index;
  return last_device;
}

#define DEFINE_RUN(run, find)                                                 \
  static void run(void *state, uint64_t iterations) {                         \
    lookup_state *own = state;                                                \
    for (uint64_t i = 0; i < iterations; i++) RDM__CONSUME(find(own->index)); \
  }

DEFINE_RUN(run_mutex_map, find_in_mutex_map)
DEFINE_RUN(run_locked_array, find_in_locked_array)
DEFINE_RUN(run_eager_vector, find_in_eager_vector)
DEFINE_RUN(run_thread, find_in_thread)

const rdm__bench_design rdm__bench_mutex_map = {
    .name = "mutex, hash map", .state_bytes = sizeof(lookup_state), .begin = begin, .run = run_mutex_map};

const rdm__bench_design rdm__bench_rwlock_array = {
    .name = "rwlock, array", .state_bytes = sizeof(lookup_state), .begin = begin, .run = run_locked_array};

const rdm__bench_design rdm__bench_eager_vector = {
    .name = "eager vector, no lock", .state_bytes = sizeof(lookup_state), .begin = begin, .run = run_eager_vector};

const rdm__bench_design rdm__bench_thread_local = {
    .name = "thread-local memory alone", .state_bytes = sizeof(lookup_state), .begin = begin, .run = run_thread};
