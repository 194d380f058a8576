/*
 * Events: handles to pooled driver events, with whether they were recorded.
 *
 * Threading. An event may be recorded by one thread while others wait for it; `state` says what the latest record came
 * to. The driver event is fixed from creation to release and goes back to its pool when the last pin is dropped.
 */
#ifndef RDM_EVENT_H
#define RDM_EVENT_H

#include "event_pool.h"

typedef enum rdm__event_state {
  RDM__EVENT_NEVER_RECORDED,
  RDM__EVENT_RECORD_FAILED,
  RDM__EVENT_RECORDED
} rdm__event_state;

/* Pins the event of a handle; checks the runtime's state first. */
rdm_status rdm__event_pin(rdm_event handle, rdm__event **out_event);
void rdm__event_unpin(rdm__event *event);

/* RDM_OK, or RDM_ERROR_NOT_RECORDED. */
rdm_status rdm__event_check_recorded(rdm__event *event);

#endif
