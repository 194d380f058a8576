#include "strategy.h"

enum { MOST_CHANGES = 8 };

static strategy the_strategy;
static uint64_t random_state;
static uint32_t position;
static uint64_t priorities[MOST_THREADS];
static uint32_t change_at[MOST_CHANGES];

/* splitmix64: small, and good from any seed. */
uint64_t strategy_random(uint64_t *state) {
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

void strategy_begin(const strategy *chosen) {
  the_strategy = *chosen;
  random_state = chosen->seed;
  position = 0;
  /* Above every priority that a change gives. */
  for (int i = 0; i < MOST_THREADS; i++) priorities[i] = strategy_random(&random_state) | UINT64_C(1) << 63;
  for (uint32_t i = 0; i < chosen->changes && i < MOST_CHANGES; i++) {
    change_at[i] = (uint32_t)(strategy_random(&random_state) % (chosen->steps + 1));
  }
}

static uint32_t choose_random(uint32_t count, bool preempts) {
  if (!preempts) return (uint32_t)(strategy_random(&random_state) % count);
  if (strategy_random(&random_state) % the_strategy.one_in != 0) return 0;
  return 1 + (uint32_t)(strategy_random(&random_state) % (count - 1));
}

/* The thread of the highest priority. At a change the running one falls below all others. */
static uint32_t choose_by_priority(const uint32_t *threads, uint32_t count, bool preempts, uint32_t step) {
  for (uint32_t i = 0; i < the_strategy.changes && i < MOST_CHANGES; i++) {
    if (step < change_at[i] || change_at[i] == UINT32_MAX) continue;
    change_at[i] = UINT32_MAX;
    if (preempts) priorities[threads[0]] = MOST_CHANGES - i;
  }
  uint32_t best = 0;
  for (uint32_t i = 1; i < count; i++) {
    if (priorities[threads[i]] > priorities[threads[best]]) best = i;
  }
  return best;
}

int strategy_thread_of(uint32_t step) {
  return the_strategy.kind == STRATEGY_THREADS && step < the_strategy.steps ? the_strategy.threads[step] : -1;
}

uint16_t strategy_asleep_at(uint32_t step) {
  return the_strategy.kind == STRATEGY_THREADS && step + 1 == the_strategy.steps ? the_strategy.asleep : 0;
}

uint32_t strategy_choose(const uint32_t *threads, uint32_t count, bool preempts, uint32_t step) {
  switch (the_strategy.kind) {
    case STRATEGY_RANDOM:
      return choose_random(count, preempts);
    case STRATEGY_PRIORITIES:
      return choose_by_priority(threads, count, preempts, step);
    default: {
      uint32_t choice = position < the_strategy.choice_count ? the_strategy.choices[position] : 0;
      position++;
      return choice < count ? choice : 0;
    }
  }
}
