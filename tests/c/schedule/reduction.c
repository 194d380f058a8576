/*
 * Dynamic partial order reduction. After each schedule, for each step the latest earlier one is looked for that depends
 * on it, could have been taken at the same moment, and is not before it for another reason: there the other thread has
 * to be tried first, too. What was tried at a moment sleeps in what is tried after it (dependence.h).
 */
#include "reduction.h"

#include "dependence.h"

#include <stdlib.h>
#include <string.h>

/* What is known of the moment before each step of the current schedule. */
typedef struct moment {
  uint16_t wanted;
  uint16_t tried;
  uint16_t asleep;
} moment;

static moment moments[MOST_STEPS];
static uint8_t threads[MOST_STEPS];

/* For each step: how many steps of each thread are before it, itself among them. */
typedef struct before {
  uint32_t of[MOST_THREADS];
} before;

static before befores[MOST_STEPS];
static uint32_t own_number[MOST_STEPS];

static bool depends(const step *earlier, const step *later) {
  return dependence_of((point_kind)earlier->kind, earlier->object, earlier->other_object, (point_kind)later->kind,
                       later->object, later->other_object);
}

static void join(before *into, const before *from) {
  for (int i = 0; i < MOST_THREADS; i++) {
    if (from->of[i] > into->of[i]) into->of[i] = from->of[i];
  }
}

/* The latest step before `later` that it could have come before. */
static void find_reversal(uint32_t later, const before *known) {
  const step *steps = the_record->steps;
  for (uint32_t i = later; i-- > 0;) {
    if (steps[i].thread == steps[later].thread || !depends(&steps[i], &steps[later])) continue;
    if (!dependence_both_possible((point_kind)steps[i].kind, (point_kind)steps[later].kind)) continue;
    if (known->of[steps[i].thread] >= own_number[i]) continue;
    uint16_t own = (uint16_t)(1u << steps[later].thread);
    moments[i].wanted |= (steps[i].enabled & own) != 0 ? own : steps[i].enabled;
    return;
  }
}

static void analyze(void) {
  static before latest[MOST_THREADS];
  before creation = {{0}};
  memset(latest, 0, sizeof latest);
  for (uint32_t i = 0; i < the_record->step_count; i++) {
    const step *taken = &the_record->steps[i];
    before *own = &latest[taken->thread];
    if (taken->kind == POINT_BEGIN) join(own, &creation);
    find_reversal(i, own);
    for (uint32_t j = 0; j < i; j++) {
      if (depends(&the_record->steps[j], taken)) join(own, &befores[j]);
    }
    own_number[i] = ++own->of[taken->thread];
    befores[i] = *own;
    if (taken->kind == POINT_CREATE) creation = *own;
  }
}

/* Takes over the moments of the schedule that just ran from step `first` on. */
static void extend(uint32_t first) {
  for (uint32_t i = first; i < the_record->step_count; i++) {
    const step *taken = &the_record->steps[i];
    threads[i] = taken->thread;
    moments[i] = (moment){
        .wanted = (uint16_t)(1u << taken->thread), .tried = (uint16_t)(1u << taken->thread), .asleep = taken->asleep};
  }
}

/* The deepest moment at which something is left to try. False where there is none. */
static bool next(strategy *strategy, uint32_t count) {
  for (uint32_t i = count; i-- > 0;) {
    moment *moment = &moments[i];
    uint16_t left = (uint16_t)(moment->wanted & ~moment->tried & ~moment->asleep);
    if (left == 0) continue;
    uint8_t thread = 0;
    while ((left >> thread & 1) == 0) thread++;
    threads[i] = thread;
    strategy->steps = i + 1;
    strategy->asleep = (uint16_t)(moment->asleep | moment->tried);
    moment->tried |= (uint16_t)(1u << thread);
    return true;
  }
  return false;
}

uint64_t reduction_explore(const scenario *scenario, const exploration *wanted, uint64_t most, bool *out_complete) {
  strategy strategy = {.kind = STRATEGY_THREADS, .threads = threads};
  uint64_t schedules = 0;
  *out_complete = false;
  do {
    uint32_t kept = strategy.steps;
    explore_one(scenario, &strategy);
    if (the_record->outcome == OUTCOME_FAILED) return schedules + 1;
    if (the_record->outcome == OUTCOME_PASSED) schedules++;
    extend(kept);
    analyze();
    if (schedules >= most || explore_is_late(wanted)) return schedules;
  } while (next(&strategy, the_record->step_count));
  *out_complete = true;
  return schedules;
}
