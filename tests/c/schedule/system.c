/* The rest of what the product asks the system for: time, threads, once, hooks at the end of threads and the process,
 * and memory that is given back. */
#include "races.h"
#include "scenario.h"

#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HERE ((uintptr_t)__builtin_return_address(0))

enum { MOST_EXIT_HANDLERS = 64 };

/* ---- Time ------------------------------------------------------------------------------------------------------ */

int __wrap_clock_gettime(clockid_t clock, struct timespec *out_time);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_sched_yield(void);

int __wrap_clock_gettime(clockid_t clock, struct timespec *out_time) {
  (void)clock;
  uint64_t now = schedule_now_ns();
  *out_time = (struct timespec){.tv_sec = (time_t)(now / 1000000000u), .tv_nsec = (long)(now % 1000000000u)};
  return 0;
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *left) {
  (void)left;
  uint64_t ns = (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_nsec;
  if (schedule_self == NULL) {
    schedule_pass_time(ns);
    return 0;
  }
  schedule_self->is_timed_out = false;
  schedule_point_until(POINT_SLEEP, NULL, schedule_now_ns() + ns);
  return 0;
}

int __wrap_sched_yield(void) {
  schedule_point(POINT_YIELD, NULL);
  return 0;
}

/* ---- Threads --------------------------------------------------------------------------------------------------- */

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument);
int __wrap_pthread_once(pthread_once_t *once, void (*body)(void));
int __wrap_pthread_key_create(pthread_key_t *key, void (*destructor)(void *));
int __wrap_pthread_key_delete(pthread_key_t key);
int __wrap_pthread_setspecific(pthread_key_t key, const void *value);
void *__wrap_pthread_getspecific(pthread_key_t key);

/* All threads of the library live as long as the process. */
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument) {
  (void)thread;
  (void)attributes;
  if (schedule_self == NULL) abort();
  schedule_point(POINT_CREATE, argument);
  return schedule_thread_start(body, argument, true);
}

int __wrap_pthread_once(pthread_once_t *once, void (*body)(void)) {
  sync_object *object = races_object(once);
  schedule_point(POINT_ONCE, once);
  if (object->once_state == 0) {
    object->once_state = 1;
    body();
    races_release(&object->released);
    object->once_state = 2;
  }
  races_acquire(&object->released);
  return 0;
}

static struct { void (*destructor)(void *); } keys[MOST_KEYS];
static pthread_key_t key_count;
/* Of the thread that prepares a scenario. */
static void *unscheduled_specific[MOST_KEYS];

int __wrap_pthread_key_create(pthread_key_t *key, void (*destructor)(void *)) {
  if (key_count == MOST_KEYS) abort();
  keys[key_count].destructor = destructor;
  *key = key_count++;
  return 0;
}

/* Its place is not given again. */
int __wrap_pthread_key_delete(pthread_key_t key) {
  keys[key].destructor = NULL;
  return 0;
}

static void **specific_of(pthread_key_t key) {
  return schedule_self != NULL ? &schedule_self->specific[key] : &unscheduled_specific[key];
}

int __wrap_pthread_setspecific(pthread_key_t key, const void *value) {
  *specific_of(key) = (void *)(uintptr_t)value;
  return 0;
}

void *__wrap_pthread_getspecific(pthread_key_t key) {
  return *specific_of(key);
}

/* A hook may set a value again, as POSIX has it; four rounds, as there. */
void schedule_run_thread_end_hooks(void) {
  for (int round = 0; round < 4; round++) {
    for (pthread_key_t key = 0; key < key_count; key++) {
      void *value = schedule_self->specific[key];
      schedule_self->specific[key] = NULL;
      if (value != NULL && keys[key].destructor != NULL) keys[key].destructor(value);
    }
  }
}

/* ---- The end of the process ------------------------------------------------------------------------------------- */

int __wrap_atexit(void (*handler)(void));
int __wrap_pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void));

static void (*exit_handlers[MOST_EXIT_HANDLERS])(void);
static int exit_handler_count;

int __wrap_atexit(void (*handler)(void)) {
  if (exit_handler_count < MOST_EXIT_HANDLERS) exit_handlers[exit_handler_count++] = handler;
  return 0;
}

void schedule_run_exit_handlers(void) {
  while (exit_handler_count > 0) exit_handlers[--exit_handler_count]();
}

/* Each schedule runs in a forked process, of which the library is to know nothing. */
int __wrap_pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void)) {
  (void)prepare;
  (void)parent;
  (void)child;
  return 0;
}

/* ---- Memory ---------------------------------------------------------------------------------------------------- */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void __real_free(void *block);
void *__real_realloc(void *block, size_t size);
void __wrap_free(void *block);
void *__wrap_realloc(void *block, size_t size);

static size_t watched_size;
static int watched_blocks;

void schedule_watch_blocks(size_t size) {
  void *block = __real_malloc(size);
  watched_size = malloc_usable_size(block);
  __real_free(block);
}

int schedule_watched_blocks(void) {
  return watched_blocks;
}

static bool is_watched(void *block) {
  return watched_size != 0 && malloc_usable_size(block) == watched_size;
}

static void *fresh(void *block, size_t size) {
  schedule_thread *self = schedule_self;
  if (self == NULL || block == NULL) return block;
  if (is_watched(block)) watched_blocks++;
  self->fresh_low = (uintptr_t)block;
  self->fresh_high = (uintptr_t)block + size;
  self->fresh_time = self->now.of[self->number];
  return block;
}

void *__wrap_malloc(size_t size) {
  return fresh(__real_malloc(size), size);
}

void *__wrap_calloc(size_t count, size_t size) {
  return fresh(__real_calloc(count, size), count * size);
}

/* In a schedule nothing freed is used again, so that who still uses it is found out. */
void __wrap_free(void *block) {
  if (block != NULL && is_watched(block)) watched_blocks--;
  if (schedule_self == NULL) {
    __real_free(block);
  } else if (block != NULL) {
    races_freed(block, malloc_usable_size(block), HERE);
  }
}

void *__wrap_realloc(void *block, size_t size) {
  if (schedule_self == NULL || block == NULL) return __real_realloc(block, size);
  size_t old_size = malloc_usable_size(block);
  void *moved = malloc(size);
  if (moved == NULL) return NULL;
  races_access(block, old_size, ACCESS_READ, HERE);
  memcpy(moved, block, old_size < size ? old_size : size);
  races_freed(block, old_size, HERE);
  return moved;
}
