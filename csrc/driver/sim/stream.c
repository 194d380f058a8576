#include "driver/sim/stream.h"

#include "driver/sim/call.h"
#include "driver/sim/callback.h"
#include "driver/sim/kernel_guard.h"
#include "driver/sim/object.h"
#include "driver/sim/record.h"
#include "driver/sim/worker_thread.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

struct rdm__sim_stream {
  rdm__sim_object object;
  rdm__sim_device *device;
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
  /* What the thread waits for, so that a fault can wake it. */
  rdm__sim_record *waiting_for;
};

static void destroy_stream(rdm__sim_object *object) {
  rdm__sim_stream *stream = (rdm__sim_stream *)object;
  pthread_cond_destroy(&stream->completed_some);
  pthread_cond_destroy(&stream->arrived);
  pthread_mutex_destroy(&stream->lock);
  free(stream);
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

static void *run_stream(void *argument) {
  rdm__sim_stream *stream = argument;
  rdm__sim_kernel_guard_enter_thread();
  pthread_mutex_lock(&stream->lock);
  for (;;) {
    while (stream->first == NULL ? !stream->closing : rdm__sim_device_is_held(stream->device)) {
      pthread_cond_wait(&stream->arrived, &stream->lock);
    }
    rdm__sim_work *work = stream->first;
    if (work == NULL) break;
    stream->first = work->next;
    if (stream->first == NULL) stream->last = &stream->first;
    pthread_mutex_unlock(&stream->lock);

    int fault = rdm__sim_device_fault(stream->device);
    if (fault == 0) fault = work->run(work, stream);
    if (fault != 0) rdm__sim_device_set_fault(stream->device, fault);
    work->finish(work, rdm__sim_device_fault(stream->device));

    pthread_mutex_lock(&stream->lock);
    note_completed(stream);
  }
  pthread_mutex_unlock(&stream->lock);
  rdm__sim_kernel_guard_leave_thread();
  rdm__sim_device_remove_stream(stream->device, stream);
  rdm__sim_stream_release(stream);
  return NULL;
}

/* Starts the stream's thread, which holds a reference of its own. Called with the lock held. */
static bool start(rdm__sim_stream *stream) {
  if (stream->started) return true;
  rdm__sim_kernel_guard_install();
  rdm__sim_stream_retain(stream);
  stream->started = rdm__sim_worker_thread_start(run_stream, stream);
  if (!stream->started) rdm__sim_stream_release(stream);
  return stream->started;
}

int rdm__sim_stream_submit(rdm__sim_stream *stream, rdm__sim_work *work) {
  work->next = NULL;
  pthread_mutex_lock(&stream->lock);
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

/* ---- Entry points ---------------------------------------------------------------------------------------------- */

static int create(void **out_stream, unsigned flags) {
  if (out_stream == NULL) return RDM_HIP_INVALID_VALUE;
  if ((flags & ~(unsigned)RDM_HIP_STREAM_NON_BLOCKING) != 0) return RDM_HIP_INVALID_VALUE;
  if (flags != RDM_HIP_STREAM_NON_BLOCKING) return RDM_HIP_NOT_SUPPORTED;
  rdm__sim_device *device;
  int result = rdm__sim_device_use_current(&device);
  if (result != RDM_HIP_SUCCESS) return result;
  rdm__sim_stream *stream = calloc(1, sizeof *stream);
  if (stream == NULL) return RDM_HIP_OUT_OF_MEMORY;
  rdm__sim_object_init(&stream->object, RDM__SIM_STREAM, rdm__sim_device_index(device), destroy_stream);
  stream->device = device;
  stream->last = &stream->first;
  stream->awaited = UINT64_MAX;
  pthread_mutex_init(&stream->lock, NULL);
  pthread_cond_init(&stream->arrived, NULL);
  pthread_cond_init(&stream->completed_some, NULL);
  rdm__sim_device_add_stream(device, stream);
  *out_stream = rdm__sim_handle_add(&stream->object);
  if (*out_stream != NULL) return RDM_HIP_SUCCESS;
  rdm__sim_device_remove_stream(device, stream);
  rdm__sim_stream_release(stream);
  return RDM_HIP_OUT_OF_MEMORY;
}

int rdm__sim_stream_create(void **stream, unsigned flags) {
  rdm__sim_call_scope scope;
  void *handle = NULL;
  int current = rdm__sim_this_thread()->current_device;
  int result = rdm__sim_call_begin(&scope, RDM__CALL_stream_create, NULL, current);
  if (result == RDM_HIP_SUCCESS) result = create(stream, flags);
  if (result == RDM_HIP_SUCCESS) handle = *stream;
  return rdm__sim_call_end_created(&scope, result, handle);
}

/* Ends the handle; the stream itself goes once its work is done. */
static int destroy(const void *handle) {
  rdm__sim_stream *stream = rdm__sim_handle_remove(handle, RDM__SIM_STREAM);
  if (stream == NULL) return RDM_HIP_INVALID_HANDLE;
  pthread_mutex_lock(&stream->lock);
  stream->closing = true;
  bool started = stream->started;
  pthread_cond_signal(&stream->arrived);
  pthread_mutex_unlock(&stream->lock);
  if (!started) rdm__sim_device_remove_stream(stream->device, stream);
  rdm__sim_stream_release(stream);
  return RDM_HIP_SUCCESS;
}

int rdm__sim_stream_destroy(void *stream) {
  rdm__sim_call_scope scope;
  rdm__sim_stream *found = rdm__sim_stream_get(stream);
  int result = rdm__sim_call_begin(&scope, RDM__CALL_stream_destroy, stream, rdm__sim_stream_device_index(found));
  rdm__sim_stream_release(found);
  if (result == RDM_HIP_SUCCESS) result = destroy(stream);
  return rdm__sim_call_end(&scope, result);
}

/* Queries and waits take any current device, but no null and no dead stream. */
static int check_wait(const rdm__sim_stream *stream, const void *handle) {
  if (handle == NULL) return RDM_HIP_NOT_SUPPORTED;
  return stream == NULL ? RDM_HIP_INVALID_HANDLE : RDM_HIP_SUCCESS;
}

int rdm__sim_stream_query(void *stream) {
  rdm__sim_call_scope scope;
  rdm__sim_stream *found = rdm__sim_stream_get(stream);
  int result = rdm__sim_call_begin(&scope, RDM__CALL_stream_query, stream, rdm__sim_stream_device_index(found));
  if (result == RDM_HIP_SUCCESS) result = check_wait(found, stream);
  if (result == RDM_HIP_SUCCESS) {
    pthread_mutex_lock(&found->lock);
    bool pending = found->completed < found->submitted;
    pthread_mutex_unlock(&found->lock);
    result = rdm__sim_device_fault(found->device);
    if (result == RDM_HIP_SUCCESS && pending) result = RDM_HIP_NOT_READY;
  }
  rdm__sim_stream_release(found);
  return rdm__sim_call_end(&scope, result);
}

int rdm__sim_stream_synchronize(void *stream) {
  rdm__sim_call_scope scope;
  rdm__sim_stream *found = rdm__sim_stream_get(stream);
  int result = rdm__sim_call_begin(&scope, RDM__CALL_stream_synchronize, stream, rdm__sim_stream_device_index(found));
  if (result == RDM_HIP_SUCCESS) result = check_wait(found, stream);
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_stream_wait(found);
  rdm__sim_stream_release(found);
  return rdm__sim_call_end(&scope, result);
}

typedef struct callback_work {
  rdm__sim_work work;
  rdm__host_function function;
  void *user_data;
} callback_work;

static int run_callback(rdm__sim_work *work, rdm__sim_stream *stream) {
  callback_work *callback = (callback_work *)work;
  rdm__sim_callback_run(rdm__sim_device_callbacks(stream->device), callback->function, callback->user_data);
  return RDM_HIP_SUCCESS;
}

static void finish_callback(rdm__sim_work *work, int fault) {
  (void)fault;
  free(work);
}

static int submit_callback(rdm__sim_stream *stream, rdm__host_function function, void *user_data) {
  if (function == NULL) return RDM_HIP_INVALID_VALUE;
  if (!rdm__sim_callback_queue_start(rdm__sim_device_callbacks(stream->device))) return RDM_HIP_OUT_OF_MEMORY;
  callback_work *callback = calloc(1, sizeof *callback);
  if (callback == NULL) return RDM_HIP_OUT_OF_MEMORY;
  callback->work.run = run_callback;
  callback->work.finish = finish_callback;
  callback->function = function;
  callback->user_data = user_data;
  return rdm__sim_stream_submit(stream, &callback->work);
}

int rdm__sim_launch_host_function(void *stream, rdm__host_function function, void *user_data) {
  rdm__sim_call_scope scope;
  rdm__sim_stream *found = rdm__sim_stream_get(stream);
  int result = rdm__sim_call_begin(&scope, RDM__CALL_launch_host_function, stream, rdm__sim_stream_device_index(found));
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_stream_check_submit(found, stream);
  if (result == RDM_HIP_SUCCESS) result = submit_callback(found, function, user_data);
  rdm__sim_stream_release(found);
  return rdm__sim_call_end(&scope, result);
}
