/* Committing without waiting, and waiting for all that a stream or a device was given. */
#include "completion.h"
#include "event_pool.h"
#include "runtime.h"
#include "status.h"
#include "stream.h"
#include "visit.h"

/* The stream's queue, which stays its own while the stream is pinned; null before its first submission. */
static rdm__queue *queue_of(rdm__stream *stream) {
  return atomic_load_explicit(&stream->queue, memory_order_acquire);
}

rdm_status rdm_stream_finalize(rdm_stream handle) {
  rdm__stream *stream = NULL;
  rdm_status status = rdm__stream_pin(handle, &stream);
  if (status != RDM_OK) return status;
  rdm__queue *queue = queue_of(stream);
  if (queue != NULL) {
    rdm__mutex_lock(&queue->lock);
    rdm__completions_commit(queue, true);
    rdm__mutex_unlock(&queue->lock);
  }
  status = rdm__device_check(stream->device);
  rdm__stream_unpin(stream);
  return status;
}

/* Commits, and records a driver event behind everything submitted so far. */
static rdm_status mark(rdm__queue *queue, const rdm__event *event, const rdm__wait_limit *limit,
                       uint64_t *out_batch_count) {
  rdm__device *device = queue->device;
  rdm_status status =
      rdm__wait_for_lock(&queue->lock, device, limit, "waiting for another thread's submission to a stream");
  if (status != RDM_OK) return status;
  status = rdm__device_bind(device);
  if (status == RDM_OK && rdm__stream_is_capturing(device, queue->native)) {
    status = rdm__fail(RDM_ERROR_CAPTURING, "stream %d of device %d is being captured; what is captured does not run",
                       queue->stream_index, device->index);
  }
  if (status == RDM_OK) {
    rdm__completions_commit(queue, true);
    *out_batch_count = queue->completions.batches_committed;
    status = rdm__runtime_check();
  }
  if (status == RDM_OK) {
    int error = device->driver->event_record(event->native, queue->native);
    if (error != RDM_HIP_SUCCESS) {
      status = rdm__device_call_failed(device, RDM__CALL_event_record, error, "synchronizing stream %d",
                                       queue->stream_index);
    }
  }
  rdm__mutex_unlock(&queue->lock);
  return status;
}

static rdm_status synchronize_queue(rdm__queue *queue, const rdm__wait_limit *limit) {
  rdm__device *device = queue->device;
  rdm__event *event = NULL;
  uint64_t batch_count = 0;
  rdm_status status = rdm__event_pool_acquire(device, RDM_EVENT_DEFAULT, &event);
  if (status != RDM_OK) return status;
  status = mark(queue, event, limit, &batch_count);
  if (status == RDM_OK) status = rdm__wait_native_event(device, event->native, limit, "waiting for a stream");
  /* After a timeout the event is still to come; its next user records it anew. */
  rdm__event_pool_release(event);
  if (status == RDM_OK) status = rdm__completions_wait(queue, batch_count, limit);
  return status;
}

static rdm_status synchronize(rdm__stream *stream, const rdm__wait_limit *limit) {
  rdm_status status = rdm__device_check(stream->device);
  rdm__queue *queue = queue_of(stream);
  if (status == RDM_OK && queue != NULL) status = synchronize_queue(queue, limit);
  if (status == RDM_ERROR_DEVICE_FAULT && queue != NULL && rdm__mutex_try_lock(&queue->lock)) {
    /* So that the handlers of an open batch still learn of it. Not waited for: who has the lock may be stuck in the
     * driver. */
    rdm__completions_commit(queue, false);
    rdm__mutex_unlock(&queue->lock);
  }
  return status == RDM_OK ? rdm__error_slot_report(&stream->error) : status;
}

static rdm_status check_may_wait(const char *function) {
  if (!rdm__in_completion_handler()) return RDM_OK;
  return rdm__fail(RDM_ERROR_IN_CALLBACK, "%s was called from a completion handler", function);
}

rdm_status rdm_stream_synchronize(rdm_stream handle, uint64_t timeout_ns) {
  rdm_status status = check_may_wait("rdm_stream_synchronize");
  if (status != RDM_OK) return status;
  rdm__stream *stream = NULL;
  status = rdm__stream_pin(handle, &stream);
  if (status != RDM_OK) return status;
  rdm__wait_limit limit = rdm__wait_limit_from(timeout_ns);
  status = synchronize(stream, &limit);
  rdm__stream_unpin(stream);
  return status;
}

rdm_status rdm_device_synchronize(rdm_device handle, uint64_t timeout_ns) {
  rdm_status status = check_may_wait("rdm_device_synchronize");
  rdm__device *device = NULL;
  if (status == RDM_OK) status = rdm__device_from_handle(handle, &device);
  if (status != RDM_OK) return status;
  rdm__stream **streams = NULL;
  size_t count = 0;
  status = rdm__streams_pin_all(device, &streams, &count);
  if (status != RDM_OK) return status;
  rdm__wait_limit limit = rdm__wait_limit_from(timeout_ns);
  rdm_error first = {.status = RDM_OK};
  for (size_t i = 0; i < count; i++) {
    /* Every stream is waited for, whatever came of the one before; the first error is the call's. */
    rdm_status one = synchronize(streams[i], &limit);
    if (one != RDM_OK && first.status == RDM_OK) first = *rdm__thread_error();
    rdm__stream_unpin(streams[i]);
  }
  rdm__streams_free(streams);
  return first.status == RDM_OK ? RDM_OK : rdm__fail_with(&first);
}
