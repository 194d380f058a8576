#include "stream.h"

#include "completion.h"
#include "device_map.h"
#include "encoder.h"
#include "runtime.h"
#include "status.h"

#include <stdio.h>
#include <stdlib.h>

static bool retire(rdm__object *object);
static rdm__handle_table streams = RDM__HANDLE_TABLE(RDM__HANDLE_STREAM, rdm__stream, retire);

/*
 * With streams_lock held: the handle of the open stream with this index. Pinned while its word is read, since another
 * thread may be dropping the last pin, and the word is then that of a handle yet to come.
 */
static bool find_handle(rdm__device *device, int32_t index, rdm_stream *out_handle, rdm__stream **out_pinned) {
  rdm__stream *stream = rdm__stream_table_find(&device->streams, index);
  if (stream == NULL || !rdm__object_pin(&stream->object)) return false;
  out_handle->bits = rdm__handle_of(&streams, &stream->object);
  *out_pinned = stream;
  return true;
}

/* The last pin of an ended stream is gone: it leaves the table, and its encoder and its use of a queue end with it. */
static bool retire(rdm__object *object) {
  rdm__stream *stream = (rdm__stream *)object;
  rdm__device *device = stream->device;
  rdm__mutex_lock(&device->streams_lock);
  rdm__stream_table_remove(&device->streams, stream);
  rdm__encoder *closed = NULL;
  if (stream->encoder != NULL) rdm__encoder_close(stream->encoder, &closed);
  stream->encoder = NULL;
  rdm__mutex_unlock(&device->streams_lock);
  rdm__encoders_finish_closing(closed);
  rdm__queue *queue = atomic_exchange_explicit(&stream->queue, NULL, memory_order_acq_rel);
  if (queue != NULL) rdm__completions_end_stream(queue);
  rdm__error_slot_abandon(&stream->error);
  return true;
}

/* A stream that is not in the table yet. */
static rdm__stream *make(rdm__device *device, bool is_registered) {
  rdm__stream *stream = (rdm__stream *)rdm__handle_allocate(&streams);
  if (stream == NULL) return NULL;
  /* The lock outlives the streams that use this memory one after the other. */
  if (stream->creation_lock.rank == 0) rdm__mutex_init(&stream->creation_lock, RDM__RANK_STREAM);
  stream->device = device;
  stream->is_registered = is_registered;
  stream->encoder = NULL;
  atomic_store_explicit(&stream->references, 1, memory_order_relaxed);
  return stream;
}

rdm_status rdm__stream_pin(rdm_stream handle, rdm__stream **out_stream) {
  rdm_status status = rdm__runtime_check();
  if (status != RDM_OK) return status;
  rdm__object *object = NULL;
  status = rdm__handle_pin(&streams, handle.bits, &object);
  if (status == RDM_OK) *out_stream = (rdm__stream *)object;
  return status;
}

void rdm__stream_unpin(rdm__stream *stream) {
  rdm__object_unpin(&streams, &stream->object);
}

rdm_status rdm__streams_pin_all(rdm__device *device, rdm__stream ***out_streams, size_t *out_count) {
  rdm__stream **pinned = NULL;
  size_t capacity = 0;
  for (;;) {
    size_t count = 0;
    size_t open = 0;
    rdm__mutex_lock(&device->streams_lock);
    rdm__stream *stream = NULL;
    while ((stream = rdm__stream_table_next(&device->streams, stream)) != NULL) {
      open++;
      if (count < capacity && rdm__object_pin(&stream->object)) pinned[count++] = stream;
    }
    rdm__mutex_unlock(&device->streams_lock);
    if (open <= capacity) {
      *out_streams = pinned;
      *out_count = count;
      return RDM_OK;
    }
    /* More streams than there was room for: the array is made anew, outside the lock. */
    while (count > 0) rdm__stream_unpin(pinned[--count]);
    free(pinned);
    capacity = open + 16;
    pinned = calloc(capacity, sizeof *pinned);
    if (pinned == NULL) return rdm__fail(RDM_ERROR_OUT_OF_MEMORY, "no memory for a list of %zu streams", open);
  }
}

void rdm__streams_free(rdm__stream **streams) {
  free(streams);
}

static rdm_status add_reference(rdm__stream *stream) {
  uint32_t count = atomic_load_explicit(&stream->references, memory_order_relaxed);
  while (count != 0 && count != UINT32_MAX) {
    if (atomic_compare_exchange_weak_explicit(&stream->references, &count, count + 1, memory_order_relaxed,
                                              memory_order_relaxed)) {
      return RDM_OK;
    }
  }
  return rdm__fail(count == 0 ? RDM_ERROR_STALE_HANDLE : RDM_ERROR_RESOURCE,
                   count == 0 ? "the stream is being released by another thread" : "the stream has 2^32 references");
}

/* Drops a reference, and ends the stream with the last. False where there was none left to drop. */
static bool drop_reference(rdm__stream *stream) {
  uint32_t count = atomic_load_explicit(&stream->references, memory_order_relaxed);
  while (count != 0) {
    if (atomic_compare_exchange_weak_explicit(&stream->references, &count, count - 1, memory_order_acq_rel,
                                              memory_order_relaxed)) {
      if (count == 1) rdm__object_close(&streams, &stream->object);
      return true;
    }
  }
  return false;
}

rdm_status rdm__stream_retain(rdm_stream handle) {
  rdm__stream *stream = NULL;
  rdm_status status = rdm__stream_pin(handle, &stream);
  if (status != RDM_OK) return status;
  if (!stream->is_registered) status = add_reference(stream);
  rdm__stream_unpin(stream);
  return status;
}

void rdm__stream_release(rdm_stream handle) {
  rdm__object *object = NULL;
  /* One that has ended by another way is no failure of the caller's, who did not ask for this release. */
  if (rdm__runtime_is_over() || rdm__handle_try_pin(&streams, handle.bits, &object) != RDM_OK) return;
  rdm__stream *stream = (rdm__stream *)object;
  if (!stream->is_registered) drop_reference(stream);
  rdm__stream_unpin(stream);
}

void rdm__stream_record(rdm_stream handle, const rdm_error *error) {
  rdm__object *object = NULL;
  if (rdm__handle_try_pin(&streams, handle.bits, &object) != RDM_OK) {
    rdm__error_slot_record(rdm__unattributed_errors(), error);
    return;
  }
  rdm__stream *stream = (rdm__stream *)object;
  rdm__error_slot_record(&stream->error, error);
  rdm__stream_unpin(stream);
}

rdm_status rdm_stream_create(int32_t device_index, rdm_stream *out_stream) {
  if (out_stream == NULL) return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "out_stream is null");
  rdm__device *device = NULL;
  rdm_status status = rdm__device_map_get(device_index, &device);
  if (status == RDM_OK) status = rdm__device_check(device);
  if (status != RDM_OK) return status;
  rdm__stream *stream = make(device, false);
  if (stream == NULL) return RDM_ERROR_RESOURCE;
  rdm__mutex_lock(&device->streams_lock);
  do {
    stream->index = device->next_stream_index;
    device->next_stream_index = stream->index == INT32_MAX ? 0 : stream->index + 1;
  } while (rdm__stream_table_find(&device->streams, stream->index) != NULL);
  rdm__stream_table_insert(&device->streams, stream);
  out_stream->bits = rdm__handle_open(&streams, &stream->object);
  rdm__mutex_unlock(&device->streams_lock);
  return RDM_OK;
}

/* Made outside the lock, and dropped where another thread registered the same index first. */
static rdm_status register_stream(rdm__device *device, int32_t stream_index, rdm_stream *out_stream) {
  rdm__stream *made = make(device, true);
  if (made == NULL) return RDM_ERROR_RESOURCE;
  made->index = stream_index;
  rdm__stream *found = NULL;
  rdm__mutex_lock(&device->streams_lock);
  if (!find_handle(device, stream_index, out_stream, &found)) {
    rdm__stream_table_insert(&device->streams, made);
    out_stream->bits = rdm__handle_open(&streams, &made->object);
  }
  rdm__mutex_unlock(&device->streams_lock);
  if (found != NULL) {
    rdm__handle_discard(&streams, &made->object);
    rdm__stream_unpin(found);
  }
  return RDM_OK;
}

rdm_status rdm_stream_get(int32_t device_index, int32_t stream_index, rdm_stream *out_stream) {
  if (out_stream == NULL) return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "out_stream is null");
  if (stream_index < 0) {
    return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "stream_index is %d; it is 0 or more", stream_index);
  }
  rdm__device *device = NULL;
  rdm_status status = rdm__device_map_get(device_index, &device);
  if (status != RDM_OK) return status;
  rdm__stream *found = NULL;
  rdm__mutex_lock(&device->streams_lock);
  find_handle(device, stream_index, out_stream, &found);
  rdm__mutex_unlock(&device->streams_lock);
  if (found == NULL) return register_stream(device, stream_index, out_stream);
  rdm__stream_unpin(found);
  return RDM_OK;
}

rdm_status rdm_stream_retain(rdm_stream stream) {
  return rdm__stream_retain(stream);
}

rdm_status rdm_stream_release(rdm_stream handle) {
  if (rdm__runtime_is_over()) return rdm__runtime_release_check();
  rdm__stream *stream = NULL;
  rdm_status status = rdm__stream_pin(handle, &stream);
  if (status != RDM_OK) return rdm__runtime_release_status(status);
  if (stream->is_registered) {
    status = rdm__fail(RDM_ERROR_INVALID_ARGUMENT,
                       "stream %d of device %d was registered with rdm_stream_get, which gives a borrowed handle",
                       stream->index, stream->device->index);
  } else if (!drop_reference(stream)) {
    status = rdm__fail(RDM_ERROR_STALE_HANDLE, "the stream handle %#llx was released by another thread",
                       (unsigned long long)handle.bits);
  }
  rdm__stream_unpin(stream);
  return status;
}

rdm_status rdm_stream_get_info(rdm_stream handle, rdm_stream_info *out_info) {
  rdm__stream *stream = NULL;
  rdm_status status = rdm__stream_pin(handle, &stream);
  if (status != RDM_OK) return status;
  rdm_stream_info info = {
      .struct_size = sizeof info, .device_index = stream->device->index, .stream_index = stream->index};
  rdm__stream_unpin(stream);
  return rdm__struct_copy_out("out_info", &info, sizeof info, sizeof info, out_info);
}

rdm_status rdm_stream_record_error(rdm_stream handle, rdm_status status_to_record, const char *message) {
  rdm_status status = rdm__runtime_check();
  if (status != RDM_OK) return status;
  if (status_to_record == RDM_OK || status_to_record == RDM_NOT_READY) {
    return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "status is %s, which is no error", rdm_status_name(status_to_record));
  }
  rdm_error error = {.struct_size = sizeof error, .status = status_to_record, .device_index = -1};
  bool has_text = message != NULL && message[0] != '\0';
  snprintf(error.message, sizeof error.message, "%s", has_text ? message : rdm_status_description(status_to_record));
  rdm__object *object = NULL;
  status = rdm__handle_try_pin(&streams, handle.bits, &object);
  if (status == RDM_ERROR_STALE_HANDLE) {
    /* No failure of the caller's, whose last error stays as it was. */
    rdm__error_slot_record(rdm__unattributed_errors(), &error);
    return RDM_OK;
  }
  /* Once more, for the message. */
  if (status != RDM_OK) status = rdm__handle_pin(&streams, handle.bits, &object);
  if (status != RDM_OK) return status;
  rdm__stream *stream = (rdm__stream *)object;
  error.device_index = stream->device->index;
  rdm__error_slot_record(&stream->error, &error);
  rdm__stream_unpin(stream);
  return RDM_OK;
}

rdm_status rdm_stream_take_error(rdm_stream handle, rdm_error *out_error) {
  rdm__stream *stream = NULL;
  rdm_status status = rdm__stream_pin(handle, &stream);
  if (status != RDM_OK) return status;
  status = rdm__error_slot_take(&stream->error, out_error);
  rdm__stream_unpin(stream);
  return status;
}

void rdm__streams_count(rdm__handle_totals *out_totals) {
  rdm__handle_count(&streams, out_totals);
}
