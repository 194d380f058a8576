/*
 * The scheduler of the schedule tests: real threads of which one runs at a time. Each says what it is about to do at a
 * scheduling point (a lock, an atomic, a driver call, a sleep), and there a strategy chooses who goes on. A thread
 * whose lock is taken or whose condition nobody has signalled can not be chosen, so the scheduler knows of a deadlock
 * as it happens. Time is virtual, and passes only when nothing else can run.
 *
 * None of these files is instrumented. What they keep of the product is keyed by address, so no product code changes.
 */
#ifndef SCHEDULE_ENGINE_H
#define SCHEDULE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

enum { MOST_THREADS = 12, MOST_STEPS = 12000, MOST_CHOICES = 12000, MOST_FRAMES = 8, MOST_KEYS = 8 };

/* What a thread is about to do. X(kind, text) */
#define POINT_KINDS(X)                          \
  X(POINT_BEGIN, "begins")                      \
  X(POINT_END, "ends")                          \
  X(POINT_LOAD, "atomic load")                  \
  X(POINT_STORE, "atomic store")                \
  X(POINT_EXCHANGE, "atomic read-modify-write") \
  X(POINT_FENCE, "fence")                       \
  X(POINT_LOCK, "lock")                         \
  X(POINT_TRY_LOCK, "try lock")                 \
  X(POINT_UNLOCK, "unlock")                     \
  X(POINT_READ_LOCK, "shared lock")             \
  X(POINT_WRITE_LOCK, "unique lock")            \
  X(POINT_READ_UNLOCK, "shared unlock")         \
  X(POINT_WRITE_UNLOCK, "unique unlock")        \
  X(POINT_BEGIN_WAIT, "unlock, to wait")        \
  X(POINT_WAIT, "wait for a condition")         \
  X(POINT_BROADCAST, "broadcast")               \
  X(POINT_SLEEP, "sleep")                       \
  X(POINT_YIELD, "yield")                       \
  X(POINT_ONCE, "once")                         \
  X(POINT_CREATE, "start of a thread")          \
  X(POINT_DRIVER, "driver call")                \
  X(POINT_IDLE, "wait for work")

typedef enum point_kind {
#define X(kind, text) kind,
  POINT_KINDS(X)
#undef X
} point_kind;

typedef struct vector_clock {
  uint32_t of[MOST_THREADS];
} vector_clock;

typedef struct pending_point {
  point_kind kind;
  const void *object;
  /* Of a wait that begins: the condition, with its mutex as the object. */
  const void *other_object;
  /* The name of a driver call; static. */
  const char *name;
  /* For a wait or a sleep: when the virtual clock ends it. */
  uint64_t deadline_ns;
  uintptr_t frames[MOST_FRAMES];
} pending_point;

typedef struct schedule_thread {
  uint32_t number;
  /* Set when it is this thread's turn; a futex. */
  uint32_t turn;
  /* One of the library's own, or the GPU: the schedule ends without it. */
  bool is_daemon;
  bool is_done;
  /* A broadcast has reached its wait; or its wait ended by the clock. */
  bool is_woken;
  bool is_timed_out;
  pending_point pending;
  void *(*body)(void *argument);
  void *argument;
  void *specific[MOST_KEYS];
  /* What happened before what this thread does now; what a relaxed load has seen; what a release fence lets go. */
  vector_clock now;
  vector_clock seen_relaxed;
  vector_clock fenced;
  /* The block that it allocated last, and its own time then: until that moves on, no other thread knows the block. */
  uintptr_t fresh_low;
  uintptr_t fresh_high;
  uint32_t fresh_time;
  uintptr_t stack_low;
  uintptr_t stack_high;
} schedule_thread;

/* The calling thread; null while no schedule runs (then every hook does its plain work) or for a foreign thread. */
extern _Thread_local schedule_thread *schedule_self;

/* Whether no other thread can know of this memory yet, so that what is done to it is no scheduling point. */
bool schedule_is_fresh(const volatile void *address);

/* Before an operation: the calling thread stands here until it is chosen, and then it can do the operation. */
void schedule_point(point_kind kind, const void *object);
void schedule_point_until(point_kind kind, const void *object, uint64_t deadline_ns);
void schedule_begin_wait_point(const void *mutex, const void *condition);
void schedule_driver_point(const char *call, const void *object);

/* Starts one more thread under the scheduler. It begins when it is first chosen. */
int schedule_thread_start(void *(*body)(void *argument), void *argument, bool is_daemon);

/* Every thread that waits for this condition can go on. */
void schedule_wake(const void *condition);

/* Ends the schedule as failed, with the text and where the calling thread is. */
__attribute__((format(printf, 1, 2), noreturn)) void schedule_fail(const char *format, ...);

uint64_t schedule_now_ns(void);
void schedule_pass_time(uint64_t ns);

/* Runs the threads of a schedule to their end. Called once in a process, by its only thread. */
void schedule_run(void (*const *bodies)(void), int count, unsigned flags);

/* Whether the lock or condition that a point names lets its thread go on: locks.c and system.c know. */
bool schedule_lock_is_free(const schedule_thread *thread);
const char *schedule_point_text(point_kind kind);

/* The code addresses of the callers of a hook. */
void schedule_frames(uintptr_t *frames);

#endif
