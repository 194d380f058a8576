#include "engine.h"

#include "dependence.h"
#include "record.h"
#include "scenario.h"
#include "strategy.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STACK_BYTES = 512 * 1024, NOBODY = UINT32_MAX };

_Thread_local schedule_thread *schedule_self;
schedule_record *the_record;

static schedule_thread threads[MOST_THREADS];
static uint32_t thread_count;
static uint32_t running = NOBODY;
static uint32_t has_ended;
static unsigned scenario_flags;
/* A mask of threads: see dependence.h. */
static uint16_t asleep;
static uint64_t now_ns = UINT64_C(1000000000000);

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument);

const char *schedule_point_text(point_kind kind) {
  static const char *const texts[] = {
#define X(kind, text) text,
      POINT_KINDS(X)
#undef X
  };
  return texts[kind];
}

uint64_t schedule_now_ns(void) {
  return now_ns;
}

void schedule_pass_time(uint64_t ns) {
  now_ns += ns;
}

/* ---- Turns ----------------------------------------------------------------------------------------------------- */

static void wait_for(uint32_t *word) {
  while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == 0) syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
  __atomic_store_n(word, 0, __ATOMIC_RELEASE);
}

static void set(uint32_t *word) {
  __atomic_store_n(word, 1, __ATOMIC_RELEASE);
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* Where the thread is, from the hook outwards. The report leaves out what says nothing. */
void schedule_frames(uintptr_t *frames) {
  memset(frames, 0, MOST_FRAMES * sizeof *frames);
  const schedule_thread *self = schedule_self;
  const uintptr_t *frame = __builtin_frame_address(0);
  int count = 0;
  for (int depth = 0; self != NULL && depth <= MOST_FRAMES && count < MOST_FRAMES; depth++) {
    uintptr_t here = (uintptr_t)frame;
    if (here < self->stack_low || here + 2 * sizeof *frame > self->stack_high || here % sizeof *frame != 0) break;
    if (depth >= 1) frames[count++] = frame[1];
    const uintptr_t *next = (const uintptr_t *)frame[0];
    if (next <= frame) break;
    frame = next;
  }
}

static bool can_go_on(const schedule_thread *thread) {
  if (thread->is_done) return false;
  switch (thread->pending.kind) {
    case POINT_LOCK:
    case POINT_READ_LOCK:
    case POINT_WRITE_LOCK:
    case POINT_ONCE:
      return schedule_lock_is_free(thread);
    case POINT_WAIT:
    case POINT_IDLE:
      return thread->is_woken || thread->is_timed_out;
    case POINT_SLEEP:
      return thread->is_timed_out;
    default:
      return true;
  }
}

static bool is_timed(const schedule_thread *thread) {
  return !thread->is_done && (thread->pending.kind == POINT_WAIT || thread->pending.kind == POINT_SLEEP) &&
         thread->pending.deadline_ns != UINT64_MAX;
}

static bool all_are_done(void) {
  for (uint32_t i = 0; i < thread_count; i++) {
    if (!threads[i].is_daemon && !threads[i].is_done) return false;
  }
  return true;
}

/* Appends who waits for what to the message. */
static void describe_waits(void) {
  size_t length = strlen(the_record->message);
  for (uint32_t i = 0; i < thread_count; i++) {
    const schedule_thread *thread = &threads[i];
    if (thread->is_done || length >= sizeof the_record->message) continue;
    length += (size_t)snprintf(
        the_record->message + length, sizeof the_record->message - length,
        "\n  thread %u%s stands at: %s %p, @%#zx @%#zx @%#zx", i, thread->is_daemon ? " (the library's own)" : "",
        schedule_point_text(thread->pending.kind), thread->pending.object, (size_t)thread->pending.frames[0],
        (size_t)thread->pending.frames[1], (size_t)thread->pending.frames[2]);
  }
}

__attribute__((noreturn)) static void end_failed(void) {
  the_record->outcome = OUTCOME_FAILED;
  _exit(1);
}

void schedule_fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(the_record->message, sizeof the_record->message, format, arguments);
  va_end(arguments);
  schedule_frames(the_record->frames);
  end_failed();
}

__attribute__((noreturn)) static void fail_with_waits(const char *what) {
  snprintf(the_record->message, sizeof the_record->message, "%s", what);
  describe_waits();
  end_failed();
}

/* Nothing can run: lets time pass to the first moment that ends a wait. False where there is none. */
static bool advance_time(void) {
  schedule_thread *first = NULL;
  bool a_sleeper = false;
  for (uint32_t i = 0; i < thread_count; i++) {
    if (!is_timed(&threads[i])) continue;
    a_sleeper = a_sleeper || threads[i].pending.kind == POINT_SLEEP;
    if (first == NULL || threads[i].pending.deadline_ns < first->pending.deadline_ns) first = &threads[i];
  }
  if (first == NULL) return false;
  if (!a_sleeper && (scenario_flags & SCENARIO_TIMERS_END_WAITS) == 0) {
    fail_with_waits("lost wakeup: nothing can run, and only a timer would end the wait");
  }
  if (first->pending.deadline_ns > now_ns) now_ns = first->pending.deadline_ns;
  first->is_timed_out = true;
  return true;
}

/* The threads that can go on, the running one first, unless it gives way. */
static uint32_t list_options(uint32_t *options, bool *out_preempts) {
  uint32_t count = 0;
  bool runs_on = running != NOBODY && can_go_on(&threads[running]);
  bool gives_way = runs_on && threads[running].pending.kind == POINT_YIELD;
  if (runs_on && !gives_way) options[count++] = running;
  *out_preempts = count > 0;
  for (uint32_t i = 0; i < thread_count; i++) {
    if (i != running && can_go_on(&threads[i])) options[count++] = i;
  }
  if (count == 0 && gives_way) options[count++] = running;
  return count;
}

static void note_choice(uint32_t count, uint32_t chosen, bool preempts) {
  if (the_record->choice_count == MOST_CHOICES) fail_with_waits("the schedule does not end");
  the_record->choices[the_record->choice_count++] =
      (choice){.options = (uint8_t)count, .chosen = (uint8_t)chosen, .preempts = preempts};
}

static void note_step(const schedule_thread *thread, uint16_t enabled) {
  if (the_record->step_count == MOST_STEPS) fail_with_waits("the schedule does not end");
  step *noted = &the_record->steps[the_record->step_count++];
  noted->thread = (uint8_t)thread->number;
  noted->kind = (uint8_t)thread->pending.kind;
  noted->enabled = enabled;
  noted->asleep = asleep;
  noted->object = thread->pending.object;
  noted->other_object = thread->pending.other_object;
  noted->name = thread->pending.name;
  memcpy(noted->frames, thread->pending.frames, sizeof noted->frames);
}

/* The index of the option that goes on. Ends the schedule where all that could go on is asleep. */
static uint32_t choose(const uint32_t *options, uint32_t count, bool preempts) {
  uint32_t number = the_record->step_count;
  asleep |= strategy_asleep_at(number);
  int wanted = strategy_thread_of(number);
  if (wanted < 0 && asleep == 0) return count > 1 ? strategy_choose(options, count, preempts, number) : 0;
  for (uint32_t i = 0; i < count; i++) {
    if (wanted >= 0 ? options[i] == (uint32_t)wanted : (asleep >> options[i] & 1) == 0) return i;
  }
  if (wanted >= 0) fail_with_waits("the same choices led elsewhere: something is not under the scheduler");
  the_record->outcome = OUTCOME_REDUNDANT;
  _exit(0);
}

/* Those stay asleep that what this step does leaves as it is. */
static void wake_sleepers(const step *taken) {
  for (uint32_t i = 0; i < thread_count; i++) {
    if ((asleep >> i & 1) == 0) continue;
    const pending_point *pending = &threads[i].pending;
    if (i == taken->thread || dependence_of(pending->kind, pending->object, pending->other_object,
                                            (point_kind)taken->kind, taken->object, taken->other_object)) {
      asleep &= (uint16_t) ~(1u << i);
    }
  }
}

/* Who goes on; null at the end of the schedule. */
static schedule_thread *pick(void) {
  uint32_t options[MOST_THREADS];
  bool preempts = false;
  uint32_t count = list_options(options, &preempts);
  while (count == 0) {
    if (all_are_done()) return NULL;
    if (!advance_time()) fail_with_waits("deadlock: no thread can go on");
    count = list_options(options, &preempts);
  }
  uint32_t chosen = choose(options, count, preempts);
  if (count > 1) note_choice(count, chosen, preempts);
  uint16_t enabled = 0;
  for (uint32_t i = 0; i < count; i++) enabled |= (uint16_t)(1u << options[i]);
  schedule_thread *next = &threads[options[chosen]];
  running = next->number;
  note_step(next, enabled);
  if (asleep != 0) wake_sleepers(&the_record->steps[the_record->step_count - 1]);
  return next;
}

static void hand_over(void) {
  schedule_thread *next = pick();
  if (next == schedule_self) return;
  if (next == NULL) {
    set(&has_ended);
  } else {
    set(&next->turn);
  }
  if (!schedule_self->is_done) wait_for(&schedule_self->turn);
}

static void stand_at(pending_point point) {
  schedule_thread *self = schedule_self;
  if (self == NULL) return;
  self->pending = point;
  schedule_frames(self->pending.frames);
  hand_over();
}

bool schedule_is_fresh(const volatile void *address) {
  const schedule_thread *self = schedule_self;
  uintptr_t at = (uintptr_t)address;
  return self != NULL && at >= self->fresh_low && at < self->fresh_high &&
         self->fresh_time == self->now.of[self->number];
}

void schedule_point(point_kind kind, const void *object) {
  stand_at((pending_point){.kind = kind, .object = object, .deadline_ns = UINT64_MAX});
}

void schedule_point_until(point_kind kind, const void *object, uint64_t deadline_ns) {
  stand_at((pending_point){.kind = kind, .object = object, .deadline_ns = deadline_ns});
}

void schedule_driver_point(const char *call, const void *object) {
  stand_at((pending_point){.kind = POINT_DRIVER, .object = object, .name = call, .deadline_ns = UINT64_MAX});
}

void schedule_begin_wait_point(const void *mutex, const void *condition) {
  stand_at(
      (pending_point){.kind = POINT_BEGIN_WAIT, .object = mutex, .other_object = condition, .deadline_ns = UINT64_MAX});
}

void schedule_wake(const void *condition) {
  for (uint32_t i = 0; i < thread_count; i++) {
    point_kind kind = threads[i].pending.kind;
    if ((kind == POINT_WAIT || kind == POINT_IDLE) && threads[i].pending.object == condition) {
      threads[i].is_woken = true;
    }
  }
}

/* ---- Threads --------------------------------------------------------------------------------------------------- */

static void *thread_main(void *argument) {
  schedule_thread *self = argument;
  wait_for(&self->turn);
  schedule_self = self;
  self->body(self->argument);
  schedule_run_thread_end_hooks();
  schedule_point(POINT_END, NULL);
  self->is_done = true;
  hand_over();
  return NULL;
}

int schedule_thread_start(void *(*body)(void *argument), void *argument, bool is_daemon) {
  if (thread_count == MOST_THREADS) schedule_fail("a schedule has at most %d threads", MOST_THREADS);
  schedule_thread *thread = &threads[thread_count];
  thread->number = thread_count;
  thread->is_daemon = is_daemon;
  thread->body = body;
  thread->argument = argument;
  thread->pending.kind = POINT_BEGIN;
  if (schedule_self != NULL) {
    thread->now = schedule_self->now;
    schedule_self->now.of[schedule_self->number]++;
  }
  thread->now.of[thread_count] = 1;
  char *stack = aligned_alloc(4096, STACK_BYTES);
  pthread_attr_t attributes;
  pthread_t native;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, STACK_BYTES);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  thread->stack_low = (uintptr_t)stack;
  thread->stack_high = (uintptr_t)stack + STACK_BYTES;
  int result = __real_pthread_create(&native, &attributes, thread_main, thread);
  pthread_attr_destroy(&attributes);
  if (result == 0) thread_count++;
  return result;
}

static void *run_body(void *argument) {
  void (*body)(void);
  memcpy(&body, &argument, sizeof body);
  body();
  return NULL;
}

void schedule_run(void (*const *bodies)(void), int count, unsigned flags) {
  scenario_flags = flags;
  for (int i = 0; i < count; i++) {
    void *argument;
    memcpy(&argument, &bodies[i], sizeof argument);
    if (schedule_thread_start(run_body, argument, false) != 0) schedule_fail("a thread can not be started");
  }
  if ((flags & SCENARIO_HAS_GPU) != 0) schedule_start_gpu();
  schedule_thread *first = pick();
  set(&first->turn);
  wait_for(&has_ended);
}
