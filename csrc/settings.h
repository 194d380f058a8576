/* What the environment sets for host waits, read once. */
#ifndef RDM_SETTINGS_H
#define RDM_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

/* RDM_WATCHDOG_SECS in nanoseconds, UINT64_MAX where it is unset, 0 or not a whole number (one warning then). */
uint64_t rdm__watchdog_ns(void);

/* RDM_EVENT_BLOCKING=1: host waits sleep at once and do not spin. */
bool rdm__waits_block(void);

#endif
