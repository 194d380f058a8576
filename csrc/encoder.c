#include "encoder.h"

#include "completion.h"
#include "runtime.h"
#include "status.h"

static rdm__handle_table encoders = RDM__HANDLE_TABLE(RDM__HANDLE_ENCODER, rdm__encoder, NULL);

rdm__encoder *rdm__encoder_make(rdm__queue *queue, rdm_stream stream) {
  rdm__encoder *encoder = (rdm__encoder *)rdm__handle_allocate(&encoders);
  if (encoder == NULL) return NULL;
  /* With release: a submission through an earlier handle of this memory that sees these sees that handle's end, too. */
  atomic_store_explicit(&encoder->queue, queue, memory_order_release);
  atomic_store_explicit(&encoder->stream, stream.bits, memory_order_release);
  rdm__handle_open(&encoders, &encoder->object);
  return encoder;
}

uint64_t rdm__encoder_bits(const rdm__encoder *encoder) {
  return rdm__handle_of(&encoders, &encoder->object);
}

rdm_status rdm__encoder_find(rdm_encoder handle, rdm__encoder **out_encoder) {
  rdm_status status = rdm__runtime_check();
  if (status != RDM_OK) return status;
  rdm__object *object = NULL;
  status = rdm__handle_find(&encoders, handle.bits, &object);
  if (status == RDM_OK) *out_encoder = (rdm__encoder *)object;
  return status;
}

void rdm__encoder_close(rdm__encoder *encoder, rdm__encoder **closed) {
  /* The pin keeps the generation, and with it the name of the open batch, until the second step. */
  rdm__object_pin(&encoder->object);
  rdm__object_close(&encoders, &encoder->object);
  encoder->next_closed = *closed;
  *closed = encoder;
}

void rdm__encoders_finish_closing(rdm__encoder *closed) {
  while (closed != NULL) {
    rdm__encoder *next = closed->next_closed;
    rdm__queue *queue = atomic_load_explicit(&closed->queue, memory_order_relaxed);
    rdm__mutex_lock(&queue->lock);
    rdm__completions_commit_own(queue, rdm__encoder_bits(closed), false);
    rdm__mutex_unlock(&queue->lock);
    rdm__object_unpin(&encoders, &closed->object);
    closed = next;
  }
}

void rdm__encoders_count(rdm__handle_totals *out_totals) {
  rdm__handle_count(&encoders, out_totals);
}
