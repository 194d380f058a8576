#include "lock.h"

#include "clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef NDEBUG

/* How many locks of each rank the thread holds. Ranks above RUNTIME are taken at most once at a time. */
static _Thread_local unsigned held[RDM__RANK_LEAF + 1];

static void order_violation(const char *what, rdm__lock_rank wanted, rdm__lock_rank holding) {
  fprintf(stderr, "[rdm] lock order: %s (rank %d) with rank %d held\n", what, (int)wanted, (int)holding);
  abort();
}

static void note_acquire(rdm__lock_rank rank) {
  for (int above = (int)rank; above <= RDM__RANK_LEAF; above++) {
    if (held[above] > 0) order_violation("acquiring a lock", rank, (rdm__lock_rank)above);
  }
  held[rank]++;
}

static void note_release(rdm__lock_rank rank) {
  if (held[rank] == 0) order_violation("releasing a lock that is not held", rank, rank);
  held[rank]--;
}

void rdm__assert_no_lock_held(void) {
  for (int rank = RDM__RANK_RUNTIME; rank <= RDM__RANK_LEAF; rank++) {
    if (held[rank] > 0) order_violation("calling out", (rdm__lock_rank)0, (rdm__lock_rank)rank);
  }
}

void rdm__assert_no_leaf_held(void) {
  if (held[RDM__RANK_LEAF] > 0) order_violation("calling the driver or the log", (rdm__lock_rank)0, RDM__RANK_LEAF);
}

#else

static inline void note_acquire(rdm__lock_rank rank) {
  (void)rank;
}
static inline void note_release(rdm__lock_rank rank) {
  (void)rank;
}
void rdm__assert_no_lock_held(void) {}
void rdm__assert_no_leaf_held(void) {}

#endif

/* A lock that fails is a broken program, not a state to go on from. */
static void require(int result) {
  if (result != 0) abort();
}

void rdm__mutex_init(rdm__mutex *mutex, rdm__lock_rank rank) {
  require(pthread_mutex_init(&mutex->native, NULL));
  mutex->rank = rank;
}

void rdm__mutex_lock(rdm__mutex *mutex) {
  note_acquire(mutex->rank);
  require(pthread_mutex_lock(&mutex->native));
}

bool rdm__mutex_try_lock(rdm__mutex *mutex) {
  int result = pthread_mutex_trylock(&mutex->native);
  if (result == EBUSY) return false;
  require(result);
  note_acquire(mutex->rank);
  return true;
}

void rdm__mutex_unlock(rdm__mutex *mutex) {
  require(pthread_mutex_unlock(&mutex->native));
  note_release(mutex->rank);
}

void rdm__shared_lock_read(rdm__shared_lock *lock) {
  note_acquire(lock->rank);
  require(pthread_rwlock_rdlock(&lock->native));
}

void rdm__shared_lock_write(rdm__shared_lock *lock) {
  note_acquire(lock->rank);
  require(pthread_rwlock_wrlock(&lock->native));
}

void rdm__shared_lock_read_unlock(rdm__shared_lock *lock) {
  require(pthread_rwlock_unlock(&lock->native));
  note_release(lock->rank);
}

void rdm__shared_lock_write_unlock(rdm__shared_lock *lock) {
  rdm__shared_lock_read_unlock(lock);
}

void rdm__condition_init(rdm__condition *condition) {
  pthread_condattr_t attributes;
  require(pthread_condattr_init(&attributes));
  require(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC));
  require(pthread_cond_init(&condition->native, &attributes));
  pthread_condattr_destroy(&attributes);
}

void rdm__condition_broadcast(rdm__condition *condition) {
  require(pthread_cond_broadcast(&condition->native));
}

void rdm__condition_wait(rdm__condition *condition, rdm__mutex *mutex, uint64_t deadline_ns) {
  if (deadline_ns == UINT64_MAX) {
    require(pthread_cond_wait(&condition->native, &mutex->native));
    return;
  }
  struct timespec deadline = rdm__timespec(deadline_ns);
  pthread_cond_timedwait(&condition->native, &mutex->native, &deadline);
}
