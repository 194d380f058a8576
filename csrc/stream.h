/*
 * Streams: (device, stream index) pairs, and which encoder each one has.
 *
 * Invariant: a device's streams_lock guards its index -> stream table and each stream's `encoder`. It is held for a
 * look or a change of a pointer, never while the driver is called or an encoder is made or ended.
 *
 * Lock order: a stream's creation_lock, then its device's streams_lock, then a queue's lock.
 */
#ifndef RDM_STREAM_H
#define RDM_STREAM_H

#include "device.h"
#include "encoder.h"
#include "stream_error.h"

struct rdm__stream {
  rdm__object object;
  rdm__device *device;
  int32_t index;
  /* Named by rdm_stream_get: lives as long as the process, and is not counted. */
  bool is_registered;
  _Atomic uint32_t references;
  rdm__error_slot error;
  /* Held while the stream's encoder is made, so that several threads make one. */
  rdm__mutex creation_lock;
  /* Had with the first encoder and kept until the stream ends. Set once, with creation_lock held. */
  _Atomic(rdm__queue *) queue;
  /* Guarded by the device's streams_lock. */
  rdm__stream *next;
  rdm__encoder *encoder;
};

/* Pins the stream of a handle; checks the runtime's state first. */
rdm_status rdm__stream_pin(rdm_stream handle, rdm__stream **out_stream);
void rdm__stream_unpin(rdm__stream *stream);

/*
 * Pins every stream of the device that is open now, in an array that the caller gives back with rdm__streams_free.
 * Fails where memory runs out.
 */
rdm_status rdm__streams_pin_all(rdm__device *device, rdm__stream ***out_streams, size_t *out_count);
void rdm__streams_free(rdm__stream **streams);

/* References from inside the library; no-ops for a registered stream. Release tolerates a null or stale handle. */
rdm_status rdm__stream_retain(rdm_stream handle);
void rdm__stream_release(rdm_stream handle);

/* Records an error for a stream that may have ended. */
void rdm__stream_record(rdm_stream handle, const rdm_error *error);

/* For rdm_get_counters: streams made and ended. */
void rdm__streams_count(rdm__handle_totals *out_totals);

#endif
