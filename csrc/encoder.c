#include "encoder.h"

#include "completion.h"
#include "device_map.h"
#include "runtime.h"
#include "status.h"

static rdm__handle_table encoders = RDM__HANDLE_TABLE(RDM__HANDLE_ENCODER, rdm__encoder, NULL);

rdm_status rdm__encoder_pin(rdm_encoder handle, rdm__encoder **out_encoder) {
  rdm_status status = rdm__runtime_check();
  if (status != RDM_OK) return status;
  rdm__object *object = NULL;
  status = rdm__handle_pin(&encoders, handle.bits, &object);
  if (status != RDM_OK) return status;
  rdm__encoder *encoder = (rdm__encoder *)object;
  status = rdm__device_check(encoder->device);
  if (status == RDM_OK) {
    *out_encoder = encoder;
  } else {
    rdm__encoder_unpin(encoder);
  }
  return status;
}

void rdm__encoder_unpin(rdm__encoder *encoder) {
  rdm__object_unpin(&encoders, &encoder->object);
}

void rdm__encoder_close(rdm__encoder *encoder) {
  rdm__queue *queue = encoder->queue;
  /* Closed with the lock held, so that no handler joins a batch that nobody will commit any more. */
  rdm__mutex_lock(&queue->lock);
  rdm__completions_commit(queue, false);
  rdm__object_close(&encoders, &encoder->object);
  rdm__mutex_unlock(&queue->lock);
}

rdm_status rdm__encoder_record_failure(const rdm__encoder *encoder) {
  rdm__stream_record(encoder->stream, rdm__thread_error());
  return rdm__thread_error()->status;
}

/* With the stream's creation_lock held and no encoder there. */
static rdm_status make(rdm__stream *stream, rdm_stream handle) {
  rdm__device *device = stream->device;
  rdm__queue *queue = atomic_load_explicit(&stream->queue, memory_order_relaxed);
  if (queue == NULL) {
    rdm_status status = rdm__queue_acquire(device, stream->index, &queue);
    if (status != RDM_OK) return status;
    atomic_store_explicit(&stream->queue, queue, memory_order_release);
  }
  rdm__encoder *encoder = (rdm__encoder *)rdm__handle_allocate(&encoders);
  if (encoder == NULL) return RDM_ERROR_RESOURCE;
  encoder->device = device;
  encoder->queue = queue;
  encoder->stream = handle;
  encoder->stream_index = stream->index;
  rdm__handle_open(&encoders, &encoder->object);
  rdm__mutex_lock(&device->streams_lock);
  stream->encoder = encoder;
  rdm__mutex_unlock(&device->streams_lock);
  return RDM_OK;
}

/* The handle of the stream's encoder; false where it has none. */
static bool lookup(rdm__stream *stream, rdm_encoder *out_encoder) {
  rdm__mutex_lock(&stream->device->streams_lock);
  rdm__encoder *encoder = stream->encoder;
  if (encoder != NULL) out_encoder->bits = rdm__handle_of(&encoders, &encoder->object);
  rdm__mutex_unlock(&stream->device->streams_lock);
  return encoder != NULL;
}

rdm_status rdm_encoder_get(rdm_stream handle, rdm_encoder *out_encoder) {
  if (out_encoder == NULL) return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "out_encoder is null");
  rdm__stream *stream = NULL;
  rdm_status status = rdm__stream_pin(handle, &stream);
  if (status != RDM_OK) return status;
  status = rdm__device_check(stream->device);
  if (status == RDM_OK && !lookup(stream, out_encoder)) {
    rdm__mutex_lock(&stream->creation_lock);
    /* Another thread may have made it, and yet another cleared it: then this one makes it after all. */
    while (status == RDM_OK && !lookup(stream, out_encoder)) status = make(stream, handle);
    rdm__mutex_unlock(&stream->creation_lock);
  }
  rdm__stream_unpin(stream);
  return status;
}

/* Takes every encoder out of the device's table under its lock, and ends them after it. */
static void clear_device(rdm__device *device, void *context) {
  (void)context;
  rdm__encoder *cleared = NULL;
  rdm__mutex_lock(&device->streams_lock);
  for (int i = 0; i < RDM__STREAM_BUCKETS; i++) {
    for (rdm__stream *stream = device->streams[i]; stream != NULL; stream = stream->next) {
      rdm__encoder *encoder = stream->encoder;
      if (encoder == NULL) continue;
      stream->encoder = NULL;
      encoder->next_cleared = cleared;
      cleared = encoder;
    }
  }
  rdm__mutex_unlock(&device->streams_lock);
  while (cleared != NULL) {
    rdm__encoder *next = cleared->next_cleared;
    rdm__encoder_close(cleared);
    cleared = next;
  }
}

rdm_status rdm_clear_encoders(void) {
  rdm_status status = rdm__runtime_check();
  if (status != RDM_OK) return status;
  rdm__device_map_each(clear_device, NULL);
  return RDM_OK;
}
