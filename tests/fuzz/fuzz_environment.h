/* The parts of fuzz_environment that are compiled together with what they look into. */
#ifndef FUZZ_ENVIRONMENT_H
#define FUZZ_ENVIRONMENT_H

#include <stdbool.h>
#include <stdint.h>

/* A second opinion on "digits alone, and no more than 64 bits". */
bool environment_expect_number(const char *text, uint64_t *out_value);

/* How many lines were logged since the last call. */
unsigned environment_take_log_lines(void);

/* RDM_WATCHDOG_SECS and RDM_EVENT_BLOCKING, as if the process read them for the first time. */
void environment_fuzz_watchdog(const char *text);
void environment_fuzz_blocking(const char *text);

/* RDM_SIM_FAULT_SCOPE, RDM_SIM_LAST_ERROR or RDM_SIM_SERIAL_COMPILER. */
void environment_fuzz_choice(unsigned which, const char *text);

/* RDM_SIM_INJECT: what is taken, and what the calls after it then do. */
void environment_fuzz_injections(const char *text);

#endif
