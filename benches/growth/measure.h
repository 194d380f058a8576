/* What the growth programs share: timing, memory, and lines of JSON for report.py. */
#ifndef RDM_GROWTH_MEASURE_H
#define RDM_GROWTH_MEASURE_H

#include "rocm_device_map.h"

#include <stdint.h>

/*
 * One point of a curve. `must`: "flat" for a cost or a size that may not grow with n, "linear" for one that may grow
 * no faster than n, "bounded" for a count that `limit` bounds (0 elsewhere).
 */
void growth_point(const char *series, const char *what, uint64_t n, double value, const char *must, double limit);

/* Resident memory of the process in KiB. */
double growth_resident_kib(void);

/* The least processor time of the thread over several rounds of `count` operations, in ns for one. */
double growth_least_ns(int rounds, uint64_t count, void (*operation)(void *context, uint64_t index), void *context);

/* Ends the process where a call did not come to RDM_OK: what is measured then means nothing. */
void growth_check(rdm_status status, const char *doing);

/* Processor time of all threads of the process. */
uint64_t growth_processor_ns(void);

#endif
