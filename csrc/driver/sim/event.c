#include "driver/sim/event.h"

#include "driver/sim/device.h"
#include "driver/sim/object.h"
#include "driver/sim/record.h"

#include <pthread.h>
#include <stdlib.h>

struct rdm__sim_event {
  rdm__sim_object object;
  unsigned flags;
  /* Guards the latest record; NULL before the first. */
  pthread_mutex_t lock;
  rdm__sim_record *latest;
  /* The capture that the latest record went into, NULL where it was run. Guarded as that. */
  rdm__sim_capture *captured_in;
};

/* Work that names a record: to reach it, or to wait for it. */
typedef struct record_work {
  rdm__sim_work work;
  rdm__sim_record *record;
} record_work;

static void destroy_event(rdm__sim_object *object) {
  rdm__sim_event *event = (rdm__sim_event *)object;
  rdm__sim_record_release(event->latest);
  rdm__sim_capture_release(event->captured_in);
  pthread_mutex_destroy(&event->lock);
  free(event);
}

rdm__sim_event *rdm__sim_event_get(const void *handle) {
  return rdm__sim_handle_get(handle, RDM__SIM_EVENT);
}

void rdm__sim_event_release(rdm__sim_event *event) {
  if (event != NULL) rdm__sim_object_release(&event->object);
}

int rdm__sim_event_device_index(const rdm__sim_event *event) {
  return event == NULL ? -1 : event->object.device;
}

/* The sticky fault of the event's device, 0 where there is none. */
static int device_fault(const rdm__sim_event *event) {
  return rdm__sim_device_fault(rdm__sim_device_at(event->object.device));
}

/* The latest record with one more reference, NULL before the first. */
static rdm__sim_record *latest_record(rdm__sim_event *event) {
  pthread_mutex_lock(&event->lock);
  rdm__sim_record *record = event->latest;
  if (record != NULL) rdm__sim_record_retain(record);
  pthread_mutex_unlock(&event->lock);
  return record;
}

/* The capture of the latest record with one more reference, NULL where there is none. */
static rdm__sim_capture *capture_of(rdm__sim_event *event) {
  pthread_mutex_lock(&event->lock);
  rdm__sim_capture *capture = event->captured_in;
  if (capture != NULL) rdm__sim_capture_retain(capture);
  pthread_mutex_unlock(&event->lock);
  return capture;
}

/* An event that went into a capture stands for nothing outside it. 0, or the error for one that did. */
static int check_not_captured(rdm__sim_event *event) {
  rdm__sim_capture *capture = capture_of(event);
  if (capture == NULL) return RDM_HIP_SUCCESS;
  int result = rdm__sim_capture_conflict(capture, RDM_HIP_CAPTURED_EVENT);
  rdm__sim_capture_release(capture);
  return result;
}

int rdm__sim_event_create(void **out_event, unsigned flags) {
  if (out_event == NULL) return RDM_HIP_INVALID_VALUE;
  if ((flags & ~(unsigned)(RDM_HIP_EVENT_BLOCKING_SYNC | RDM_HIP_EVENT_DISABLE_TIMING)) != 0) {
    return RDM_HIP_INVALID_VALUE;
  }
  rdm__sim_device *device;
  int result = rdm__sim_device_use_current(&device);
  if (result != RDM_HIP_SUCCESS) return result;
  rdm__sim_event *event = calloc(1, sizeof *event);
  if (event == NULL) return RDM_HIP_OUT_OF_MEMORY;
  rdm__sim_object_init(&event->object, RDM__SIM_EVENT, rdm__sim_device_index(device), destroy_event);
  event->flags = flags;
  pthread_mutex_init(&event->lock, NULL);
  void *handle = rdm__sim_handle_add(&event->object);
  if (handle == NULL) {
    rdm__sim_event_release(event);
    return RDM_HIP_OUT_OF_MEMORY;
  }
  *out_event = handle;
  return RDM_HIP_SUCCESS;
}

int rdm__sim_event_destroy(const void *handle) {
  rdm__sim_event *event = rdm__sim_handle_remove(handle, RDM__SIM_EVENT);
  if (event == NULL) return RDM_HIP_INVALID_HANDLE;
  rdm__sim_event_release(event);
  return RDM_HIP_SUCCESS;
}

/* ---- Recording and waiting in a stream ------------------------------------------------------------------------- */

static int reach_record(rdm__sim_work *work, rdm__sim_stream *stream) {
  (void)work;
  (void)stream;
  return RDM_HIP_SUCCESS;
}

static void finish_record(rdm__sim_work *work, int fault) {
  rdm__sim_record *record = ((record_work *)work)->record;
  rdm__sim_record_finish(record, fault == 0);
  rdm__sim_record_release(record);
  free(work);
}

static int wait_for_record(rdm__sim_work *work, rdm__sim_stream *stream) {
  rdm__sim_stream_wait_record(stream, ((record_work *)work)->record);
  return RDM_HIP_SUCCESS;
}

static void finish_wait(rdm__sim_work *work, int fault) {
  (void)fault;
  rdm__sim_record_release(((record_work *)work)->record);
  free(work);
}

int rdm__sim_event_record(rdm__sim_event *event, rdm__sim_stream *stream) {
  if (event == NULL || event->object.device != rdm__sim_stream_device_index(stream)) return RDM_HIP_INVALID_HANDLE;
  record_work *work = calloc(1, sizeof *work);
  rdm__sim_record *made = rdm__sim_record_create();
  if (work == NULL || made == NULL) {
    free(work);
    rdm__sim_record_release(made);
    return RDM_HIP_OUT_OF_MEMORY;
  }
  work->work.run = reach_record;
  work->work.finish = finish_record;
  work->record = made;
  rdm__sim_record_retain(made);

  /* Under the event's lock, so that of two records the later one in the stream is the latest one. */
  rdm__sim_record *replaced = made;
  rdm__sim_capture *capture = rdm__sim_stream_capture(stream);
  pthread_mutex_lock(&event->lock);
  int result = rdm__sim_stream_submit(stream, &work->work);
  if (result == RDM_HIP_SUCCESS) {
    replaced = event->latest;
    event->latest = made;
    rdm__sim_capture *before = event->captured_in;
    event->captured_in = capture;
    capture = before;
  }
  pthread_mutex_unlock(&event->lock);
  rdm__sim_capture_release(capture);
  rdm__sim_record_release(replaced);
  return result;
}

int rdm__sim_event_wait(rdm__sim_stream *stream, const void *stream_handle, rdm__sim_event *event, unsigned flags) {
  if (stream_handle == NULL) return RDM_HIP_NOT_SUPPORTED;
  if (stream == NULL || event == NULL) return RDM_HIP_INVALID_HANDLE;
  if (flags != 0) return RDM_HIP_INVALID_VALUE;
  int fault = device_fault(event);
  if (fault != 0) return fault;
  rdm__sim_capture *capture = capture_of(event);
  if (capture != NULL) {
    bool goes_on = rdm__sim_capture_status(capture) != RDM_HIP_CAPTURE_NONE;
    int result = goes_on ? rdm__sim_stream_join_capture(stream, capture) : RDM_HIP_CAPTURED_EVENT;
    rdm__sim_capture_release(capture);
    return result;
  }
  rdm__sim_record *latest = latest_record(event);
  if (latest == NULL) return RDM_HIP_SUCCESS;
  record_work *work = calloc(1, sizeof *work);
  if (work == NULL) {
    rdm__sim_record_release(latest);
    return RDM_HIP_OUT_OF_MEMORY;
  }
  work->work.run = wait_for_record;
  work->work.finish = finish_wait;
  work->record = latest;
  return rdm__sim_stream_submit(stream, &work->work);
}

/* ---- On the host ----------------------------------------------------------------------------------------------- */

int rdm__sim_event_query(rdm__sim_event *event) {
  if (event == NULL) return RDM_HIP_INVALID_HANDLE;
  int captured = check_not_captured(event);
  if (captured != RDM_HIP_SUCCESS) return captured;
  rdm__sim_record *latest = latest_record(event);
  bool over = latest == NULL || rdm__sim_record_is_over(latest);
  rdm__sim_record_release(latest);
  int fault = device_fault(event);
  if (fault != 0) return fault;
  return over ? RDM_HIP_SUCCESS : RDM_HIP_NOT_READY;
}

int rdm__sim_event_synchronize(rdm__sim_event *event) {
  if (event == NULL) return RDM_HIP_INVALID_HANDLE;
  int captured = check_not_captured(event);
  if (captured != RDM_HIP_SUCCESS) return captured;
  rdm__sim_record *latest = latest_record(event);
  if (latest != NULL) rdm__sim_record_wait(latest, rdm__sim_device_at(event->object.device));
  rdm__sim_record_release(latest);
  return device_fault(event);
}

int rdm__sim_event_elapsed(float *milliseconds, rdm__sim_event *start, rdm__sim_event *end) {
  if (milliseconds == NULL) return RDM_HIP_INVALID_VALUE;
  if (start == NULL || end == NULL || start->object.device != end->object.device) return RDM_HIP_INVALID_HANDLE;
  if (((start->flags | end->flags) & RDM_HIP_EVENT_DISABLE_TIMING) != 0) return RDM_HIP_INVALID_HANDLE;
  rdm__sim_record *first = latest_record(start);
  rdm__sim_record *second = latest_record(end);
  int result = RDM_HIP_SUCCESS;
  if (first == NULL || second == NULL) {
    result = RDM_HIP_INVALID_HANDLE;
  } else if (!rdm__sim_record_is_over(first) || !rdm__sim_record_is_over(second)) {
    result = RDM_HIP_NOT_READY;
  }
  int fault = device_fault(start);
  if (fault != 0) result = fault;
  if (result == RDM_HIP_SUCCESS) {
    int64_t ns = (int64_t)(rdm__sim_record_time_ns(second) - rdm__sim_record_time_ns(first));
    *milliseconds = (float)((double)ns / 1e6);
  }
  rdm__sim_record_release(second);
  rdm__sim_record_release(first);
  return result;
}
