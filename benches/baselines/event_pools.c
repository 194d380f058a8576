/*
 * Two pools that are in use elsewhere. One lock: every thread takes events from one list under a mutex, and gives them
 * back to it. First thread only: the first thread that gives an event back owns the pool and uses it without a lock;
 * every other thread makes and destroys its events.
 */
#include "designs.h"
#include "raw_driver.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { POOL_CAPACITY = 1024 };

typedef struct pool {
  void *events[POOL_CAPACITY];
  int count;
} pool;

typedef struct state {
  rdm__bench_state base;
  const rdm__bench_raw *raw;
  /* This thread was the first to give an event back. */
  bool owns;
} state;

/* Null where the pool is empty. */
static void *take(pool *from) {
  return from->count > 0 ? from->events[--from->count] : NULL;
}

static void *make(const rdm__bench_raw *raw) {
  void *event = NULL;
  return raw->event_create(&event, RDM__RAW_EVENT_DISABLE_TIMING) == RDM__RAW_SUCCESS ? event : NULL;
}

/* False where the pool is full; the event is then the caller's to destroy. */
static bool put(pool *to, void *event) {
  if (to->count == POOL_CAPACITY) return false;
  to->events[to->count++] = event;
  return true;
}

static void begin(void *memory) {
  state *own = memory;
  own->raw = rdm__bench_raw_begin(&own->base);
}

/* ---- One lock -------------------------------------------------------------------------------------------------- */

static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;
static pool shared_pool;

static void *take_shared(const rdm__bench_raw *raw) {
  pthread_mutex_lock(&shared_lock);
  void *event = take(&shared_pool);
  pthread_mutex_unlock(&shared_lock);
  return event != NULL ? event : make(raw);
}

static bool put_shared(void *event) {
  pthread_mutex_lock(&shared_lock);
  bool kept = put(&shared_pool, event);
  pthread_mutex_unlock(&shared_lock);
  return kept;
}

static void run_shared(void *memory, uint64_t iterations) {
  state *own = memory;
  int failed = 0;
  for (uint64_t i = 0; i < iterations; i++) {
    void *event = take_shared(own->raw);
    RDM__CONSUME(event);
    failed |= event == NULL;
    if (!put_shared(event)) failed = rdm__bench_first(failed, own->raw->event_destroy(event));
  }
  rdm__bench_check_raw(&own->base, failed, "making an event");
}

/* ---- First thread only ----------------------------------------------------------------------------------------- */

static atomic_bool is_owned;
/* Threads between their begin and their end. All have begun before the first ends. */
static atomic_int active;
static pool owned_pool;

static void run_first_thread(void *memory, uint64_t iterations) {
  state *own = memory;
  int failed = 0;
  for (uint64_t i = 0; i < iterations; i++) {
    void *event = own->owns ? take(&owned_pool) : NULL;
    if (event == NULL) event = make(own->raw);
    RDM__CONSUME(event);
    failed |= event == NULL;
    if (!own->owns && !atomic_load_explicit(&is_owned, memory_order_relaxed)) {
      own->owns = !atomic_exchange(&is_owned, true);
    }
    if (!own->owns || !put(&owned_pool, event)) failed = rdm__bench_first(failed, own->raw->event_destroy(event));
  }
  rdm__bench_check_raw(&own->base, failed, "making an event");
}

static void begin_first_thread(void *memory) {
  atomic_fetch_add(&active, 1);
  begin(memory);
}

/* The next run has other threads, and a first one of its own; until the last thread ends, nobody else may take it. */
static void end_first_thread(void *memory) {
  state *own = memory;
  if (atomic_fetch_sub(&active, 1) > 1) return;
  while (owned_pool.count > 0) own->raw->event_destroy(owned_pool.events[--owned_pool.count]);
  atomic_store(&is_owned, false);
}

const rdm__bench_design rdm__bench_event_locked_pool = {
    .name = "one locked pool", .state_bytes = sizeof(state), .begin = begin, .run = run_shared};

const rdm__bench_design rdm__bench_event_first_thread = {.name = "first-thread-only pool",
                                                         .state_bytes = sizeof(state),
                                                         .begin = begin_first_thread,
                                                         .run = run_first_thread,
                                                         .end = end_first_thread};
