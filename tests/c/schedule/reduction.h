/* All schedules of a scenario, up to the order of steps that do not depend on each other. */
#ifndef SCHEDULE_REDUCTION_H
#define SCHEDULE_REDUCTION_H

#include "explore.h"

/* Explores at most `most` schedules. Gives how many; `*out_complete` where there are no more. Stops at a failure. */
uint64_t reduction_explore(const scenario *scenario, const exploration *wanted, uint64_t most, bool *out_complete);

#endif
