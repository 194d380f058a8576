/* Who goes on: the strategies. A schedule is known by its choices, whatever strategy made them. */
#ifndef SCHEDULE_STRATEGY_H
#define SCHEDULE_STRATEGY_H

#include "engine.h"

typedef struct strategy {
  enum { STRATEGY_FIXED, STRATEGY_RANDOM, STRATEGY_PRIORITIES, STRATEGY_THREADS } kind;
  /* Threads: which one takes each step, for the first `steps` of them; and who is asleep at the last of these. */
  const uint8_t *threads;
  uint16_t asleep;
  /* Fixed: the choices, and the first option after them. */
  const uint8_t *choices;
  uint32_t choice_count;
  /* Random: one switch in so many choices. Priorities: how many changes, somewhere in so many steps. */
  uint64_t seed;
  uint32_t one_in;
  uint32_t changes;
  uint32_t steps;
} strategy;

/* Sets what the schedule of this process goes by. */
void strategy_begin(const strategy *chosen);

/* One of `count` threads; where `preempts`, the first is the one that runs. */
uint32_t strategy_choose(const uint32_t *threads, uint32_t count, bool preempts, uint32_t step);

/* The thread that is to take a step, -1: any that is not asleep; and who is asleep from a step on. */
int strategy_thread_of(uint32_t step);
uint16_t strategy_asleep_at(uint32_t step);

uint64_t strategy_random(uint64_t *state);

#endif
