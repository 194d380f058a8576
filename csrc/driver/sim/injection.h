/* Injections: making the n-th call of an entry point fail or stall. */
#ifndef RDM_SIM_INJECTION_H
#define RDM_SIM_INJECTION_H

#include "driver/driver.h"

typedef struct rdm__sim_injections rdm__sim_injections;

/* NULL where memory is short. */
rdm__sim_injections *rdm__sim_injections_create(void);

/* For those that no call can have met. Null is fine. */
void rdm__sim_injections_destroy(rdm__sim_injections *injections);

/*
 * Adds those that RDM_SIM_INJECT lists, for calls that come before a test can make any: items separated by commas,
 * each `entry point:nth:times:error:stall_ns`, the entry point `*` for any. False where the text is anything else.
 */
bool rdm__sim_injections_parse(rdm__sim_injections *injections, const char *text);

/* `call` is RDM__CALL_COUNT for any. False where memory is short. */
bool rdm__sim_injections_add(rdm__sim_injections *injections, rdm__call call, uint64_t nth, uint64_t times, int error,
                             uint64_t stall_ns);

/* Removes all, and returns how many calls they had changed. A call that is stalling stalls on. */
uint64_t rdm__sim_injections_clear(rdm__sim_injections *injections);

/* Counts this call, stalls it where it is one of those chosen, and returns the error to return instead, or 0. */
int rdm__sim_injection_apply(rdm__call call);

#endif
