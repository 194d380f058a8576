/*
 * Locks with a rank. A thread takes locks in the order of their ranks, never the reverse, and takes none while it
 * holds a leaf; debug builds assert it at each acquisition. docs/architecture.md has the table of what each one guards.
 */
#ifndef RDM_LOCK_H
#define RDM_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef enum rdm__lock_rank {
  RDM__RANK_RUNTIME = 1,
  RDM__RANK_CONSTRUCTION,
  RDM__RANK_DEVICE_MAP,
  RDM__RANK_STREAM,
  RDM__RANK_STREAMS,
  RDM__RANK_QUEUE,
  RDM__RANK_KERNELS,
  RDM__RANK_COMPILER,
  /* Event pool, module cache, handle tables, completion queue, queue pool: nothing is called under these. */
  RDM__RANK_LEAF,
} rdm__lock_rank;

typedef struct rdm__mutex {
  pthread_mutex_t native;
  rdm__lock_rank rank;
} rdm__mutex;

typedef struct rdm__shared_lock {
  pthread_rwlock_t native;
  rdm__lock_rank rank;
} rdm__shared_lock;

typedef struct rdm__condition {
  pthread_cond_t native;
} rdm__condition;

#define RDM__MUTEX_INIT(lock_rank) \
  { .native = PTHREAD_MUTEX_INITIALIZER, .rank = (lock_rank) }
/* Writers first: a first use must not starve behind the lookups of every other thread. */
#define RDM__SHARED_LOCK_INIT(lock_rank) \
  { .native = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP, .rank = (lock_rank) }

void rdm__mutex_init(rdm__mutex *mutex, rdm__lock_rank rank);
void rdm__mutex_lock(rdm__mutex *mutex);
/* Takes the lock where it is free, else gives false at once. */
bool rdm__mutex_try_lock(rdm__mutex *mutex);
void rdm__mutex_unlock(rdm__mutex *mutex);

void rdm__shared_lock_read(rdm__shared_lock *lock);
void rdm__shared_lock_write(rdm__shared_lock *lock);
void rdm__shared_lock_read_unlock(rdm__shared_lock *lock);
void rdm__shared_lock_write_unlock(rdm__shared_lock *lock);

void rdm__condition_init(rdm__condition *condition);
void rdm__condition_broadcast(rdm__condition *condition);
/* Waits with the mutex released, until woken or, unless it is UINT64_MAX, the monotonic clock passes `deadline_ns`. */
void rdm__condition_wait(rdm__condition *condition, rdm__mutex *mutex, uint64_t deadline_ns);

/* Before anything that runs other people's code or waits: no lock of ours may be held. Debug builds assert it. */
void rdm__assert_no_lock_held(void);
/* Before a log line or a driver call: no leaf lock may be held. Debug builds assert it. */
void rdm__assert_no_leaf_held(void);

#endif
