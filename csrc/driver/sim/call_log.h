/* The log of the latest calls, and how many were made to each entry point. Its lock is a leaf, held for a few stores.
 */
#ifndef RDM_SIM_CALL_LOG_H
#define RDM_SIM_CALL_LOG_H

#include "driver/driver.h"

typedef struct rdm__sim_call_log rdm__sim_call_log;

/* NULL where memory is short. */
rdm__sim_call_log *rdm__sim_call_log_create(void);

/* Adds a call and returns its number; the first is 0. */
uint64_t rdm__sim_call_log_add(rdm__call call, const rdm_sim_call *entry);

/* Notes what a call returned and, unless it is 0, the handle it made. Does nothing once newer calls took its place. */
void rdm__sim_call_log_finish(uint64_t number, int result, uint64_t handle);

/* Copies calls from number `first` on, oldest first, and returns how many. */
size_t rdm__sim_call_log_read(uint64_t first, rdm_sim_call *out_calls, size_t capacity);

/* How many calls were made to an entry point, RDM__CALL_COUNT: to all. */
uint64_t rdm__sim_call_log_count(rdm__call call);

#endif
