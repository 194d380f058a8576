/* Keeps the library's log lines, to count them. */
#ifndef TEST_LOG_LINES_H
#define TEST_LOG_LINES_H

#include <stdint.h>

/* From now on log lines are kept here in place of standard error. */
void log_lines_capture(void);

/* How many of the lines have the text in them. */
uint32_t log_lines_with(const char *text);

#endif
