#include "driver/sim/capture.h"

#include "driver/sim/graph.h"
#include "driver/sim/thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct rdm__sim_capture {
  atomic_uint references;
  /* Guarded by the lock. */
  int status;
  /* Never change. */
  int mode;
  int device;
  uint64_t thread;
  /* The graph that is being made, until the capture ends; guarded by the lock. */
  rdm__sim_graph *graph;
  rdm__sim_capture *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Those under way; and how many, so that a call takes no lock while there are none. */
static rdm__sim_capture *captures;
static atomic_uint capture_count;

rdm__sim_capture *rdm__sim_capture_begin(int mode, int device) {
  rdm__sim_capture *capture = calloc(1, sizeof *capture);
  if (capture != NULL) capture->graph = rdm__sim_graph_create(device);
  if (capture == NULL || capture->graph == NULL) {
    free(capture);
    return NULL;
  }
  atomic_init(&capture->references, 2);
  capture->status = RDM_HIP_CAPTURE_ACTIVE;
  capture->mode = mode;
  capture->device = device;
  capture->thread = rdm__sim_this_thread()->number;
  pthread_mutex_lock(&lock);
  capture->next = captures;
  captures = capture;
  atomic_fetch_add(&capture_count, 1);
  pthread_mutex_unlock(&lock);
  return capture;
}

void rdm__sim_capture_retain(rdm__sim_capture *capture) {
  atomic_fetch_add_explicit(&capture->references, 1, memory_order_relaxed);
}

void rdm__sim_capture_release(rdm__sim_capture *capture) {
  if (capture == NULL || atomic_fetch_sub_explicit(&capture->references, 1, memory_order_acq_rel) != 1) return;
  rdm__sim_graph_release(capture->graph);
  free(capture);
}

int rdm__sim_capture_status(rdm__sim_capture *capture) {
  if (capture == NULL) return RDM_HIP_CAPTURE_NONE;
  pthread_mutex_lock(&lock);
  int status = capture->status;
  pthread_mutex_unlock(&lock);
  return status;
}

/* With the lock held. */
static void invalidate(rdm__sim_capture *capture) {
  if (capture->status == RDM_HIP_CAPTURE_ACTIVE) capture->status = RDM_HIP_CAPTURE_IS_INVALID;
}

int rdm__sim_capture_conflict(rdm__sim_capture *capture, int error) {
  pthread_mutex_lock(&lock);
  invalidate(capture);
  pthread_mutex_unlock(&lock);
  return error;
}

bool rdm__sim_capture_add(rdm__sim_capture *capture, rdm__sim_work *work) {
  pthread_mutex_lock(&lock);
  bool takes = capture->status == RDM_HIP_CAPTURE_ACTIVE;
  if (takes) rdm__sim_graph_add(capture->graph, work);
  pthread_mutex_unlock(&lock);
  return takes;
}

int rdm__sim_capture_end(rdm__sim_capture *capture, void **out_graph) {
  if (capture->mode != RDM_HIP_CAPTURE_MODE_RELAXED && capture->thread != rdm__sim_this_thread()->number) {
    return RDM_HIP_CAPTURE_WRONG_THREAD;
  }
  int result = RDM_HIP_CAPTURE_UNMATCHED;
  bool ended = false;
  rdm__sim_graph *graph = NULL;
  pthread_mutex_lock(&lock);
  rdm__sim_capture **place = &captures;
  while (*place != NULL && *place != capture) place = &(*place)->next;
  if (*place == capture) {
    *place = capture->next;
    atomic_fetch_sub(&capture_count, 1);
    result = capture->status == RDM_HIP_CAPTURE_ACTIVE ? RDM_HIP_SUCCESS : RDM_HIP_CAPTURE_INVALIDATED;
    capture->status = RDM_HIP_CAPTURE_NONE;
    graph = capture->graph;
    capture->graph = NULL;
    ended = true;
  }
  pthread_mutex_unlock(&lock);
  if (result == RDM_HIP_SUCCESS) {
    result = rdm__sim_graph_publish(graph, out_graph);
  } else {
    rdm__sim_graph_release(graph);
  }
  if (ended) rdm__sim_capture_release(capture);
  return result;
}

int rdm__sim_capture_exchange_mode(int mode) {
  if (mode < RDM_HIP_CAPTURE_MODE_GLOBAL || mode > RDM_HIP_CAPTURE_MODE_RELAXED) return -1;
  rdm__sim_thread *thread = rdm__sim_this_thread();
  int before = thread->capture_mode;
  thread->capture_mode = mode;
  return before;
}

/* What could disturb a capture, as CUDA 13.0 on a real GPU has it; to load a module is added. */
static bool is_unsafe(rdm__call call) {
  switch (call) {
    case RDM__CALL_memory_allocate:
    case RDM__CALL_memory_free:
    case RDM__CALL_host_memory_allocate:
    case RDM__CALL_host_memory_free:
    case RDM__CALL_event_query:
    case RDM__CALL_event_synchronize:
    case RDM__CALL_stream_query:
    case RDM__CALL_stream_synchronize:
    case RDM__CALL_device_synchronize:
    case RDM__CALL_module_load_data:
    case RDM__CALL_module_unload:
      return true;
    default:
      return false;
  }
}

static bool forbids(const rdm__sim_capture *capture, const rdm__sim_thread *thread, rdm__call call, int device) {
  if (call == RDM__CALL_device_synchronize && capture->device == device) return true;
  if (thread->capture_mode == RDM_HIP_CAPTURE_MODE_RELAXED) return false;
  if (capture->thread == thread->number) return capture->mode != RDM_HIP_CAPTURE_MODE_RELAXED;
  return thread->capture_mode == RDM_HIP_CAPTURE_MODE_GLOBAL && capture->mode == RDM_HIP_CAPTURE_MODE_GLOBAL;
}

int rdm__sim_capture_check_call(rdm__call call, int device) {
  if (atomic_load(&capture_count) == 0 || !is_unsafe(call)) return RDM_HIP_SUCCESS;
  const rdm__sim_thread *thread = rdm__sim_this_thread();
  int result = RDM_HIP_SUCCESS;
  pthread_mutex_lock(&lock);
  for (rdm__sim_capture *capture = captures; capture != NULL; capture = capture->next) {
    if (!forbids(capture, thread, call, device)) continue;
    invalidate(capture);
    result = RDM_HIP_CAPTURE_UNSUPPORTED;
  }
  pthread_mutex_unlock(&lock);
  return result;
}
