/* Events: of the device current at their creation, recorded on a stream of that device alone. */
#ifndef RDM_SIM_EVENT_H
#define RDM_SIM_EVENT_H

#include "driver/sim/stream.h"

typedef struct rdm__sim_event rdm__sim_event;

/* The event of a handle with one more reference, NULL where the handle is not one. */
rdm__sim_event *rdm__sim_event_get(const void *handle);
/* NULL is fine. */
void rdm__sim_event_release(rdm__sim_event *event);

/* -1 for NULL. */
int rdm__sim_event_device_index(const rdm__sim_event *event);

/* These return HIP's error number; a null object stands for a handle that is none. */
int rdm__sim_event_create(void **out_event, unsigned flags);
int rdm__sim_event_destroy(const void *handle);
int rdm__sim_event_record(rdm__sim_event *event, rdm__sim_stream *stream);
/* Makes the stream wait for the event's latest record. */
int rdm__sim_event_wait(rdm__sim_stream *stream, const void *stream_handle, rdm__sim_event *event, unsigned flags);
/* An event that was never recorded counts as complete, as in HIP and CUDA. */
int rdm__sim_event_query(rdm__sim_event *event);
int rdm__sim_event_synchronize(rdm__sim_event *event);
int rdm__sim_event_elapsed(float *milliseconds, rdm__sim_event *start, rdm__sim_event *end);

#endif
