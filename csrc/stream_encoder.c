/* Which encoder a stream has: made by the first call that wants it, taken away by rdm_clear_encoders. */
#include "device_map.h"
#include "encoder.h"
#include "runtime.h"
#include "status.h"
#include "stream.h"

/* With the stream's creation_lock held and no encoder there. */
static rdm_status make(rdm__stream *stream, rdm_stream handle) {
  rdm__device *device = stream->device;
  rdm__queue *queue = atomic_load_explicit(&stream->queue, memory_order_relaxed);
  if (queue == NULL) {
    rdm_status status = rdm__queue_acquire(device, stream->index, &queue);
    if (status != RDM_OK) return status;
    atomic_store_explicit(&stream->queue, queue, memory_order_release);
  }
  rdm__encoder *encoder = rdm__encoder_make(device, queue, handle, stream->index);
  if (encoder == NULL) return RDM_ERROR_RESOURCE;
  rdm__mutex_lock(&device->streams_lock);
  stream->encoder = encoder;
  rdm__mutex_unlock(&device->streams_lock);
  return RDM_OK;
}

/* The handle of the stream's encoder; false where it has none. */
static bool lookup(rdm__stream *stream, rdm_encoder *out_encoder) {
  rdm__mutex_lock(&stream->device->streams_lock);
  rdm__encoder *encoder = stream->encoder;
  if (encoder != NULL) out_encoder->bits = rdm__encoder_bits(encoder);
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

/* Closes every encoder of the device under its lock, and commits what was open of them after it. */
static void clear_device(rdm__device *device, void *context) {
  (void)context;
  rdm__encoder *closed = NULL;
  rdm__mutex_lock(&device->streams_lock);
  for (int i = 0; i < RDM__STREAM_BUCKETS; i++) {
    for (rdm__stream *stream = device->streams[i]; stream != NULL; stream = stream->next) {
      if (stream->encoder == NULL) continue;
      rdm__encoder_close(stream->encoder, &closed);
      stream->encoder = NULL;
    }
  }
  rdm__mutex_unlock(&device->streams_lock);
  rdm__encoders_finish_closing(closed);
}

rdm_status rdm_clear_encoders(void) {
  rdm_status status = rdm__runtime_check();
  if (status != RDM_OK) return status;
  rdm__device_map_each(clear_device, NULL);
  return RDM_OK;
}
