/*
 * Command encoders: what a stream is submitted to through. An encoder is a handle on its stream's queue that can be
 * cleared: what is submitted through the next one still comes after.
 *
 * Threading. An encoder leaves its stream and is closed in one step, under the device's streams_lock; so one that is in
 * a stream is open, and one that is not gets no more work: each submission looks, with the queue's lock held, whether
 * its encoder is closed. The memory is never given back to the allocator, so a stale handle fails by its generation.
 *
 * A submission does not pin its encoder. It reads what the encoder is of, takes that queue's lock, and asks whether the
 * handle still names the encoder: only then was what it read the encoder's own. So the fields are atomics, written with
 * release before the handle is opened, and a queue's memory is never given back either.
 */
#ifndef RDM_ENCODER_H
#define RDM_ENCODER_H

#include "device.h"
#include "queue.h"

typedef struct rdm__encoder {
  rdm__object object;
  _Atomic(rdm__queue *) queue;
  /* The handle of its stream, as bits. */
  _Atomic uint64_t stream;
  /* Used by the thread that closes it. */
  struct rdm__encoder *next_closed;
} rdm__encoder;

/* Makes an encoder on a queue, open and in no stream yet. Null, with the last error set, where memory ran out. */
rdm__encoder *rdm__encoder_make(rdm__queue *queue, rdm_stream stream);

/* The handle of an open encoder. */
uint64_t rdm__encoder_bits(const rdm__encoder *encoder);

/* The encoder of a handle, not pinned; checks the runtime's state first. */
rdm_status rdm__encoder_find(rdm_encoder handle, rdm__encoder **out_encoder);

/*
 * Ends an encoder in two steps. The first, with the device's streams_lock held, makes its handle stale and puts it on
 * a list. The second, with no lock held, commits what is open of each in the list; it makes no driver call.
 */
void rdm__encoder_close(rdm__encoder *encoder, rdm__encoder **closed);
void rdm__encoders_finish_closing(rdm__encoder *closed);

/* For rdm_get_counters: encoders made and ended; and lookups that found what the thread remembered. */
void rdm__encoders_count(rdm__handle_totals *out_totals);
uint64_t rdm__encoder_hits(void);

#endif
