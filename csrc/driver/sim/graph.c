#include "driver/sim/graph.h"

#include "driver/driver.h"
#include "driver/sim/object.h"

#include <stdlib.h>

struct rdm__sim_graph {
  rdm__sim_object object;
  rdm__sim_work *first;
  rdm__sim_work **last;
};

static void destroy_graph(rdm__sim_object *object) {
  rdm__sim_graph *graph = (rdm__sim_graph *)object;
  rdm__sim_work *work = graph->first;
  while (work != NULL) {
    rdm__sim_work *next = work->next;
    work->finish(work, RDM_HIP_SUCCESS);
    work = next;
  }
  free(graph);
}

rdm__sim_graph *rdm__sim_graph_create(int device) {
  rdm__sim_graph *graph = calloc(1, sizeof *graph);
  if (graph == NULL) return NULL;
  rdm__sim_object_init(&graph->object, RDM__SIM_GRAPH, device, destroy_graph);
  graph->last = &graph->first;
  return graph;
}

void rdm__sim_graph_release(rdm__sim_graph *graph) {
  if (graph != NULL) rdm__sim_object_release(&graph->object);
}

void rdm__sim_graph_add(rdm__sim_graph *graph, rdm__sim_work *work) {
  work->next = NULL;
  *graph->last = work;
  graph->last = &work->next;
}

int rdm__sim_graph_publish(rdm__sim_graph *graph, void **out_handle) {
  *out_handle = rdm__sim_handle_add(&graph->object);
  if (*out_handle != NULL) return RDM_HIP_SUCCESS;
  rdm__sim_graph_release(graph);
  return RDM_HIP_OUT_OF_MEMORY;
}

int rdm__sim_graph_destroy(const void *handle) {
  rdm__sim_graph *graph = rdm__sim_handle_remove(handle, RDM__SIM_GRAPH);
  if (graph == NULL) return RDM_HIP_INVALID_VALUE;
  rdm__sim_graph_release(graph);
  return RDM_HIP_SUCCESS;
}

rdm__sim_graph *rdm__sim_graph_get(const void *handle) {
  return rdm__sim_handle_get(handle, RDM__SIM_GRAPH);
}

void rdm__sim_graph_retain(rdm__sim_graph *graph) {
  rdm__sim_object_retain(&graph->object);
}

int rdm__sim_graph_device_index(const rdm__sim_graph *graph) {
  return graph->object.device;
}

int rdm__sim_graph_run(const rdm__sim_graph *graph, rdm__sim_stream *stream) {
  int fault = RDM_HIP_SUCCESS;
  rdm__sim_work *work = graph->first;
  for (; work != NULL && fault == RDM_HIP_SUCCESS; work = work->next) fault = work->run(work, stream);
  return fault;
}
