#include "driver/sim/callback.h"

#include "driver/sim/thread.h"
#include "driver/sim/worker_thread.h"

#include <pthread.h>
#include <stdlib.h>

/* One callback, on the stack of the worker that waits for it. */
typedef struct pending_callback {
  struct pending_callback *next;
  rdm__host_function function;
  void *user_data;
  bool over;
  pthread_cond_t changed;
} pending_callback;

struct rdm__sim_callback_queue {
  pthread_mutex_t lock;
  pthread_cond_t arrived;
  bool started;
  /* Set by the fault, for ever. */
  bool closed;
  pending_callback *first;
  pending_callback **last;
};

rdm__sim_callback_queue *rdm__sim_callback_queue_create(void) {
  rdm__sim_callback_queue *queue = calloc(1, sizeof *queue);
  if (queue == NULL) return NULL;
  queue->last = &queue->first;
  pthread_mutex_init(&queue->lock, NULL);
  pthread_cond_init(&queue->arrived, NULL);
  return queue;
}

static void *run_callbacks(void *argument) {
  rdm__sim_callback_queue *queue = argument;
  rdm__sim_this_thread()->in_callback = true;
  pthread_mutex_lock(&queue->lock);
  for (;;) {
    while (queue->first == NULL) pthread_cond_wait(&queue->arrived, &queue->lock);
    pending_callback *callback = queue->first;
    queue->first = callback->next;
    if (queue->first == NULL) queue->last = &queue->first;
    pthread_mutex_unlock(&queue->lock);
    callback->function(callback->user_data);
    pthread_mutex_lock(&queue->lock);
    callback->over = true;
    pthread_cond_signal(&callback->changed);
  }
  return NULL;
}

bool rdm__sim_callback_queue_start(rdm__sim_callback_queue *queue) {
  pthread_mutex_lock(&queue->lock);
  if (!queue->started) queue->started = rdm__sim_worker_thread_start(run_callbacks, queue);
  bool started = queue->started;
  pthread_mutex_unlock(&queue->lock);
  return started;
}

void rdm__sim_callback_run(rdm__sim_callback_queue *queue, rdm__host_function function, void *user_data) {
  pending_callback callback = {.function = function, .user_data = user_data};
  pthread_cond_init(&callback.changed, NULL);
  pthread_mutex_lock(&queue->lock);
  if (!queue->closed) {
    *queue->last = &callback;
    queue->last = &callback.next;
    pthread_cond_signal(&queue->arrived);
    while (!callback.over) pthread_cond_wait(&callback.changed, &queue->lock);
  }
  pthread_mutex_unlock(&queue->lock);
  pthread_cond_destroy(&callback.changed);
}

void rdm__sim_callback_queue_lock(rdm__sim_callback_queue *queue) {
  pthread_mutex_lock(&queue->lock);
}

void rdm__sim_callback_queue_drop_and_unlock(rdm__sim_callback_queue *queue) {
  pending_callback *callback = queue->first;
  queue->closed = true;
  queue->first = NULL;
  queue->last = &queue->first;
  while (callback != NULL) {
    pending_callback *next = callback->next;
    callback->over = true;
    pthread_cond_signal(&callback->changed);
    callback = next;
  }
  pthread_mutex_unlock(&queue->lock);
}
