/*
 * The locks and conditions of the system, as the scheduler models them. csrc/lock.c is the product's own, with its
 * ranks asserted; the linker sends what it calls here (--wrap). Kept by address, so a static lock needs nothing.
 */
#include "races.h"
#include "scenario.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

bool schedule_lock_is_free(const schedule_thread *thread) {
  const sync_object *object = races_object(thread->pending.object);
  switch (thread->pending.kind) {
    case POINT_READ_LOCK:
      return object->owner == 0;
    case POINT_ONCE:
      return object->once_state != 1;
    default:
      return object->owner == 0 && object->readers == 0;
  }
}

static uint32_t own_mark(void) {
  return schedule_self->number + 1;
}

/* ---- Mutexes --------------------------------------------------------------------------------------------------- */

int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);

int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes) {
  (void)attributes;
  races_access(mutex, sizeof *mutex, ACCESS_WRITE, (uintptr_t)__builtin_return_address(0));
  sync_object *object = races_object(mutex);
  object->owner = 0;
  return 0;
}

static void take(pthread_mutex_t *mutex) {
  sync_object *object = races_object(mutex);
  object->owner = own_mark();
  races_acquire(&object->released);
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex) {
  if (schedule_self == NULL) return 0;
  races_access(mutex, 1, ACCESS_ATOMIC_READ, (uintptr_t)__builtin_return_address(0));
  if (races_object(mutex)->owner == own_mark()) schedule_fail("deadlock: a thread locks a mutex that it holds");
  schedule_point(POINT_LOCK, mutex);
  take(mutex);
  return 0;
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex) {
  if (schedule_self == NULL) return 0;
  schedule_point(POINT_TRY_LOCK, mutex);
  if (races_object(mutex)->owner != 0) return EBUSY;
  take(mutex);
  return 0;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex) {
  if (schedule_self == NULL) return 0;
  schedule_point(POINT_UNLOCK, mutex);
  sync_object *object = races_object(mutex);
  if (object->owner != own_mark()) schedule_fail("a mutex is unlocked by a thread that does not hold it");
  object->owner = 0;
  races_release(&object->released);
  return 0;
}

/* ---- Shared locks ---------------------------------------------------------------------------------------------- */

int __wrap_pthread_rwlock_init(pthread_rwlock_t *lock, const pthread_rwlockattr_t *attributes);
int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t *lock);
int __wrap_pthread_rwlock_wrlock(pthread_rwlock_t *lock);
int __wrap_pthread_rwlock_unlock(pthread_rwlock_t *lock);

int __wrap_pthread_rwlock_init(pthread_rwlock_t *lock, const pthread_rwlockattr_t *attributes) {
  (void)attributes;
  races_access(lock, sizeof *lock, ACCESS_WRITE, (uintptr_t)__builtin_return_address(0));
  return 0;
}

static void check_not_held(const sync_object *object) {
  if (object->owner == own_mark() || object->read_holds[schedule_self->number] > 0) {
    schedule_fail("deadlock: a thread takes a shared lock that it holds, which may wait behind a writer for ever");
  }
}

int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t *lock) {
  if (schedule_self == NULL) return 0;
  sync_object *object = races_object(lock);
  check_not_held(object);
  schedule_point(POINT_READ_LOCK, lock);
  object->readers++;
  object->read_holds[schedule_self->number]++;
  /* Readers before this one let nothing go to it. */
  races_acquire(&object->released);
  return 0;
}

int __wrap_pthread_rwlock_wrlock(pthread_rwlock_t *lock) {
  if (schedule_self == NULL) return 0;
  sync_object *object = races_object(lock);
  check_not_held(object);
  schedule_point(POINT_WRITE_LOCK, lock);
  object->owner = own_mark();
  races_acquire(&object->released);
  races_acquire(&object->read_released);
  return 0;
}

int __wrap_pthread_rwlock_unlock(pthread_rwlock_t *lock) {
  if (schedule_self == NULL) return 0;
  sync_object *object = races_object(lock);
  schedule_point(object->owner == own_mark() ? POINT_WRITE_UNLOCK : POINT_READ_UNLOCK, lock);
  if (object->owner == own_mark()) {
    object->owner = 0;
    races_release(&object->released);
  } else if (object->read_holds[schedule_self->number] > 0) {
    object->read_holds[schedule_self->number]--;
    object->readers--;
    races_release(&object->read_released);
  } else {
    schedule_fail("a shared lock is unlocked by a thread that does not hold it");
  }
  return 0;
}

/* ---- Conditions ------------------------------------------------------------------------------------------------ */

int __wrap_pthread_cond_init(pthread_cond_t *condition, const pthread_condattr_t *attributes);
int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex);
int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *deadline);
int __wrap_pthread_cond_broadcast(pthread_cond_t *condition);

int __wrap_pthread_cond_init(pthread_cond_t *condition, const pthread_condattr_t *attributes) {
  (void)attributes;
  races_access(condition, sizeof *condition, ACCESS_WRITE, (uintptr_t)__builtin_return_address(0));
  return 0;
}

/* Lets the mutex go and begins to wait in one step, as a condition does. */
static int wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t deadline_ns) {
  sync_object *object = races_object(mutex);
  if (object->owner != own_mark()) schedule_fail("a wait for a condition with a mutex that is not held");
  schedule_begin_wait_point(mutex, condition);
  object->owner = 0;
  races_release(&object->released);
  schedule_self->is_woken = false;
  schedule_self->is_timed_out = false;
  schedule_point_until(POINT_WAIT, condition, deadline_ns);
  bool timed_out = schedule_self->is_timed_out && !schedule_self->is_woken;
  schedule_point(POINT_LOCK, mutex);
  take(mutex);
  return timed_out ? ETIMEDOUT : 0;
}

int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex) {
  if (schedule_self == NULL) abort();
  return wait_until(condition, mutex, UINT64_MAX);
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *deadline) {
  if (schedule_self == NULL) abort();
  return wait_until(condition, mutex, (uint64_t)deadline->tv_sec * 1000000000u + (uint64_t)deadline->tv_nsec);
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *condition) {
  if (schedule_self == NULL) return 0;
  schedule_point(POINT_BROADCAST, condition);
  schedule_wake(condition);
  return 0;
}
