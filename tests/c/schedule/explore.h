/* Runs schedules of one scenario, each in a process forked from one that has prepared it. */
#ifndef SCHEDULE_EXPLORE_H
#define SCHEDULE_EXPLORE_H

#include "record.h"
#include "scenario.h"
#include "strategy.h"

/* Runs one schedule; what it came to is in `the_record`. */
void explore_one(const scenario *scenario, const strategy *strategy);

typedef struct exploration {
  /* At most so many schedules to have all of them. */
  uint64_t most_full;
  /* Where that was not enough: every schedule with at most so many preemptions; -1: none. And of them at most so many.
   */
  uint64_t most_bounded;
  int bound;
  uint64_t seed;
  uint64_t random_schedules;
  /* Ends what is not done by then: the monotonic clock; 0: never. Then the exploration is not exhaustive. */
  double end_s;
} exploration;

typedef struct explored {
  uint64_t schedules;
  /* All of them, up to the order of independent steps; or all within the bound. */
  bool is_exhaustive;
  bool is_bounded;
  bool has_failed;
  /* What found the failure. */
  char found_by[96];
} explored;

explored explore(const scenario *scenario, const exploration *wanted);

double explore_now_s(void);
bool explore_is_late(const exploration *wanted);

#endif
