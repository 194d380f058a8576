/*
 * Which encoder a stream has: made by the first call that wants it, taken away by rdm_clear_encoders.
 *
 * A thread remembers the encoders that it found last. What it remembers counts while both handles are open: the
 * stream's, so that a stream that was released is told, and the encoder's, so that one that was cleared is made anew.
 * Both are read from memory that is never given back, so nothing has to clear what a thread remembers.
 */
#include "count.h"
#include "device_map.h"
#include "encoder.h"
#include "log.h"
#include "runtime.h"
#include "status.h"
#include "stream.h"
#include "tally.h"

#include <string.h>

/* With the stream's creation_lock held and no encoder there. */
static rdm_status make(rdm__stream *stream, rdm_stream handle) {
  rdm__device *device = stream->device;
  rdm__queue *queue = atomic_load_explicit(&stream->queue, memory_order_relaxed);
  if (queue == NULL) {
    rdm_status status = rdm__queue_acquire(device, stream->index, &queue);
    if (status != RDM_OK) return status;
    atomic_store_explicit(&stream->queue, queue, memory_order_release);
  }
  rdm__encoder *encoder = rdm__encoder_make(queue, handle);
  if (encoder == NULL) return RDM_ERROR_RESOURCE;
  rdm__mutex_lock(&device->streams_lock);
  stream->encoder = encoder;
  rdm__mutex_unlock(&device->streams_lock);
  return RDM_OK;
}

typedef struct memory {
  uint64_t stream_bits;
  uint64_t encoder_bits;
  rdm__stream *stream;
  rdm__encoder *encoder;
} memory;

/* By the low bits of the stream's slot: a thread that goes around a few streams finds each of them here. */
enum { REMEMBERED_ENCODERS = 4 };
static _Thread_local memory remembered[REMEMBERED_ENCODERS];

/* How many lookups found what the thread remembers. A thread has a cell of it whenever it remembers anything. */
static rdm__tally hits;
static _Thread_local rdm__tally_cell *own_hits;

static void forget(void) {
  own_hits = NULL;
  memset(remembered, 0, sizeof remembered);
}

static memory *place_of(rdm_stream handle) {
  return &remembered[(handle.bits >> RDM__HANDLE_SLOT_SHIFT) % REMEMBERED_ENCODERS];
}

static bool is_current(const memory *memory, rdm_stream handle) {
  return memory->stream_bits == handle.bits && handle.bits != 0 &&
         rdm__object_is_named(&memory->stream->object, handle.bits) &&
         rdm__object_is_named(&memory->encoder->object, memory->encoder_bits) && rdm__runtime_is_ready() &&
         !atomic_load_explicit(&rdm__any_device_has_faulted, memory_order_acquire);
}

/* The handle of the stream's encoder, which this thread then remembers; false where the stream has none. */
static bool lookup(rdm__stream *stream, rdm_stream handle, rdm_encoder *out_encoder) {
  uint64_t bits = 0;
  rdm__mutex_lock(&stream->device->streams_lock);
  rdm__encoder *encoder = stream->encoder;
  if (encoder != NULL) bits = rdm__encoder_bits(encoder);
  rdm__mutex_unlock(&stream->device->streams_lock);
  if (encoder == NULL) return false;
  out_encoder->bits = bits;
  if (own_hits == NULL) own_hits = rdm__tally_join(&hits, forget);
  if (own_hits == NULL) return true;
  *place_of(handle) = (memory){.stream_bits = handle.bits, .encoder_bits = bits, .stream = stream, .encoder = encoder};
  return true;
}

__attribute__((noinline)) static rdm_status get_from_stream(rdm_stream handle, rdm_encoder *out_encoder) {
  rdm__stream *stream = NULL;
  rdm_status status = rdm__stream_pin(handle, &stream);
  if (status != RDM_OK) return status;
  rdm__count(RDM__COUNT_ENCODER_MISSES, 1);
  rdm_encoder encoder = {0};
  status = rdm__device_check(stream->device);
  if (status == RDM_OK && !lookup(stream, handle, &encoder)) {
    rdm__mutex_lock(&stream->creation_lock);
    /* Another thread may have made it, and yet another cleared it: then this one makes it after all. */
    while (status == RDM_OK && !lookup(stream, handle, &encoder)) status = make(stream, handle);
    rdm__mutex_unlock(&stream->creation_lock);
  }
  rdm__stream_unpin(stream);
  if (status == RDM_OK) *out_encoder = encoder;
  return status;
}

rdm_status rdm_encoder_get(rdm_stream handle, rdm_encoder *out_encoder) {
  if (out_encoder == NULL) return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "out_encoder is null");
  const memory *memory = place_of(handle);
  if (!is_current(memory, handle)) return get_from_stream(handle, out_encoder);
  rdm__count_alone(&own_hits->count, 1);
  out_encoder->bits = memory->encoder_bits;
  return RDM_OK;
}

uint64_t rdm__encoder_hits(void) {
  return rdm__tally_sum(&hits);
}

/* Closes every encoder of the device under its lock, and commits what was open of them after it. */
static void clear_device(rdm__device *device, void *context) {
  (void)context;
  unsigned count = 0;
  rdm__encoder *closed = NULL;
  rdm__mutex_lock(&device->streams_lock);
  rdm__stream *stream = NULL;
  while ((stream = rdm__stream_table_next(&device->streams, stream)) != NULL) {
    if (stream->encoder == NULL) continue;
    rdm__encoder_close(stream->encoder, &closed);
    stream->encoder = NULL;
    count++;
  }
  rdm__mutex_unlock(&device->streams_lock);
  rdm__encoders_finish_closing(closed);
  rdm__log(RDM_LOG_DEBUG, "device %d: %u encoders cleared", device->index, count);
}

rdm_status rdm_clear_encoders(void) {
  rdm_status status = rdm__runtime_check();
  if (status != RDM_OK) return status;
  rdm__device_map_each(clear_device, NULL);
  return RDM_OK;
}
