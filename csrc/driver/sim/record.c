#include "driver/sim/record.h"

#include "clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct rdm__sim_record {
  atomic_uint references;
  /* Written under the lock; read without it by queries. */
  atomic_bool over;
  uint64_t time_ns;
  pthread_mutex_t lock;
  pthread_cond_t changed;
};

rdm__sim_record *rdm__sim_record_create(void) {
  rdm__sim_record *record = calloc(1, sizeof *record);
  if (record == NULL) return NULL;
  atomic_init(&record->references, 1);
  pthread_mutex_init(&record->lock, NULL);
  pthread_cond_init(&record->changed, NULL);
  return record;
}

void rdm__sim_record_retain(rdm__sim_record *record) {
  atomic_fetch_add_explicit(&record->references, 1, memory_order_relaxed);
}

void rdm__sim_record_release(rdm__sim_record *record) {
  if (record == NULL || atomic_fetch_sub_explicit(&record->references, 1, memory_order_acq_rel) != 1) return;
  pthread_cond_destroy(&record->changed);
  pthread_mutex_destroy(&record->lock);
  free(record);
}

void rdm__sim_record_finish(rdm__sim_record *record, bool reached) {
  pthread_mutex_lock(&record->lock);
  if (reached) record->time_ns = rdm__now_ns();
  atomic_store_explicit(&record->over, true, memory_order_release);
  pthread_cond_broadcast(&record->changed);
  pthread_mutex_unlock(&record->lock);
}

bool rdm__sim_record_is_over(rdm__sim_record *record) {
  return atomic_load_explicit(&record->over, memory_order_acquire);
}

uint64_t rdm__sim_record_time_ns(rdm__sim_record *record) {
  pthread_mutex_lock(&record->lock);
  uint64_t time_ns = record->time_ns;
  pthread_mutex_unlock(&record->lock);
  return time_ns;
}

void rdm__sim_record_wait(rdm__sim_record *record, rdm__sim_device *device) {
  pthread_mutex_lock(&record->lock);
  while (!rdm__sim_record_is_over(record) && (device == NULL || rdm__sim_device_fault(device) == 0)) {
    pthread_cond_wait(&record->changed, &record->lock);
  }
  pthread_mutex_unlock(&record->lock);
}

void rdm__sim_record_wake(rdm__sim_record *record) {
  pthread_mutex_lock(&record->lock);
  pthread_cond_broadcast(&record->changed);
  pthread_mutex_unlock(&record->lock);
}
