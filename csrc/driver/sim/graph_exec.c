#include "driver/sim/graph_exec.h"

#include "driver/sim/graph.h"
#include "driver/sim/object.h"

#include <stdlib.h>

typedef struct graph_exec {
  rdm__sim_object object;
  rdm__sim_graph *graph;
} graph_exec;

/* One launch. */
typedef struct graph_work {
  rdm__sim_work work;
  rdm__sim_graph *graph;
} graph_work;

static void destroy_exec(rdm__sim_object *object) {
  graph_exec *exec = (graph_exec *)object;
  rdm__sim_graph_release(exec->graph);
  free(exec);
}

int rdm__sim_graph_instantiate(const void *graph_handle, void **out_executable) {
  rdm__sim_graph *graph = rdm__sim_graph_get(graph_handle);
  if (graph == NULL) return RDM_HIP_INVALID_VALUE;
  graph_exec *exec = calloc(1, sizeof *exec);
  if (exec == NULL) {
    rdm__sim_graph_release(graph);
    return RDM_HIP_OUT_OF_MEMORY;
  }
  rdm__sim_object_init(&exec->object, RDM__SIM_GRAPH_EXEC, rdm__sim_graph_device_index(graph), destroy_exec);
  exec->graph = graph;
  *out_executable = rdm__sim_handle_add(&exec->object);
  if (*out_executable != NULL) return RDM_HIP_SUCCESS;
  rdm__sim_object_release(&exec->object);
  return RDM_HIP_OUT_OF_MEMORY;
}

int rdm__sim_graph_exec_destroy(const void *executable) {
  graph_exec *exec = rdm__sim_handle_remove(executable, RDM__SIM_GRAPH_EXEC);
  if (exec == NULL) return RDM_HIP_INVALID_VALUE;
  rdm__sim_object_release(&exec->object);
  return RDM_HIP_SUCCESS;
}

static int run_graph(rdm__sim_work *work, rdm__sim_stream *stream) {
  return rdm__sim_graph_run(((graph_work *)work)->graph, stream);
}

static void finish_graph(rdm__sim_work *work, int fault) {
  (void)fault;
  rdm__sim_graph_release(((graph_work *)work)->graph);
  free(work);
}

static int submit(rdm__sim_graph *graph, rdm__sim_stream *stream) {
  if (rdm__sim_graph_device_index(graph) != rdm__sim_stream_device_index(stream)) return RDM_HIP_INVALID_VALUE;
  graph_work *work = calloc(1, sizeof *work);
  if (work == NULL) return RDM_HIP_OUT_OF_MEMORY;
  work->work.run = run_graph;
  work->work.finish = finish_graph;
  work->work.repeats = true;
  work->graph = graph;
  rdm__sim_graph_retain(graph);
  return rdm__sim_stream_submit(stream, &work->work);
}

int rdm__sim_graph_launch(const void *executable, rdm__sim_stream *stream) {
  graph_exec *exec = rdm__sim_handle_get(executable, RDM__SIM_GRAPH_EXEC);
  if (exec == NULL) return RDM_HIP_INVALID_VALUE;
  int result = submit(exec->graph, stream);
  rdm__sim_object_release(&exec->object);
  return result;
}
