#include "driver/sim/stream.h"

#include "driver/sim/kernel_guard.h"
#include "driver/sim/object.h"
#include "driver/sim/record.h"
#include "driver/sim/thread.h"
#include "driver/sim/worker_thread.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

enum { ILLEGAL_STATE = 401, CAPTURE_MERGE = 902 };

struct rdm__sim_stream {
  rdm__sim_object object;
  rdm__sim_device *device;
  /* What the stream's thread does. */
  void *(*thread)(void *stream);
  /* Guards all below. */
  pthread_mutex_t lock;
  pthread_cond_t arrived;
  pthread_cond_t completed_some;
  rdm__sim_work *first;
  rdm__sim_work **last;
  uint64_t submitted;
  uint64_t completed;
  /* The smallest number of completed items that a waiter waits for, UINT64_MAX for none. */
  uint64_t awaited;
  bool started;
  /* Set once the handle is gone: the thread ends after the last item. */
  bool closing;
  /* Where its work goes while it is captured; NULL, or one that has ended, where it runs. */
  rdm__sim_capture *capture;
  /* Whether it is the stream that the capture began in. */
  bool is_origin;
  /* What the thread waits for, so that a fault can wake it. */
  rdm__sim_record *waiting_for;
};

static void destroy_stream(rdm__sim_object *object) {
  rdm__sim_stream *stream = (rdm__sim_stream *)object;
  rdm__sim_capture_release(stream->capture);
  pthread_cond_destroy(&stream->completed_some);
  pthread_cond_destroy(&stream->arrived);
  pthread_mutex_destroy(&stream->lock);
  free(stream);
}

void *rdm__sim_stream_create(rdm__sim_device *device, void *(*thread)(void *stream)) {
  rdm__sim_stream *stream = calloc(1, sizeof *stream);
  if (stream == NULL) return NULL;
  rdm__sim_object_init(&stream->object, RDM__SIM_STREAM, rdm__sim_device_index(device), destroy_stream);
  stream->device = device;
  stream->thread = thread;
  stream->last = &stream->first;
  stream->awaited = UINT64_MAX;
  pthread_mutex_init(&stream->lock, NULL);
  pthread_cond_init(&stream->arrived, NULL);
  pthread_cond_init(&stream->completed_some, NULL);
  rdm__sim_device_add_stream(device, &stream->object);
  void *handle = rdm__sim_handle_add(&stream->object);
  if (handle == NULL) {
    rdm__sim_stream_leave_device(stream);
    rdm__sim_stream_release(stream);
  }
  return handle;
}

int rdm__sim_stream_close(const void *handle) {
  rdm__sim_stream *stream = rdm__sim_handle_remove(handle, RDM__SIM_STREAM);
  if (stream == NULL) return RDM_HIP_INVALID_HANDLE;
  pthread_mutex_lock(&stream->lock);
  stream->closing = true;
  bool started = stream->started;
  pthread_cond_signal(&stream->arrived);
  pthread_mutex_unlock(&stream->lock);
  if (!started) rdm__sim_stream_leave_device(stream);
  rdm__sim_stream_release(stream);
  return RDM_HIP_SUCCESS;
}

void rdm__sim_stream_leave_device(rdm__sim_stream *stream) {
  rdm__sim_device_remove_stream(stream->device, &stream->object);
}

rdm__sim_stream *rdm__sim_stream_of(rdm__sim_object *object) {
  return (rdm__sim_stream *)object;
}

rdm__sim_stream *rdm__sim_stream_get(const void *handle) {
  return rdm__sim_handle_get(handle, RDM__SIM_STREAM);
}

void rdm__sim_stream_retain(rdm__sim_stream *stream) {
  rdm__sim_object_retain(&stream->object);
}

void rdm__sim_stream_release(rdm__sim_stream *stream) {
  if (stream != NULL) rdm__sim_object_release(&stream->object);
}

rdm__sim_device *rdm__sim_stream_device(rdm__sim_stream *stream) {
  return stream->device;
}

int rdm__sim_stream_device_index(rdm__sim_stream *stream) {
  return stream == NULL ? -1 : stream->object.device;
}

int rdm__sim_stream_check_submit(rdm__sim_stream *stream, const void *handle) {
  if (handle == NULL) return RDM_HIP_NOT_SUPPORTED;
  if (stream == NULL) return RDM_HIP_INVALID_HANDLE;
  return stream->object.device == rdm__sim_this_thread()->current_device ? RDM_HIP_SUCCESS : RDM_HIP_INVALID_HANDLE;
}

/* ---- The queue ------------------------------------------------------------------------------------------------- */

/* Counts one item as completed. Called with the lock held. */
static void note_completed(rdm__sim_stream *stream) {
  stream->completed++;
  if (stream->completed >= stream->awaited) {
    stream->awaited = UINT64_MAX;
    pthread_cond_broadcast(&stream->completed_some);
  }
}

rdm__sim_work *rdm__sim_stream_next(rdm__sim_stream *stream, bool completed_one) {
  pthread_mutex_lock(&stream->lock);
  if (completed_one) note_completed(stream);
  while (stream->first == NULL ? !stream->closing : rdm__sim_device_is_held(stream->device)) {
    pthread_cond_wait(&stream->arrived, &stream->lock);
  }
  rdm__sim_work *work = stream->first;
  if (work != NULL) {
    stream->first = work->next;
    if (stream->first == NULL) stream->last = &stream->first;
  }
  pthread_mutex_unlock(&stream->lock);
  return work;
}

/* Starts the stream's thread, which holds a reference of its own. Called with the lock held. */
static bool start(rdm__sim_stream *stream) {
  if (stream->started) return true;
  rdm__sim_kernel_guard_install();
  rdm__sim_stream_retain(stream);
  stream->started = rdm__sim_worker_thread_start(stream->thread, stream);
  if (!stream->started) rdm__sim_stream_release(stream);
  return stream->started;
}

int rdm__sim_stream_submit(rdm__sim_stream *stream, rdm__sim_work *work) {
  work->next = NULL;
  pthread_mutex_lock(&stream->lock);
  int capture = rdm__sim_capture_status(stream->capture);
  if (capture != RDM_HIP_CAPTURE_NONE) {
    bool is_kept = work->repeats && rdm__sim_capture_add(stream->capture, work);
    pthread_mutex_unlock(&stream->lock);
    if (!is_kept) work->finish(work, RDM_HIP_SUCCESS);
    return capture == RDM_HIP_CAPTURE_ACTIVE ? RDM_HIP_SUCCESS : RDM_HIP_CAPTURE_INVALIDATED;
  }
  /* The fault is set before the queue is dropped, so an item is either refused here or dropped there. */
  int result = rdm__sim_device_fault(stream->device);
  if (result == RDM_HIP_SUCCESS && stream->closing) result = RDM_HIP_INVALID_HANDLE;
  if (result == RDM_HIP_SUCCESS && !start(stream)) result = RDM_HIP_OUT_OF_MEMORY;
  if (result == RDM_HIP_SUCCESS) {
    *stream->last = work;
    stream->last = &work->next;
    stream->submitted++;
    pthread_cond_signal(&stream->arrived);
  }
  pthread_mutex_unlock(&stream->lock);
  if (result != RDM_HIP_SUCCESS) work->finish(work, result);
  return result;
}

int rdm__sim_stream_query(rdm__sim_stream *stream) {
  pthread_mutex_lock(&stream->lock);
  bool pending = stream->completed < stream->submitted;
  pthread_mutex_unlock(&stream->lock);
  int fault = rdm__sim_device_fault(stream->device);
  if (fault != 0) return fault;
  return pending ? RDM_HIP_NOT_READY : RDM_HIP_SUCCESS;
}

int rdm__sim_stream_wait(rdm__sim_stream *stream) {
  pthread_mutex_lock(&stream->lock);
  uint64_t target = stream->submitted;
  while (stream->completed < target && rdm__sim_device_fault(stream->device) == 0) {
    if (target < stream->awaited) stream->awaited = target;
    pthread_cond_wait(&stream->completed_some, &stream->lock);
  }
  pthread_mutex_unlock(&stream->lock);
  return rdm__sim_device_fault(stream->device);
}

void rdm__sim_stream_wake(rdm__sim_stream *stream) {
  pthread_mutex_lock(&stream->lock);
  pthread_cond_signal(&stream->arrived);
  pthread_mutex_unlock(&stream->lock);
}

void rdm__sim_stream_drop_work(rdm__sim_stream *stream, int fault) {
  pthread_mutex_lock(&stream->lock);
  rdm__sim_work *work = stream->first;
  stream->first = NULL;
  stream->last = &stream->first;
  rdm__sim_record *waiting_for = stream->waiting_for;
  if (waiting_for != NULL) rdm__sim_record_retain(waiting_for);
  pthread_cond_broadcast(&stream->completed_some);
  pthread_cond_signal(&stream->arrived);
  pthread_mutex_unlock(&stream->lock);

  if (waiting_for != NULL) {
    rdm__sim_record_wake(waiting_for);
    rdm__sim_record_release(waiting_for);
  }
  while (work != NULL) {
    rdm__sim_work *next = work->next;
    work->finish(work, fault);
    work = next;
  }
}

static void set_waiting_for(rdm__sim_stream *stream, rdm__sim_record *record) {
  pthread_mutex_lock(&stream->lock);
  stream->waiting_for = record;
  pthread_mutex_unlock(&stream->lock);
}

void rdm__sim_stream_wait_record(rdm__sim_stream *stream, rdm__sim_record *record) {
  set_waiting_for(stream, record);
  rdm__sim_record_wait(record, stream->device);
  set_waiting_for(stream, NULL);
}

/* ---- Captures -------------------------------------------------------------------------------------------------- */

static void set_capture(rdm__sim_stream *stream, rdm__sim_capture *capture, bool is_origin) {
  rdm__sim_capture_release(stream->capture);
  stream->capture = capture;
  stream->is_origin = is_origin;
}

int rdm__sim_stream_begin_capture(rdm__sim_stream *stream, int mode) {
  if (mode < RDM_HIP_CAPTURE_MODE_GLOBAL || mode > RDM_HIP_CAPTURE_MODE_RELAXED) return RDM_HIP_INVALID_VALUE;
  int result = RDM_HIP_SUCCESS;
  pthread_mutex_lock(&stream->lock);
  if (rdm__sim_capture_status(stream->capture) != RDM_HIP_CAPTURE_NONE) {
    result = ILLEGAL_STATE;
  } else {
    rdm__sim_capture *capture = rdm__sim_capture_begin(mode, stream->object.device);
    if (capture == NULL) result = RDM_HIP_OUT_OF_MEMORY;
    if (capture != NULL) set_capture(stream, capture, true);
  }
  pthread_mutex_unlock(&stream->lock);
  return result;
}

int rdm__sim_stream_end_capture(rdm__sim_stream *stream, void **out_graph) {
  pthread_mutex_lock(&stream->lock);
  int result = ILLEGAL_STATE;
  if (rdm__sim_capture_status(stream->capture) != RDM_HIP_CAPTURE_NONE) {
    result = stream->is_origin ? rdm__sim_capture_end(stream->capture, out_graph) : RDM_HIP_CAPTURE_UNMATCHED;
  }
  pthread_mutex_unlock(&stream->lock);
  return result;
}

int rdm__sim_stream_capture_status(rdm__sim_stream *stream) {
  pthread_mutex_lock(&stream->lock);
  int status = rdm__sim_capture_status(stream->capture);
  pthread_mutex_unlock(&stream->lock);
  return status;
}

rdm__sim_capture *rdm__sim_stream_capture(rdm__sim_stream *stream) {
  pthread_mutex_lock(&stream->lock);
  rdm__sim_capture *capture = stream->capture;
  if (rdm__sim_capture_status(capture) == RDM_HIP_CAPTURE_NONE) capture = NULL;
  if (capture != NULL) rdm__sim_capture_retain(capture);
  pthread_mutex_unlock(&stream->lock);
  return capture;
}

int rdm__sim_stream_check_not_captured(rdm__sim_stream *stream) {
  rdm__sim_capture *capture = rdm__sim_stream_capture(stream);
  if (capture == NULL) return RDM_HIP_SUCCESS;
  int result = rdm__sim_capture_conflict(capture, RDM_HIP_CAPTURE_UNSUPPORTED);
  rdm__sim_capture_release(capture);
  return result;
}

int rdm__sim_stream_join_capture(rdm__sim_stream *stream, rdm__sim_capture *capture) {
  int result = RDM_HIP_SUCCESS;
  pthread_mutex_lock(&stream->lock);
  if (stream->capture != capture) {
    if (rdm__sim_capture_status(stream->capture) != RDM_HIP_CAPTURE_NONE) {
      result = rdm__sim_capture_conflict(capture, CAPTURE_MERGE);
    } else {
      rdm__sim_capture_retain(capture);
      set_capture(stream, capture, false);
    }
  }
  pthread_mutex_unlock(&stream->lock);
  return result;
}
