/* Entry points: events. */
#include "driver/sim/call.h"
#include "driver/sim/calls.h"
#include "driver/sim/event.h"
#include "driver/sim/thread.h"

int rdm__sim_hip_event_create(void **event, unsigned flags) {
  rdm__sim_call_scope scope;
  void *handle = NULL;
  int current = rdm__sim_this_thread()->current_device;
  int result = rdm__sim_call_begin(&scope, RDM__CALL_event_create, NULL, current);
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_event_create(event, flags);
  if (result == RDM_HIP_SUCCESS) handle = *event;
  return rdm__sim_call_end_created(&scope, result, handle);
}

int rdm__sim_hip_event_destroy(void *event) {
  rdm__sim_call_scope scope;
  rdm__sim_event *found = rdm__sim_event_get(event);
  int result = rdm__sim_call_begin(&scope, RDM__CALL_event_destroy, event, rdm__sim_event_device_index(found));
  rdm__sim_event_release(found);
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_event_destroy(event);
  return rdm__sim_call_end(&scope, result);
}

int rdm__sim_hip_event_record(void *event, void *stream) {
  rdm__sim_call_scope scope;
  rdm__sim_event *found = rdm__sim_event_get(event);
  rdm__sim_stream *found_stream = rdm__sim_stream_get(stream);
  int result = rdm__sim_call_begin(&scope, RDM__CALL_event_record, event, rdm__sim_event_device_index(found));
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_stream_check_submit(found_stream, stream);
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_event_record(found, found_stream);
  rdm__sim_stream_release(found_stream);
  rdm__sim_event_release(found);
  return rdm__sim_call_end(&scope, result);
}

int rdm__sim_hip_stream_wait_event(void *stream, void *event, unsigned flags) {
  rdm__sim_call_scope scope;
  rdm__sim_stream *found_stream = rdm__sim_stream_get(stream);
  rdm__sim_event *found = rdm__sim_event_get(event);
  int result =
      rdm__sim_call_begin(&scope, RDM__CALL_stream_wait_event, stream, rdm__sim_stream_device_index(found_stream));
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_event_wait(found_stream, stream, found, flags);
  rdm__sim_event_release(found);
  rdm__sim_stream_release(found_stream);
  return rdm__sim_call_end(&scope, result);
}

int rdm__sim_hip_event_query(void *event) {
  rdm__sim_call_scope scope;
  rdm__sim_event *found = rdm__sim_event_get(event);
  int result = rdm__sim_call_begin(&scope, RDM__CALL_event_query, event, rdm__sim_event_device_index(found));
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_event_query(found);
  rdm__sim_event_release(found);
  return rdm__sim_call_end(&scope, result);
}

int rdm__sim_hip_event_synchronize(void *event) {
  rdm__sim_call_scope scope;
  rdm__sim_event *found = rdm__sim_event_get(event);
  int result = rdm__sim_call_begin(&scope, RDM__CALL_event_synchronize, event, rdm__sim_event_device_index(found));
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_event_synchronize(found);
  rdm__sim_event_release(found);
  return rdm__sim_call_end(&scope, result);
}

int rdm__sim_hip_event_elapsed_time(float *milliseconds, void *start, void *end) {
  rdm__sim_call_scope scope;
  rdm__sim_event *found_start = rdm__sim_event_get(start);
  rdm__sim_event *found_end = rdm__sim_event_get(end);
  int result =
      rdm__sim_call_begin(&scope, RDM__CALL_event_elapsed_time, start, rdm__sim_event_device_index(found_start));
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_event_elapsed(milliseconds, found_start, found_end);
  rdm__sim_event_release(found_end);
  rdm__sim_event_release(found_start);
  return rdm__sim_call_end(&scope, result);
}
