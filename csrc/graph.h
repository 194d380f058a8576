/*
 * Graphs: handles to what was captured of one stream, as the driver's executable graph.
 *
 * Threading. A graph is launched on its own stream alone, under its queue's lock, so that no two threads are in the
 * driver with one graph. The release of a graph makes no driver call: the graph waits in its device's list, which the
 * next end of a capture clears as far as the queues that its graphs ran on are idle.
 */
#ifndef RDM_GRAPH_H
#define RDM_GRAPH_H

#include "queue.h"

typedef struct rdm__graph {
  rdm__object object;
  /* The handle of the stream, which the queue may no longer serve. */
  rdm_stream stream;
  rdm__queue *queue;
  /* The driver's executable graph. */
  void *native;
} rdm__graph;

/* A graph that is the caller's alone, to be opened or discarded. Null, with the last error set, where memory ran out.
 */
rdm__graph *rdm__graph_allocate(void);
void rdm__graph_discard(rdm__graph *graph);
rdm_graph rdm__graph_open(rdm__graph *graph);

/* Pins the graph of a handle; checks the runtime's state first. */
rdm_status rdm__graph_pin(rdm_graph handle, rdm__graph **out_graph);
void rdm__graph_unpin(rdm__graph *graph);

/* Destroys those of the device's released graphs that are idle, 64 at most. What fails is no failure of the caller's.
 * Called with no lock held. */
void rdm__graphs_destroy_released(rdm__device *device);

/* For rdm_get_counters: graphs made and ended. */
void rdm__graphs_count(rdm__handle_totals *out_totals);

#endif
