/* Executable graphs: what a graph is instantiated to, and launched as. All give 0 or HIP's error. */
#ifndef RDM_SIM_GRAPH_EXEC_H
#define RDM_SIM_GRAPH_EXEC_H

#include "driver/sim/stream.h"

int rdm__sim_graph_instantiate(const void *graph, void **out_executable);

/* On a stream of the device that the graph was captured on. */
int rdm__sim_graph_launch(const void *executable, rdm__sim_stream *stream);

/* Launches under way complete. */
int rdm__sim_graph_exec_destroy(const void *executable);

#endif
