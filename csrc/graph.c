#include "graph.h"

#include "runtime.h"
#include "status.h"
#include "visit.h"

#include <stdlib.h>

enum { DESTROYED_AT_ONCE = 64 };

static bool retire(rdm__object *object) {
  rdm__graph *graph = (rdm__graph *)object;
  rdm__device *device = graph->queue->device;
  rdm__mutex_lock(&device->released_graphs.lock);
  /* Where there is no memory for it, what the driver has of it is lost. */
  bool is_kept = rdm__pointer_stack_push(&device->released_graphs.idle, graph);
  rdm__mutex_unlock(&device->released_graphs.lock);
  return !is_kept;
}

static rdm__handle_table graphs = RDM__HANDLE_TABLE(RDM__HANDLE_GRAPH, rdm__graph, retire);

rdm__graph *rdm__graph_allocate(void) {
  return (rdm__graph *)rdm__handle_allocate(&graphs);
}

void rdm__graph_discard(rdm__graph *graph) {
  rdm__handle_discard(&graphs, &graph->object);
}

rdm_graph rdm__graph_open(rdm__graph *graph) {
  return (rdm_graph){rdm__handle_open(&graphs, &graph->object)};
}

rdm_status rdm__graph_pin(rdm_graph handle, rdm__graph **out_graph) {
  rdm_status status = rdm__runtime_check();
  if (status != RDM_OK) return status;
  rdm__object *object = NULL;
  status = rdm__handle_pin(&graphs, handle.bits, &object);
  if (status == RDM_OK) *out_graph = (rdm__graph *)object;
  return status;
}

void rdm__graph_unpin(rdm__graph *graph) {
  rdm__object_unpin(&graphs, &graph->object);
}

rdm_status rdm_graph_release(rdm_graph handle) {
  if (rdm__runtime_is_over()) return rdm__runtime_release_check();
  return rdm__handle_close(&graphs, handle.bits);
}

/* Some runtimes free what a graph that still runs reads, so the queue that it ran on has to be idle. Where the driver
 * does not say so, such as of a lost device, the graph stays. */
static bool is_idle(rdm__queue *queue) {
  return rdm__queue_poll(queue, "ending released graphs") == RDM_OK;
}

static void destroy(rdm__device *device, rdm__graph *graph) {
  int error = device->driver->graph_exec_destroy(graph->native);
  if (error != RDM_HIP_SUCCESS) {
    rdm__device_note_failure(device, RDM__CALL_graph_exec_destroy, error, "ending released graphs");
  }
  graph->native = NULL;
  rdm__graph_discard(graph);
}

/* False where it has to stay for a later call. */
static bool try_to_destroy(rdm__device *device, rdm__graph *graph) {
  rdm__capture_guard guard;
  if (rdm__visit_begin(device, &guard) != RDM_OK) return false;
  destroy(device, graph);
  rdm__visit_end(device, &guard);
  return true;
}

static rdm__pointer_stack take_released(rdm__pool *pool) {
  rdm__mutex_lock(&pool->lock);
  rdm__pointer_stack taken = pool->idle;
  pool->idle = (rdm__pointer_stack){0};
  rdm__mutex_unlock(&pool->lock);
  return taken;
}

/* What does not fit any more is lost to the driver. */
static void put_back(rdm__pool *pool, rdm__graph *graph) {
  rdm__mutex_lock(&pool->lock);
  (void)rdm__pointer_stack_push(&pool->idle, graph);
  rdm__mutex_unlock(&pool->lock);
}

void rdm__graphs_destroy_released(rdm__device *device) {
  rdm__assert_no_lock_held();
  const rdm_error before = *rdm__thread_error();
  rdm__pointer_stack released = take_released(&device->released_graphs);
  const rdm__queue *asked = NULL;
  bool asked_is_idle = false;
  uint32_t destroyed = 0;
  for (uint32_t i = 0; i < released.count; i++) {
    rdm__graph *graph = released.items[i];
    if (graph->queue != asked && destroyed < DESTROYED_AT_ONCE) {
      asked = graph->queue;
      asked_is_idle = is_idle(graph->queue);
    }
    bool goes = destroyed < DESTROYED_AT_ONCE && asked_is_idle && try_to_destroy(device, graph);
    if (goes) destroyed++;
    if (!goes) put_back(&device->released_graphs, graph);
  }
  free(released.items);
  *rdm__thread_error() = before;
}

void rdm__graphs_count(rdm__handle_totals *out_totals) {
  rdm__handle_count(&graphs, out_totals);
}
