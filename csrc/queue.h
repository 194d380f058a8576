/*
 * Queues: a driver stream, the lock that orders what several threads submit to it, and the batches pending on it.
 *
 * A stream has one from its first submission until it ends; what encoders come and go in between, the order stays.
 * Then the queue serves another stream: driver streams are costly to make, and on some GPUs destroying one leaks its
 * hardware queue until exit, so queues are pooled by device and never destroyed. Their memory is never given back, so a
 * thread that still holds one at the end of its stream does no harm.
 */
#ifndef RDM_QUEUE_H
#define RDM_QUEUE_H

#include "count.h"
#include "device.h"

typedef struct rdm__batch rdm__batch;

/* The part that completion.c owns. Guarded by the queue's lock unless it says otherwise. */
typedef struct rdm__completions {
  rdm__batch *open;
  rdm__batch *first_pending;
  rdm__batch *last_pending;
  uint64_t callbacks_issued;
  uint64_t batches_committed;
  /* Counted by the driver's callback thread. */
  _Atomic uint64_t callbacks_done;
  /* Counted by the completion thread. */
  _Atomic uint64_t batches_finished;
  /* Whether the queue is in the completion thread's list. Changed with that thread's lock held too. */
  bool is_active;
  /* Guarded by the completion thread's lock. */
  rdm__queue *next_active;
} rdm__completions;

/* What was submitted to it, for rdm_get_counters: counted with the queue's lock held, read at any time. */
typedef struct rdm__queue_counts {
  _Atomic uint64_t launches;
  _Atomic uint64_t copies;
  _Atomic uint64_t copied_bytes;
  _Atomic uint64_t fills;
  _Atomic uint64_t graph_launches;
  _Atomic uint64_t event_records;
  _Atomic uint64_t event_waits;
  _Atomic uint64_t batches;
} rdm__queue_counts;

struct rdm__queue {
  /* Never change. */
  rdm__device *device;
  void *native;
  rdm__queue *next_made;

  rdm__mutex lock;
  /* Guarded by the lock, which is held while the driver is called to submit. */
  rdm__completions completions;
  int32_t stream_index;
  /* By rdm_encoder_begin_capture, and not ended yet. Written with the lock held. */
  atomic_bool is_captured;
  /* Its stream ended meanwhile: the capture is nobody's. Guarded by the lock. */
  bool capture_is_left;
  /* How many threads ask the driver whether the stream is done, which they do without the lock. To ask it of a stream
   * that is captured would cost the capture: so a thread counts itself and looks at is_captured, while who captures
   * sets that first and waits for those who are counted. Both in sequentially consistent order. */
  atomic_uint polls;
  rdm__queue_counts counts;
};

/* A queue that no stream uses, with a driver stream made for it where none waits in the pool. */
rdm_status rdm__queue_acquire(rdm__device *device, int32_t stream_index, rdm__queue **out_queue);

/* Whether all that was submitted is done: as rdm__poll of its driver stream, and not-ready while it is captured. */
rdm_status rdm__queue_poll(rdm__queue *queue, const char *doing);

/*
 * Ends the capture that its stream left open as it ended; what was captured is dropped. The completion thread does so
 * within moments; who takes the queue over before that does it first. Does nothing where there is none.
 */
rdm_status rdm__queue_end_left_capture(rdm__queue *queue);

/* Gives back the queue of a stream that has ended, with what is pending on it. Makes no driver call. */
void rdm__queue_retire(rdm__queue *queue);

#endif
