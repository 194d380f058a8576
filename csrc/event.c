#include "event.h"

#include "completion.h"
#include "driver_call.h"
#include "runtime.h"
#include "status.h"
#include "wait.h"

rdm_status rdm__event_pin(rdm_event handle, rdm__event **out_event) {
  rdm_status status = rdm__runtime_check();
  if (status != RDM_OK) return status;
  rdm__object *object = NULL;
  status = rdm__handle_pin(&rdm__events, handle.bits, &object);
  if (status == RDM_OK) *out_event = (rdm__event *)object;
  return status;
}

void rdm__event_unpin(rdm__event *event) {
  rdm__object_unpin(&rdm__events, &event->object);
}

rdm_status rdm__event_check_recorded(rdm__event *event) {
  switch (atomic_load_explicit(&event->state, memory_order_acquire)) {
    case RDM__EVENT_RECORDED:
      return RDM_OK;
    case RDM__EVENT_RECORD_FAILED:
      return rdm__fail(RDM_ERROR_NOT_RECORDED, "the event's last record failed, so there is nothing to wait for");
    default:
      return rdm__fail(RDM_ERROR_NOT_RECORDED, "the event was never recorded, so there is nothing to wait for");
  }
}

/* Not recorded, whatever it was used for before. */
static void open_new(rdm__event *event, rdm_event *out_event) {
  atomic_store_explicit(&event->state, RDM__EVENT_NEVER_RECORDED, memory_order_relaxed);
  out_event->bits = rdm__handle_open(&rdm__events, &event->object);
}

/* Where the thread has none at hand, or the call is wrong. */
static RDM__COLD rdm_status create_elsewhere(rdm_device device_handle, uint32_t flags, rdm_event *out_event) {
  if (out_event == NULL) return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "out_event is null");
  if (flags >= RDM__EVENT_KINDS) {
    return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "flags is %#x; it is RDM_EVENT_DEFAULT (0) or RDM_EVENT_TIMING (1)",
                     flags);
  }
  rdm__event *event = NULL;
  rdm__device *device = NULL;
  rdm_status status = rdm__device_from_handle(device_handle, &device);
  if (status == RDM_OK) status = rdm__event_pool_acquire(device, flags, &event);
  if (status == RDM_OK) open_new(event, out_event);
  return status;
}

rdm_status rdm_event_create(rdm_device device_handle, uint32_t flags, rdm_event *out_event) {
  bool is_valid = out_event != NULL && flags < RDM__EVENT_KINDS;
  rdm__event *event = is_valid ? rdm__event_of_thread(device_handle, flags) : NULL;
  if (event == NULL) return create_elsewhere(device_handle, flags, out_event);
  open_new(event, out_event);
  return RDM_OK;
}

rdm_status rdm_event_release(rdm_event handle) {
  if (rdm__runtime_is_over()) return rdm__runtime_release_check();
  return rdm__handle_close(&rdm__events, handle.bits);
}

rdm_status rdm_event_query(rdm_event handle) {
  rdm__event *event = NULL;
  rdm_status status = rdm__event_pin(handle, &event);
  if (status != RDM_OK) return status;
  if (atomic_load_explicit(&event->state, memory_order_acquire) == RDM__EVENT_NEVER_RECORDED) {
    /* What it will stand for is still to come; the runtimes call this done, which has hidden real mistakes. */
    status = RDM_NOT_READY;
  } else {
    status = rdm__event_check_recorded(event);
    if (status == RDM_OK) status = rdm__query_native_event(event->device, event->native, "asking for an event");
  }
  rdm__event_unpin(event);
  return status;
}

rdm_status rdm_event_wait(rdm_event handle, uint64_t timeout_ns) {
  if (rdm__in_completion_handler()) {
    return rdm__fail(RDM_ERROR_IN_CALLBACK, "rdm_event_wait was called from a completion handler");
  }
  rdm__event *event = NULL;
  rdm_status status = rdm__event_pin(handle, &event);
  if (status != RDM_OK) return status;
  status = rdm__event_check_recorded(event);
  if (status == RDM_OK) {
    rdm__wait_limit limit = rdm__wait_limit_from(timeout_ns);
    status = rdm__wait_native_event(event->device, event->native, &limit, "waiting for an event");
  }
  rdm__event_unpin(event);
  return status;
}

static rdm_status elapsed(rdm__event *start, rdm__event *end, float *out_milliseconds) {
  if (start->device != end->device) {
    return rdm__fail(RDM_ERROR_WRONG_DEVICE, "start is an event of device %d and end of device %d",
                     start->device->index, end->device->index);
  }
  if ((start->flags & end->flags & RDM_EVENT_TIMING) == 0) {
    return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "%s was created without RDM_EVENT_TIMING",
                     (start->flags & RDM_EVENT_TIMING) == 0 ? "start" : "end");
  }
  rdm__device *device = start->device;
  rdm_status status = rdm__event_check_recorded(start);
  if (status == RDM_OK) status = rdm__event_check_recorded(end);
  if (status == RDM_OK) status = rdm__query_native_event(device, start->native, "asking for the start event");
  if (status == RDM_OK) status = rdm__query_native_event(device, end->native, "asking for the end event");
  if (status == RDM_OK) status = rdm__runtime_check();
  if (status != RDM_OK) return status;
  float milliseconds = 0;
  int error = device->driver->event_elapsed_time(&milliseconds, start->native, end->native);
  if (error == RDM_HIP_NOT_READY) {
    /* One of them was recorded again since it was asked for. */
    rdm__driver_forget_error(device->driver);
    return RDM_NOT_READY;
  }
  if (error != RDM_HIP_SUCCESS) {
    return rdm__device_call_failed(device, RDM__CALL_event_elapsed_time, error, "timing two events");
  }
  *out_milliseconds = milliseconds;
  return RDM_OK;
}

rdm_status rdm_event_elapsed(rdm_event start_handle, rdm_event end_handle, float *out_milliseconds) {
  if (out_milliseconds == NULL) return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "out_milliseconds is null");
  rdm__event *start = NULL;
  rdm__event *end = NULL;
  rdm_status status = rdm__event_pin(start_handle, &start);
  if (status != RDM_OK) return status;
  status = rdm__event_pin(end_handle, &end);
  if (status == RDM_OK) {
    status = elapsed(start, end, out_milliseconds);
    rdm__event_unpin(end);
  }
  rdm__event_unpin(start);
  return status;
}

rdm_status rdm_event_get_native(rdm_event handle, void **out_native_event) {
  if (out_native_event == NULL) return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "out_native_event is null");
  rdm__event *event = NULL;
  rdm_status status = rdm__event_pin(handle, &event);
  if (status != RDM_OK) return status;
  *out_native_event = event->native;
  rdm__event_unpin(event);
  return RDM_OK;
}
