/* Events: of the device current at their creation, recorded on a stream of that device alone. */
#include "driver/sim/call.h"
#include "driver/sim/device.h"
#include "driver/sim/object.h"
#include "driver/sim/record.h"
#include "driver/sim/stream.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct sim_event {
  rdm__sim_object object;
  unsigned flags;
  /* Guards the latest record; NULL before the first. */
  pthread_mutex_t lock;
  rdm__sim_record *latest;
} sim_event;

/* Work that names a record: to reach it, or to wait for it. */
typedef struct record_work {
  rdm__sim_work work;
  rdm__sim_record *record;
} record_work;

static void destroy_event(rdm__sim_object *object) {
  sim_event *event = (sim_event *)object;
  rdm__sim_record_release(event->latest);
  pthread_mutex_destroy(&event->lock);
  free(event);
}

static sim_event *get_event(const void *handle) {
  return rdm__sim_handle_get(handle, RDM__SIM_EVENT);
}

static void release_event(sim_event *event) {
  if (event != NULL) rdm__sim_object_release(&event->object);
}

static int device_index(const sim_event *event) {
  return event == NULL ? -1 : event->object.device;
}

/* The sticky fault of the event's device, 0 where there is none. */
static int device_fault(const sim_event *event) {
  return rdm__sim_device_fault(rdm__sim_device_at(event->object.device));
}

/* The latest record with one more reference, NULL before the first. */
static rdm__sim_record *latest_record(sim_event *event) {
  pthread_mutex_lock(&event->lock);
  rdm__sim_record *record = event->latest;
  if (record != NULL) rdm__sim_record_retain(record);
  pthread_mutex_unlock(&event->lock);
  return record;
}

static int create(void **out_event, unsigned flags) {
  if (out_event == NULL) return RDM_HIP_INVALID_VALUE;
  if ((flags & ~(unsigned)(RDM_HIP_EVENT_BLOCKING_SYNC | RDM_HIP_EVENT_DISABLE_TIMING)) != 0) {
    return RDM_HIP_INVALID_VALUE;
  }
  rdm__sim_device *device;
  int result = rdm__sim_device_use_current(&device);
  if (result != RDM_HIP_SUCCESS) return result;
  sim_event *event = calloc(1, sizeof *event);
  if (event == NULL) return RDM_HIP_OUT_OF_MEMORY;
  rdm__sim_object_init(&event->object, RDM__SIM_EVENT, rdm__sim_device_index(device), destroy_event);
  event->flags = flags;
  pthread_mutex_init(&event->lock, NULL);
  void *handle = rdm__sim_handle_add(&event->object);
  if (handle == NULL) {
    release_event(event);
    return RDM_HIP_OUT_OF_MEMORY;
  }
  *out_event = handle;
  return RDM_HIP_SUCCESS;
}

int rdm__sim_event_create(void **event, unsigned flags) {
  rdm__sim_call_scope scope;
  void *handle = NULL;
  int current = rdm__sim_this_thread()->current_device;
  int result = rdm__sim_call_begin(&scope, RDM__CALL_event_create, NULL, current);
  if (result == RDM_HIP_SUCCESS) result = create(event, flags);
  if (result == RDM_HIP_SUCCESS) handle = *event;
  return rdm__sim_call_end_created(&scope, result, handle);
}

int rdm__sim_event_destroy(void *event) {
  rdm__sim_call_scope scope;
  sim_event *found = get_event(event);
  int result = rdm__sim_call_begin(&scope, RDM__CALL_event_destroy, event, device_index(found));
  release_event(found);
  if (result == RDM_HIP_SUCCESS) {
    sim_event *removed = rdm__sim_handle_remove(event, RDM__SIM_EVENT);
    if (removed == NULL) result = RDM_HIP_INVALID_HANDLE;
    release_event(removed);
  }
  return rdm__sim_call_end(&scope, result);
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

static int record(sim_event *event, rdm__sim_stream *stream) {
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
  pthread_mutex_lock(&event->lock);
  int result = rdm__sim_stream_submit(stream, &work->work);
  if (result == RDM_HIP_SUCCESS) {
    replaced = event->latest;
    event->latest = made;
  }
  pthread_mutex_unlock(&event->lock);
  rdm__sim_record_release(replaced);
  return result;
}

int rdm__sim_event_record(void *event, void *stream) {
  rdm__sim_call_scope scope;
  sim_event *found = get_event(event);
  rdm__sim_stream *found_stream = rdm__sim_stream_get(stream);
  int result = rdm__sim_call_begin(&scope, RDM__CALL_event_record, event, device_index(found));
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_stream_check_submit(found_stream, stream);
  if (result == RDM_HIP_SUCCESS) result = record(found, found_stream);
  rdm__sim_stream_release(found_stream);
  release_event(found);
  return rdm__sim_call_end(&scope, result);
}

static int wait_event(rdm__sim_stream *stream, const void *stream_handle, sim_event *event, unsigned flags) {
  if (stream_handle == NULL) return RDM_HIP_NOT_SUPPORTED;
  if (stream == NULL || event == NULL) return RDM_HIP_INVALID_HANDLE;
  if (flags != 0) return RDM_HIP_INVALID_VALUE;
  int fault = device_fault(event);
  if (fault != 0) return fault;
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

int rdm__sim_stream_wait_event(void *stream, void *event, unsigned flags) {
  rdm__sim_call_scope scope;
  rdm__sim_stream *found_stream = rdm__sim_stream_get(stream);
  sim_event *found = get_event(event);
  int result =
      rdm__sim_call_begin(&scope, RDM__CALL_stream_wait_event, stream, rdm__sim_stream_device_index(found_stream));
  if (result == RDM_HIP_SUCCESS) result = wait_event(found_stream, stream, found, flags);
  release_event(found);
  rdm__sim_stream_release(found_stream);
  return rdm__sim_call_end(&scope, result);
}

/* ---- On the host ----------------------------------------------------------------------------------------------- */

/* An event that was never recorded counts as complete, as in HIP and CUDA. */
static int query(sim_event *event) {
  if (event == NULL) return RDM_HIP_INVALID_HANDLE;
  rdm__sim_record *latest = latest_record(event);
  bool over = latest == NULL || rdm__sim_record_is_over(latest);
  rdm__sim_record_release(latest);
  int fault = device_fault(event);
  if (fault != 0) return fault;
  return over ? RDM_HIP_SUCCESS : RDM_HIP_NOT_READY;
}

int rdm__sim_event_query(void *event) {
  rdm__sim_call_scope scope;
  sim_event *found = get_event(event);
  int result = rdm__sim_call_begin(&scope, RDM__CALL_event_query, event, device_index(found));
  if (result == RDM_HIP_SUCCESS) result = query(found);
  release_event(found);
  return rdm__sim_call_end(&scope, result);
}

static int synchronize(sim_event *event) {
  if (event == NULL) return RDM_HIP_INVALID_HANDLE;
  rdm__sim_record *latest = latest_record(event);
  if (latest != NULL) rdm__sim_record_wait(latest, rdm__sim_device_at(event->object.device));
  rdm__sim_record_release(latest);
  return device_fault(event);
}

int rdm__sim_event_synchronize(void *event) {
  rdm__sim_call_scope scope;
  sim_event *found = get_event(event);
  int result = rdm__sim_call_begin(&scope, RDM__CALL_event_synchronize, event, device_index(found));
  if (result == RDM_HIP_SUCCESS) result = synchronize(found);
  release_event(found);
  return rdm__sim_call_end(&scope, result);
}

static int elapsed(float *milliseconds, sim_event *start, sim_event *end) {
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

int rdm__sim_event_elapsed_time(float *milliseconds, void *start, void *end) {
  rdm__sim_call_scope scope;
  sim_event *found_start = get_event(start);
  sim_event *found_end = get_event(end);
  int result = rdm__sim_call_begin(&scope, RDM__CALL_event_elapsed_time, start, device_index(found_start));
  if (result == RDM_HIP_SUCCESS) result = elapsed(milliseconds, found_start, found_end);
  release_event(found_end);
  release_event(found_start);
  return rdm__sim_call_end(&scope, result);
}
