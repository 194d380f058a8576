#include "completion.h"

#include "clock.h"
#include "driver_call.h"
#include "library_thread.h"
#include "poll.h"
#include "runtime.h"
#include "status.h"
#include "visit.h"

#include <stdlib.h>

enum { CALLBACKS_OUTSTANDING = 64 };
/* How often the driver is asked while batches are pending: the bound on learning of a fault that no one else saw. */
static const uint64_t look_interval_ns = 20 * RDM__NS_PER_MS;

typedef struct handler_node {
  rdm_completion_handler handler;
  void *user_data;
  struct handler_node *next;
} handler_node;

struct rdm__batch {
  /* The handle of the encoder that it was opened through: another one neither joins it nor commits it by accident. */
  uint64_t owner;
  handler_node *first;
  handler_node **end;
  /* Which batch of the queue it is, from 1. */
  uint64_t number;
  /* The number of the callback that stands for this batch; 0 until one does. */
  uint64_t callback;
  rdm__batch *next;
};

/* Lock order: a queue's lock, then this lock, a leaf. */
struct rdm__completion_worker {
  rdm__device *device;
  rdm__mutex lock;
  rdm__condition wake;
  rdm__condition finished;
  bool is_signalled;
  rdm__queue *active;
};

static _Thread_local bool in_handler;

bool rdm__in_completion_handler(void) {
  return in_handler;
}

static rdm__completion_worker *worker_of(rdm__device *device) {
  return atomic_load_explicit(&device->worker, memory_order_acquire);
}

bool rdm__completion_worker_runs(rdm__device *device) {
  return worker_of(device) != NULL;
}

static void signal_worker(rdm__completion_worker *worker) {
  rdm__mutex_lock(&worker->lock);
  worker->is_signalled = true;
  rdm__condition_broadcast(&worker->wake);
  rdm__mutex_unlock(&worker->lock);
}

/* On the driver's callback thread: calls no driver, takes only a lock under which nobody calls it either. */
static void on_callback(void *user_data) {
  rdm__queue *queue = user_data;
  atomic_fetch_add_explicit(&queue->completions.callbacks_done, 1, memory_order_acq_rel);
  signal_worker(worker_of(queue->device));
}

rdm_status rdm__completions_add(rdm__queue *queue, uint64_t owner, rdm_completion_handler handler, void *user_data) {
  rdm__completions *completions = &queue->completions;
  /* What is still open of an encoder that was cleared counts as committed, before anything of the next one. */
  if (completions->open != NULL && completions->open->owner != owner) rdm__completions_commit(queue, true);
  handler_node *node = malloc(sizeof *node);
  rdm__batch *batch = completions->open != NULL ? completions->open : calloc(1, sizeof *batch);
  if (node == NULL || batch == NULL) {
    free(node);
    if (batch != completions->open) free(batch);
    return rdm__fail(RDM_ERROR_OUT_OF_MEMORY, "no memory for a completion handler");
  }
  batch->owner = owner;
  if (completions->open == NULL) {
    batch->end = &batch->first;
    completions->open = batch;
  }
  *node = (handler_node){.handler = handler, .user_data = user_data};
  *batch->end = node;
  batch->end = &node->next;
  return RDM_OK;
}

/* Makes the device current; a failure is found out again by whoever looks next, and is not the caller's error. */
static bool bind_quietly(rdm__device *device) {
  rdm_error before = *rdm__thread_error();
  bool bound = rdm__device_bind(device) == RDM_OK;
  if (!bound) *rdm__thread_error() = before;
  return bound;
}

static const char *const following = "following the batches of a stream";

/* With the queue's lock held: one callback for all batches that none stands for yet. A failure to enqueue it loses
 * nothing, so it is no error of the calling thread's. */
static void enqueue_callback(rdm__queue *queue) {
  rdm__completions *completions = &queue->completions;
  rdm__device *device = queue->device;
  uint64_t done = atomic_load_explicit(&completions->callbacks_done, memory_order_acquire);
  if (completions->callbacks_issued - done >= CALLBACKS_OUTSTANDING) return;
  rdm__batch *batch = completions->first_pending;
  while (batch != NULL && batch->callback != 0) batch = batch->next;
  if (batch == NULL || !bind_quietly(device)) return;
  /* It would become a part of the graph and run with each launch of that; so it waits until the capture is over. */
  if (rdm__stream_is_capturing(device, queue->native) || rdm__runtime_is_over()) return;
  int error = device->driver->launch_host_function(queue->native, on_callback, queue);
  if (error != RDM_HIP_SUCCESS) {
    rdm__device_note_failure(device, RDM__CALL_launch_host_function, error, following);
    return;
  }
  uint64_t number = ++completions->callbacks_issued;
  for (; batch != NULL; batch = batch->next) batch->callback = number;
}

/* With the queue's lock held: the thread, which runs, has something to do for it. */
static void activate(rdm__queue *queue) {
  rdm__completions *completions = &queue->completions;
  rdm__completion_worker *worker = worker_of(queue->device);
  rdm__mutex_lock(&worker->lock);
  if (!completions->is_active) {
    completions->is_active = true;
    completions->next_active = worker->active;
    worker->active = queue;
  }
  worker->is_signalled = true;
  rdm__condition_broadcast(&worker->wake);
  rdm__mutex_unlock(&worker->lock);
}

void rdm__completions_commit(rdm__queue *queue, bool may_call_driver) {
  rdm__completions *completions = &queue->completions;
  rdm__batch *batch = completions->open;
  if (batch == NULL) return;
  completions->open = NULL;
  if (completions->first_pending == NULL) {
    completions->first_pending = batch;
  } else {
    completions->last_pending->next = batch;
  }
  completions->last_pending = batch;
  batch->number = ++completions->batches_committed;
  rdm__count_alone(&queue->counts.batches, 1);
  if (may_call_driver) enqueue_callback(queue);
  activate(queue);
}

void rdm__completions_commit_own(rdm__queue *queue, uint64_t owner, bool may_call_driver) {
  const rdm__batch *open = queue->completions.open;
  if (open != NULL && open->owner == owner) rdm__completions_commit(queue, may_call_driver);
}

void rdm__completions_end_stream(rdm__queue *queue) {
  rdm__mutex_lock(&queue->lock);
  rdm__completions_commit(queue, false);
  /* No driver call may be made here, and a capture that nobody ends would hold up other code on the device. */
  queue->capture_is_left = atomic_load(&queue->is_captured);
  if (queue->capture_is_left) activate(queue);
  rdm__mutex_unlock(&queue->lock);
  /* At once, whatever is pending: what waited for its batches would come back as late as this device's completion
   * thread, and threads that end faster than that would make ever more queues. */
  rdm__queue_retire(queue);
}

/*
 * With the queue's lock held: the next batch that is over, taken out, with how it ended. All work up to batch
 * `done_through` is known to be done.
 */
static rdm__batch *take_finished(rdm__queue *queue, uint64_t done_through, rdm_status *out_status) {
  rdm__completions *completions = &queue->completions;
  rdm__batch *batch = completions->first_pending;
  if (batch == NULL) return NULL;
  uint64_t done = atomic_load_explicit(&completions->callbacks_done, memory_order_acquire);
  bool completed = batch->callback != 0 ? batch->callback <= done : batch->number <= done_through;
  if (!completed && !rdm__device_has_faulted(queue->device)) return NULL;
  *out_status = completed ? RDM_OK : RDM_ERROR_DEVICE_FAULT;
  completions->first_pending = batch->next;
  if (batch->next == NULL) completions->last_pending = NULL;
  return batch;
}

static void run_handlers(rdm__batch *batch, rdm_status status) {
  handler_node *node = batch->first;
  while (node != NULL) {
    handler_node *next = node->next;
    rdm__assert_no_lock_held();
    in_handler = true;
    /* Once the process is exiting those that are left go without having run. */
    if (!rdm__runtime_is_over()) node->handler(status, node->user_data);
    in_handler = false;
    free(node);
    node = next;
  }
  free(batch);
}

static void finish_batch(rdm__completion_worker *worker, rdm__queue *queue, rdm__batch *batch, rdm_status status) {
  run_handlers(batch, status);
  rdm__mutex_lock(&worker->lock);
  atomic_fetch_add_explicit(&queue->completions.batches_finished, 1, memory_order_acq_rel);
  rdm__condition_broadcast(&worker->finished);
  rdm__mutex_unlock(&worker->lock);
}

/*
 * The number of the last batch that is done for certain, as the driver tells of the whole stream; 0 where it does not.
 * Asking is also how a fault is noticed when no callback comes. No lock is held while the driver is asked, since on a
 * device that is lost it may not answer.
 */
static uint64_t look_at(rdm__queue *queue) {
  rdm__mutex_lock(&queue->lock);
  uint64_t committed = queue->completions.batches_committed;
  bool is_pending = queue->completions.first_pending != NULL;
  rdm__mutex_unlock(&queue->lock);
  if (!is_pending) return 0;
  const rdm_error before = *rdm__thread_error();
  rdm_status status = rdm__queue_poll(queue, following);
  if (status != RDM_OK) *rdm__thread_error() = before;
  return status == RDM_OK ? committed : 0;
}

/* With the queue's lock held, and nothing pending: takes it out of the list. */
static void deactivate(rdm__completion_worker *worker, rdm__queue *queue) {
  rdm__mutex_lock(&worker->lock);
  rdm__queue **place = &worker->active;
  while (*place != queue) place = &(*place)->completions.next_active;
  *place = queue->completions.next_active;
  queue->completions.is_active = false;
  rdm__mutex_unlock(&worker->lock);
}

/* Runs what is over for one queue, and takes it out of the list where nothing is left to wait for. */
static void progress(rdm__completion_worker *worker, rdm__queue *queue, bool look) {
  uint64_t done_through = 0;
  if (rdm__runtime_thread_enters_driver()) {
    rdm__queue_end_left_capture(queue);
    if (look) done_through = look_at(queue);
    rdm__runtime_thread_left_driver();
  }
  rdm__mutex_lock(&queue->lock);
  for (;;) {
    rdm_status status = RDM_OK;
    rdm__batch *batch = take_finished(queue, done_through, &status);
    if (batch == NULL) break;
    rdm__mutex_unlock(&queue->lock);
    finish_batch(worker, queue, batch, status);
    rdm__mutex_lock(&queue->lock);
  }
  if (rdm__runtime_thread_enters_driver()) {
    enqueue_callback(queue);
    rdm__runtime_thread_left_driver();
  }
  bool has_capture = queue->capture_is_left && !rdm__device_has_faulted(queue->device);
  if (queue->completions.first_pending == NULL && !has_capture) deactivate(worker, queue);
  rdm__mutex_unlock(&queue->lock);
}

/* Waits for a signal, or for the time to look. Gives the queues that were active; only this thread removes any. */
static rdm__queue *next_round(rdm__completion_worker *worker, bool *out_look) {
  rdm__mutex_lock(&worker->lock);
  uint64_t deadline = worker->active != NULL ? rdm__deadline_ns(rdm__now_ns(), look_interval_ns) : UINT64_MAX;
  while (!worker->is_signalled && (deadline == UINT64_MAX || rdm__now_ns() < deadline)) {
    rdm__condition_wait(&worker->wake, &worker->lock, deadline);
  }
  *out_look = !worker->is_signalled;
  worker->is_signalled = false;
  rdm__queue *active = worker->active;
  rdm__mutex_unlock(&worker->lock);
  return active;
}

static void *worker_main(void *argument) {
  rdm__completion_worker *worker = argument;
  uint64_t last_look_ns = rdm__now_ns();
  for (;;) {
    bool look = false;
    rdm__queue *queue = next_round(worker, &look);
    if (rdm__runtime_is_over()) return NULL;
    /* Signals that keep coming from one stream must not keep the thread from looking at the others. */
    uint64_t now = rdm__now_ns();
    look = look || now - last_look_ns >= look_interval_ns;
    if (look) last_look_ns = now;
    while (queue != NULL) {
      rdm__mutex_lock(&worker->lock);
      rdm__queue *next = queue->completions.next_active;
      rdm__mutex_unlock(&worker->lock);
      progress(worker, queue, look);
      queue = next;
    }
  }
}

static rdm_status start_thread(rdm__completion_worker *worker) {
  int result = rdm__library_thread_start(worker_main, worker);
  if (result == 0) return RDM_OK;
  return rdm__fail(RDM_ERROR_RESOURCE, "the completion thread of device %d can not be started: error %d",
                   worker->device->index, result);
}

rdm_status rdm__completion_worker_start(rdm__device *device) {
  if (worker_of(device) != NULL) return RDM_OK;
  rdm_status status = RDM_OK;
  rdm__mutex_lock(&device->threads_lock);
  if (worker_of(device) == NULL) {
    rdm__completion_worker *worker = calloc(1, sizeof *worker);
    if (worker == NULL) {
      status = rdm__fail(RDM_ERROR_OUT_OF_MEMORY, "no memory for the completion thread of device %d", device->index);
    } else {
      worker->device = device;
      rdm__mutex_init(&worker->lock, RDM__RANK_LEAF);
      rdm__condition_init(&worker->wake);
      rdm__condition_init(&worker->finished);
      status = start_thread(worker);
      if (status == RDM_OK) {
        atomic_store_explicit(&device->worker, worker, memory_order_release);
      } else {
        free(worker);
      }
    }
  }
  rdm__mutex_unlock(&device->threads_lock);
  return status;
}

rdm_status rdm__completions_wait(rdm__queue *queue, uint64_t batch_count, const rdm__wait_limit *limit) {
  rdm__assert_no_lock_held();
  rdm__completions *completions = &queue->completions;
  if (atomic_load_explicit(&completions->batches_finished, memory_order_acquire) >= batch_count) return RDM_OK;
  rdm__completion_worker *worker = worker_of(queue->device);
  rdm_status status = RDM_OK;
  uint64_t since_ns = rdm__wait_begins();
  rdm__mutex_lock(&worker->lock);
  while (status == RDM_OK && atomic_load_explicit(&completions->batches_finished, memory_order_acquire) < batch_count) {
    uint64_t now = rdm__now_ns();
    if (now >= limit->deadline_ns) {
      status = RDM_ERROR_TIMEOUT;
      break;
    }
    uint64_t next_look = rdm__deadline_ns(now, look_interval_ns);
    rdm__condition_wait(&worker->finished, &worker->lock,
                        next_look < limit->deadline_ns ? next_look : limit->deadline_ns);
    status = rdm__runtime_check();
    /* The handlers are told of a fault too, but by a thread that may itself be stuck in the driver. */
    if (status == RDM_OK) status = rdm__device_check(queue->device);
  }
  rdm__mutex_unlock(&worker->lock);
  rdm__wait_ended(since_ns);
  /* With no leaf held, since it logs. */
  if (status != RDM_ERROR_TIMEOUT) return status;
  return rdm__wait_limit_reached(limit, "waiting for completion handlers", queue->device->index);
}
