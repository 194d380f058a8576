/*
 * Graphs: the work that a capture collected, to be run again and again.
 *
 * It runs in the order in which it was submitted, on the thread of the stream that the graph is launched on: one of the
 * orders that the captured streams and their events allow. A graph never changes once it is published.
 */
#ifndef RDM_SIM_GRAPH_H
#define RDM_SIM_GRAPH_H

#include "driver/sim/work.h"

typedef struct rdm__sim_graph rdm__sim_graph;

/* An empty graph with one reference, the caller's. NULL where memory is short. */
rdm__sim_graph *rdm__sim_graph_create(int device);

/* Adds work, taking it over. Called by one thread at a time, before the graph is published. */
void rdm__sim_graph_add(rdm__sim_graph *graph, rdm__sim_work *work);

/* Gives the graph a handle, which takes over the caller's reference. These two: 0 or HIP's error. */
int rdm__sim_graph_publish(rdm__sim_graph *graph, void **out_handle);
int rdm__sim_graph_destroy(const void *handle);

/* The graph of a handle with one more reference, NULL where the handle is not one. */
rdm__sim_graph *rdm__sim_graph_get(const void *handle);
void rdm__sim_graph_retain(rdm__sim_graph *graph);
/* NULL is fine. */
void rdm__sim_graph_release(rdm__sim_graph *graph);

int rdm__sim_graph_device_index(const rdm__sim_graph *graph);

/* Runs the work on the stream's thread. Returns 0, or the fault that ended it. */
int rdm__sim_graph_run(const rdm__sim_graph *graph, rdm__sim_stream *stream);

#endif
