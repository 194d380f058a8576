#include "queue.h"

#include "log.h"
#include "poll.h"
#include "status.h"
#include "visit.h"

#include <stdlib.h>
#include <string.h>

/*
 * So many queues that still have work are passed over before one of them is taken after all, and while as many are
 * unused no more are made: threads that look at the same time have some of them in hand each.
 */
enum { BUSY_QUEUES_PASSED_OVER = 8 };

static rdm__queue *pop(rdm__device *device) {
  rdm__mutex_lock(&device->queue_pool.lock);
  rdm__queue *queue = rdm__pointer_stack_pop(&device->queue_pool.idle);
  rdm__mutex_unlock(&device->queue_pool.lock);
  return queue;
}

static void push(rdm__pool *pool, rdm__queue *queue) {
  rdm__mutex_lock(&pool->lock);
  /* Out of memory: the queue is lost, which harms less than destroying it. */
  (void)rdm__pointer_stack_push(&pool->idle, queue);
  rdm__mutex_unlock(&pool->lock);
}

static void enlist(rdm__queue *queue) {
  _Atomic(rdm__queue *) *first = &queue->device->queues;
  queue->next_made = atomic_load_explicit(first, memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(first, &queue->next_made, queue, memory_order_release,
                                                memory_order_relaxed)) {
  }
}

static rdm_status create(rdm__device *device, rdm__queue **out_queue) {
  rdm__capture_guard guard;
  rdm_status status = rdm__visit_begin(device, &guard);
  if (status != RDM_OK) return status;
  void *native = NULL;
  int error = device->driver->stream_create(&native, RDM_HIP_STREAM_NON_BLOCKING);
  if (error != RDM_HIP_SUCCESS) {
    status = rdm__device_call_failed(device, RDM__CALL_stream_create, error, "making a stream");
  }
  rdm__visit_end(device, &guard);
  rdm__queue *queue = status == RDM_OK ? calloc(1, sizeof *queue) : NULL;
  if (queue == NULL) return status != RDM_OK ? status : rdm__fail(RDM_ERROR_OUT_OF_MEMORY, "no memory for a stream");
  queue->native = native;
  queue->device = device;
  rdm__mutex_init(&queue->lock, RDM__RANK_QUEUE);
  enlist(queue);
  rdm__log(RDM_LOG_DEBUG, "device %d: driver stream %p made", device->index, native);
  *out_queue = queue;
  return RDM_OK;
}

/* Whether the thread's last error says that the driver does not know the stream any more. */
static bool is_gone(const rdm__device *device) {
  const rdm_error *error = rdm__thread_error();
  return error->driver_code == RDM_HIP_INVALID_HANDLE &&
         strcmp(error->call, device->driver->call_name(RDM__CALL_stream_query)) == 0;
}

rdm_status rdm__queue_poll(rdm__queue *queue, const char *doing) {
  atomic_fetch_add(&queue->polls, 1);
  rdm_status status = RDM_NOT_READY;
  if (!atomic_load(&queue->is_captured)) status = rdm__poll(queue->device, RDM__POLL_STREAM, queue->native, doing);
  atomic_fetch_sub(&queue->polls, 1);
  return status;
}

/* With the queue's lock held, in a visit. */
static void drop_capture(rdm__queue *queue) {
  rdm__device *device = queue->device;
  void *graph = NULL;
  int error = device->driver->stream_end_capture(queue->native, &graph);
  if (error != RDM_HIP_SUCCESS) {
    rdm__device_note_failure(device, RDM__CALL_stream_end_capture, error, "ending a capture that its stream left");
  }
  error = graph == NULL ? RDM_HIP_SUCCESS : device->driver->graph_destroy(graph);
  if (error != RDM_HIP_SUCCESS) {
    rdm__device_note_failure(device, RDM__CALL_graph_destroy, error, "ending a capture that its stream left");
  }
  bool goes_on = graph == NULL && rdm__stream_is_capturing(device, queue->native);
  queue->capture_is_left = goes_on;
  atomic_store(&queue->is_captured, goes_on);
}

rdm_status rdm__queue_end_left_capture(rdm__queue *queue) {
  rdm__capture_guard guard;
  rdm_status status = RDM_OK;
  rdm__mutex_lock(&queue->lock);
  bool is_left = queue->capture_is_left;
  if (is_left) status = rdm__visit_begin(queue->device, &guard);
  if (is_left && status == RDM_OK) {
    drop_capture(queue);
    rdm__visit_end(queue->device, &guard);
  }
  rdm__mutex_unlock(&queue->lock);
  return status;
}

/* Batches whose handlers have yet to run: a new user's would run behind them. */
static bool has_pending_batches(rdm__queue *queue) {
  rdm__mutex_lock(&queue->lock);
  bool pending = queue->completions.is_active;
  rdm__mutex_unlock(&queue->lock);
  return pending;
}

/*
 * A queue of an ended stream may still have work. Behind it a new user's work would be right but late, so a queue that
 * is done is preferred, and a few busy ones are worth the cost of making a new one.
 */
static rdm_status choose(rdm__device *device, rdm__queue **out_queue) {
  rdm__queue *busy[BUSY_QUEUES_PASSED_OVER];
  int busy_count = 0;
  rdm__queue *chosen = NULL;
  rdm_status status = RDM_OK;
  while (status == RDM_OK && chosen == NULL && busy_count < BUSY_QUEUES_PASSED_OVER) {
    rdm__queue *candidate = pop(device);
    if (candidate == NULL) break;
    status = rdm__queue_end_left_capture(candidate);
    if (status == RDM_OK) {
      status = rdm__queue_poll(candidate, "taking over an idle stream");
    }
    if (status == RDM_OK && !has_pending_batches(candidate)) {
      chosen = candidate;
    } else if (status == RDM_OK || status == RDM_NOT_READY) {
      busy[busy_count++] = candidate;
      status = RDM_OK;
    } else {
      /* One whose stream other code has destroyed is put aside, so that the next call does not meet it. */
      bool gone = is_gone(device);
      if (gone) atomic_fetch_sub_explicit(&device->unused_queues, 1, memory_order_relaxed);
      push(gone ? &device->gone_queues : &device->queue_pool, candidate);
    }
  }
  bool is_reused = chosen != NULL;
  if (status == RDM_OK && chosen == NULL) {
    int unused = atomic_load_explicit(&device->unused_queues, memory_order_relaxed);
    if (busy_count > 0 && unused >= BUSY_QUEUES_PASSED_OVER) {
      chosen = busy[--busy_count];
      is_reused = true;
    } else {
      status = create(device, &chosen);
    }
  }
  while (busy_count > 0) push(&device->queue_pool, busy[--busy_count]);
  if (is_reused) atomic_fetch_sub_explicit(&device->unused_queues, 1, memory_order_relaxed);
  if (status == RDM_OK) *out_queue = chosen;
  return status;
}

rdm_status rdm__queue_acquire(rdm__device *device, int32_t stream_index, rdm__queue **out_queue) {
  rdm__queue *queue = NULL;
  rdm_status status = choose(device, &queue);
  if (status != RDM_OK) return status;
  rdm__mutex_lock(&queue->lock);
  queue->stream_index = stream_index;
  rdm__mutex_unlock(&queue->lock);
  *out_queue = queue;
  return RDM_OK;
}

/* On a faulted device, too, where none is ever taken from the pool: so that what is leaked stays reachable. */
void rdm__queue_retire(rdm__queue *queue) {
  atomic_fetch_add_explicit(&queue->device->unused_queues, 1, memory_order_relaxed);
  push(&queue->device->queue_pool, queue);
}
