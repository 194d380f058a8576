/*
 * One recording of an event: what work and host threads wait for. An event that is recorded again gets a new one, so
 * those who wait for the old one are not misled.
 */
#ifndef RDM_SIM_RECORD_H
#define RDM_SIM_RECORD_H

#include "driver/sim/device.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct rdm__sim_record rdm__sim_record;

/* With one reference, the caller's. NULL where memory is short. */
rdm__sim_record *rdm__sim_record_create(void);
void rdm__sim_record_retain(rdm__sim_record *record);
/* NULL is fine. */
void rdm__sim_record_release(rdm__sim_record *record);

/* Ends the record: it was reached, or its device faulted first. */
void rdm__sim_record_finish(rdm__sim_record *record, bool reached);

/* True once the record is over, one way or the other. */
bool rdm__sim_record_is_over(rdm__sim_record *record);

/* When the record was reached, on the monotonic clock. */
uint64_t rdm__sim_record_time_ns(rdm__sim_record *record);

/* Waits until the record is over or, where `device` is not NULL, that device has faulted. */
void rdm__sim_record_wait(rdm__sim_record *record, rdm__sim_device *device);

/* Makes those who wait look again at their device's fault. */
void rdm__sim_record_wake(rdm__sim_record *record);

#endif
