/* Prints a schedule that failed, in a form that can be replayed. */
#ifndef SCHEDULE_REPORT_H
#define SCHEDULE_REPORT_H

#include "explore.h"

void report_failure(const scenario *scenario, const char *found_by);

/* The choices of the record as text, "0*17,1,0*3,2"; what is not said at the end is 0. */
void report_choices(char *text, uint32_t size);
/* The same back; false for what is not such a text. */
bool report_parse_choices(const char *text, uint8_t *choices, uint32_t *out_count);

#endif
