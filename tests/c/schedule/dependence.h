/*
 * Which steps depend on each other. Two schedules that order all dependent steps alike come to the same, so one of them
 * is enough; and a step that another schedule has begun with need not be begun with again until something that it
 * depends on was done: its thread is asleep till then.
 */
#ifndef SCHEDULE_DEPENDENCE_H
#define SCHEDULE_DEPENDENCE_H

#include "engine.h"

/* Whether the order of two steps of different threads can matter. */
bool dependence_of(point_kind one, const void *one_object, const void *one_other, point_kind other,
                   const void *other_object, const void *other_other);

/* Whether there can be a moment at which both steps can be taken; else their order is not for the scheduler to change.
 */
bool dependence_both_possible(point_kind earlier, point_kind later);

#endif
