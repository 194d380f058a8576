/* Stream captures and the graphs that come of them. Drivers may have none: then beginning one says so. */
#include "conformance.h"

#include <string.h>

enum { ELEMENTS = 4, LAUNCHES = 5 };

typedef struct place {
  void *stream;
  void *step;
  unsigned *values;
  unsigned *host;
} place;

static place make_place(void) {
  place made = {.stream = make_stream(), .step = make_kernel(make_module(), "step")};
  made.values = make_device_memory(ELEMENTS * sizeof(unsigned));
  made.host = make_host_memory(ELEMENTS * sizeof(unsigned));
  need("memory_set_async", driver->memory_set_async(made.values, 0, ELEMENTS * sizeof(unsigned), made.stream));
  need("stream_synchronize", driver->stream_synchronize(made.stream));
  memset(made.host, 0, ELEMENTS * sizeof(unsigned));
  return made;
}

static int copy_back(const place *at) {
  return driver->memory_copy_async(at->host, at->values, ELEMENTS * sizeof(unsigned), RDM_COPY_DEVICE_TO_HOST,
                                   at->stream);
}

static void *capture(const place *at) {
  void *graph = NULL;
  check_error("graph.begin", driver->stream_begin_capture(at->stream, RDM_HIP_CAPTURE_MODE_RELAXED), 0);
  check_error("graph.launch_is_captured", launch_step(at->step, at->stream, at->values, ELEMENTS), 0);
  check_error("graph.copy_is_captured", copy_back(at), 0);
  check_error("graph.end", driver->stream_end_capture(at->stream, &graph), 0);
  check("graph.is_given", graph != NULL, "the end of a capture gave no graph");
  return graph;
}

static void again_and_again(void) {
  place at = make_place();
  void *graph = capture(&at);
  void *executable = NULL;
  check_error("graph.instantiate", driver->graph_instantiate(&executable, graph, 0), 0);
  check_error("graph.destroy_what_it_was_made_of", driver->graph_destroy(graph), 0);
  need("stream_synchronize", driver->stream_synchronize(at.stream));
  check("graph.nothing_ran", at.host[0] == 0, "a captured copy gave %u", at.host[0]);
  unsigned expected = 0;
  for (int i = 0; i < LAUNCHES; i++) {
    check_error("graph.launch", driver->graph_launch(executable, at.stream), 0);
    expected = expected * 2 + 1;
  }
  need("stream_synchronize", driver->stream_synchronize(at.stream));
  check("graph.runs_in_order", at.host[0] == expected && at.host[ELEMENTS - 1] == expected, "it gave %u, not %u",
        at.host[0], expected);
  check_error("graph.destroy_executable", driver->graph_exec_destroy(executable), 0);
}

static void destroyed_while_it_runs(void) {
  place at = make_place();
  void *graph = capture(&at);
  void *executable = NULL;
  gate held;
  gate_make(&held);
  need("graph_instantiate", driver->graph_instantiate(&executable, graph, 0));
  gate_hold(&held, at.stream);
  need("graph_launch", driver->graph_launch(executable, at.stream));
  /* The library does not rely on this one: it destroys what is idle. */
  check_error("graph.destroy_captured", driver->graph_destroy(graph), 0);
  gate_open(&held);
  need("stream_synchronize", driver->stream_synchronize(at.stream));
  check("graph.outlives_its_capture", at.host[0] == 1, "it gave %u", at.host[0]);
  need("graph_exec_destroy", driver->graph_exec_destroy(executable));
}

static void nothing(void) {
  void *stream = make_stream();
  void *graph = NULL;
  void *executable = NULL;
  need("stream_begin_capture", driver->stream_begin_capture(stream, RDM_HIP_CAPTURE_MODE_RELAXED));
  check_error("graph.end_of_nothing", driver->stream_end_capture(stream, &graph), 0);
  check_error("graph.instantiate_nothing", driver->graph_instantiate(&executable, graph, 0), 0);
  check_error("graph.launch_nothing", driver->graph_launch(executable, stream), 0);
  check_error("graph.null_result", driver->graph_instantiate(NULL, graph, 0), RDM_HIP_INVALID_VALUE);
  check_error("graph.instantiate_null", driver->graph_instantiate(&executable, NULL, 0), RDM_HIP_INVALID_VALUE);
  check_error("graph.launch_null", driver->graph_launch(NULL, stream), RDM_HIP_INVALID_VALUE);
  check_error("graph.destroy_null", driver->graph_exec_destroy(NULL), RDM_HIP_INVALID_VALUE);
  (void)driver->get_last_error();
  need("stream_synchronize", driver->stream_synchronize(stream));
}

const conformance_test graph_tests[] = {
    {"again_and_again", again_and_again, 1},
    {"destroyed_while_it_runs", destroyed_while_it_runs, 1},
    {"nothing", nothing, 1},
    {0},
};
