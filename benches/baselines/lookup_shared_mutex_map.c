/*
 * The device map of the design that this library replaces: std::shared_mutex over std::unordered_map. In libstdc++ that
 * mutex is a pthread_rwlock and nothing else. The second design is all of its launch path: the device under that lock,
 * then the stream's encoder in a hash map under a mutex.
 */
#include "designs.h"
#include "hash_map.h"
#include "lookup_devices.h"

#include <pthread.h>

static pthread_once_t fill_once = PTHREAD_ONCE_INIT;
static pthread_rwlock_t device_lock = PTHREAD_RWLOCK_INITIALIZER;
static rdm__bench_map devices;
static pthread_mutex_t encoder_lock = PTHREAD_MUTEX_INITIALIZER;
static rdm__bench_map encoders;
static rdm__bench_device encoder_memory[RDM__BENCH_MOST_THREADS];

static void fill(void) {
  for (int i = 0; i < RDM__BENCH_DEVICES; i++) rdm__bench_map_set(&devices, i, rdm__bench_device_at(i));
}

static void begin(void *state) {
  pthread_once(&fill_once, fill);
  lookup_state *own = state;
  own->stream = own->base.thread % RDM__BENCH_MOST_THREADS;
  pthread_mutex_lock(&encoder_lock);
  rdm__bench_map_set(&encoders, own->stream, &encoder_memory[own->stream]);
  pthread_mutex_unlock(&encoder_lock);
}

__attribute__((noinline)) static rdm__bench_device *find_device(int index) {
  pthread_rwlock_rdlock(&device_lock);
  rdm__bench_device *device = rdm__bench_map_find(&devices, index);
  pthread_rwlock_unlock(&device_lock);
  return device;
}

__attribute__((noinline)) static rdm__bench_device *find_encoder(int stream) {
  pthread_mutex_lock(&encoder_lock);
  rdm__bench_device *encoder = rdm__bench_map_find(&encoders, stream);
  pthread_mutex_unlock(&encoder_lock);
  return encoder;
}

static void run_device(void *state, uint64_t iterations) {
  lookup_state *own = state;
  for (uint64_t i = 0; i < iterations; i++) RDM__CONSUME(find_device(own->index));
}

static void run_both(void *state, uint64_t iterations) {
  lookup_state *own = state;
  for (uint64_t i = 0; i < iterations; i++) {
    RDM__CONSUME(find_device(own->index));
    RDM__CONSUME(find_encoder(own->stream));
  }
}

const rdm__bench_design rdm__bench_shared_mutex_map = {
    .name = "shared mutex, hash map", .state_bytes = sizeof(lookup_state), .begin = begin, .run = run_device};

const rdm__bench_design rdm__bench_two_locks = {
    .name = "two locks", .state_bytes = sizeof(lookup_state), .begin = begin, .run = run_both};
