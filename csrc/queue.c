#include "queue.h"

#include "completion.h"
#include "driver_call.h"
#include "status.h"

#include <stdlib.h>

/* How many queues that still have work are passed over before one of them is taken after all. */
enum { BUSY_QUEUES_PASSED_OVER = 8 };

static rdm__queue *pop(rdm__device *device) {
  rdm__mutex_lock(&device->queue_pool.lock);
  rdm__queue *queue = rdm__pointer_stack_pop(&device->queue_pool.idle);
  rdm__mutex_unlock(&device->queue_pool.lock);
  return queue;
}

static void push(rdm__queue *queue) {
  rdm__device *device = queue->device;
  rdm__mutex_lock(&device->queue_pool.lock);
  /* Out of memory: the queue is lost, which harms less than destroying it. */
  (void)rdm__pointer_stack_push(&device->queue_pool.idle, queue);
  rdm__mutex_unlock(&device->queue_pool.lock);
}

/* With the device current. */
static rdm_status create(rdm__device *device, rdm__queue **out_queue) {
  rdm__queue *queue = calloc(1, sizeof *queue);
  if (queue == NULL) return rdm__fail(RDM_ERROR_OUT_OF_MEMORY, "no memory for a stream");
  int error = device->driver->stream_create(&queue->native, RDM_HIP_STREAM_NON_BLOCKING);
  if (error != RDM_HIP_SUCCESS) {
    free(queue);
    return rdm__device_call_failed(device, RDM__CALL_stream_create, error, "making a stream");
  }
  queue->device = device;
  rdm__mutex_init(&queue->lock, RDM__RANK_QUEUE);
  *out_queue = queue;
  return RDM_OK;
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
    int error = device->driver->stream_query(candidate->native);
    if (error == RDM_HIP_SUCCESS) {
      chosen = candidate;
    } else {
      busy[busy_count++] = candidate;
      if (error == RDM_HIP_NOT_READY) {
        rdm__driver_forget_error(device->driver);
      } else {
        status = rdm__device_call_failed(device, RDM__CALL_stream_query, error, "taking over an idle stream");
      }
    }
  }
  if (status == RDM_OK && chosen == NULL) {
    if (busy_count == BUSY_QUEUES_PASSED_OVER) {
      chosen = busy[--busy_count];
    } else {
      status = create(device, &chosen);
    }
  }
  while (busy_count > 0) push(busy[--busy_count]);
  if (status == RDM_OK) *out_queue = chosen;
  return status;
}

rdm_status rdm__queue_acquire(rdm__device *device, int32_t stream_index, rdm__queue **out_queue) {
  rdm__queue *queue = NULL;
  rdm_status status = rdm__device_bind(device);
  if (status == RDM_OK) status = choose(device, &queue);
  if (status != RDM_OK) return status;
  rdm__mutex_lock(&queue->lock);
  queue->stream_index = stream_index;
  queue->has_ended = false;
  rdm__mutex_unlock(&queue->lock);
  *out_queue = queue;
  return RDM_OK;
}

void rdm__queue_end(rdm__queue *queue) {
  rdm__mutex_lock(&queue->lock);
  rdm__completions_commit(queue, false);
  queue->has_ended = true;
  if (!queue->completions.is_active) rdm__queue_retire(queue);
  rdm__mutex_unlock(&queue->lock);
}

/* On a faulted device nothing is used again; and a callback that still came would count for the next user. */
void rdm__queue_retire(rdm__queue *queue) {
  if (!rdm__device_has_faulted(queue->device)) push(queue);
}
