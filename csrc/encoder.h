/*
 * Command encoders: what a stream is submitted to through. An encoder is a handle on its stream's queue that can be
 * cleared: what is submitted through the next one still comes after.
 *
 * Threading. The memory is never given back to the allocator: a stale handle fails by its generation, and a thread that
 * had pinned the encoder before it was closed finishes its call on a queue that is still there.
 */
#ifndef RDM_ENCODER_H
#define RDM_ENCODER_H

#include "device.h"
#include "stream.h"

struct rdm__encoder {
  rdm__object object;
  rdm__device *device;
  rdm__queue *queue;
  rdm_stream stream;
  int32_t stream_index;
  /* Used by the thread that took it out of its stream, on the way to closing it. */
  rdm__encoder *next_cleared;
};

/* Pins the encoder of a handle; checks the runtime's state and the device's health first. */
rdm_status rdm__encoder_pin(rdm_encoder handle, rdm__encoder **out_encoder);

void rdm__encoder_unpin(rdm__encoder *encoder);

/*
 * Ends an encoder that has left its stream: its handle is stale, and its open batch counts as committed. Makes no
 * driver call. Called with no lock held.
 */
void rdm__encoder_close(rdm__encoder *encoder);

/* Keeps the thread's last error as the stream's, and gives its status. For submissions that failed. */
rdm_status rdm__encoder_record_failure(const rdm__encoder *encoder);

#endif
