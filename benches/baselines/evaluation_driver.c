/*
 * arange * 2 + 1 of 256 elements as a programmer writes it who has nothing but the driver: three launches on the
 * thread's own stream, a copy to pinned memory, an event, and a loop that asks for it. Every element is checked. And
 * the same launches as a graph, whose last kernel writes to the pinned memory.
 */
#include "designs.h"
#include "evaluation.h"
#include "raw_driver.h"

#include <sched.h>
#include <stdio.h>

typedef struct state {
  rdm__bench_state base;
  const rdm__bench_raw *raw;
  void *arange;
  void *multiply;
  void *add;
  void *stream;
  void *event;
  /* The executable graph, null where there is none. */
  void *graph;
  void *device_memory;
  void *host_memory;
} state;

static void begin(void *memory) {
  state *own = memory;
  rdm__bench_state *base = &own->base;
  const rdm__bench_raw *raw = own->raw = rdm__bench_raw_begin(base);
  if (raw == NULL) return;
  own->arange = rdm__bench_raw_kernel(base, rdm__bench_evaluation_source, "bench_arange");
  own->multiply = rdm__bench_raw_kernel(base, rdm__bench_evaluation_source, "bench_multiply");
  own->add = rdm__bench_raw_kernel(base, rdm__bench_evaluation_source, "bench_add");
  const size_t bytes = RDM__BENCH_ELEMENTS * sizeof(float);
  rdm__bench_check_raw(base, raw->stream_create(&own->stream, RDM__RAW_STREAM_NON_BLOCKING), "making a stream");
  rdm__bench_check_raw(base, raw->event_create(&own->event, RDM__RAW_EVENT_DISABLE_TIMING), "making an event");
  rdm__bench_check_raw(base, raw->memory_allocate(&own->device_memory, bytes), "allocating device memory");
  rdm__bench_check_raw(base, raw->host_memory_allocate(&own->host_memory, bytes, 0), "allocating pinned memory");
}

static int launch(const state *own, void *kernel, void **arguments) {
  return own->raw->launch_kernel(kernel, 1, 1, 1, RDM__BENCH_ELEMENTS, 1, 1, 0, own->stream, arguments, NULL);
}

/* The last kernel's result goes to `result`. */
static int launch_all(const state *own, void *result) {
  float start = 0;
  float step = 1;
  float factor = 2;
  float addend = 1;
  void *in = own->device_memory;
  int failed = launch(own, own->arange, (void *[]){&in, &start, &step});
  failed = rdm__bench_first(failed, launch(own, own->multiply, (void *[]){&in, &in, &factor}));
  return rdm__bench_first(failed, launch(own, own->add, (void *[]){&result, &in, &addend}));
}

static int launch_and_copy(const state *own) {
  int failed = launch_all(own, own->device_memory);
  int copied = own->raw->memory_copy_async(own->host_memory, own->device_memory, RDM__BENCH_ELEMENTS * sizeof(float),
                                           RDM__RAW_DEVICE_TO_HOST, own->stream);
  return rdm__bench_first(failed, copied);
}

static int evaluate(state *own) {
  const rdm__bench_raw *raw = own->raw;
  int failed = own->graph != NULL ? raw->graph_launch(own->graph, own->stream) : launch_and_copy(own);
  failed = rdm__bench_first(failed, raw->event_record(own->event, own->stream));
  if (failed != 0) return failed;
  int error;
  while ((error = raw->event_query(own->event)) == RDM__RAW_NOT_READY) {
    /* A simulated GPU runs on these processors, and needs one. */
    if (raw->is_simulated) sched_yield();
  }
  return error;
}

static void begin_graph(void *memory) {
  state *own = memory;
  begin(memory);
  if (own->raw == NULL || own->base.error[0] != '\0') return;
  const rdm__bench_raw *raw = own->raw;
  void *captured = NULL;
  int failed = raw->stream_begin_capture(own->stream, RDM__RAW_CAPTURE_MODE_RELAXED);
  failed = rdm__bench_first(failed, launch_all(own, own->host_memory));
  failed = rdm__bench_first(failed, raw->stream_end_capture(own->stream, &captured));
  failed = rdm__bench_first(failed, raw->graph_instantiate(&own->graph, captured, 0));
  if (captured != NULL) failed = rdm__bench_first(failed, raw->graph_destroy(captured));
  rdm__bench_check_raw(&own->base, failed, "capturing a graph");
}

static void run(void *memory, uint64_t iterations) {
  state *own = memory;
  uint64_t wrong = 0;
  int failed = 0;
  for (uint64_t i = 0; i < iterations && failed == 0; i++) {
    failed = evaluate(own);
    wrong += (uint64_t)rdm__bench_count_wrong(own->host_memory);
  }
  rdm__bench_check_raw(&own->base, failed, "evaluating");
  if (wrong != 0 && own->base.error[0] == '\0') {
    snprintf(own->base.error, sizeof own->base.error, "%llu wrong elements in hand-written evaluations",
             (unsigned long long)wrong);
  }
}

static void end(void *memory) {
  state *own = memory;
  if (own->raw == NULL) return;
  if (own->stream != NULL) own->raw->stream_synchronize(own->stream);
  if (own->graph != NULL) own->raw->graph_exec_destroy(own->graph);
  if (own->host_memory != NULL) own->raw->host_memory_free(own->host_memory);
  if (own->device_memory != NULL) own->raw->memory_free(own->device_memory);
  if (own->event != NULL) own->raw->event_destroy(own->event);
  if (own->stream != NULL) own->raw->stream_destroy(own->stream);
}

const rdm__bench_design rdm__bench_driver_evaluation = {
    .name = "hand-written driver code", .state_bytes = sizeof(state), .begin = begin, .run = run, .end = end};

const rdm__bench_design rdm__bench_driver_graph = {
    .name = "driver graph", .state_bytes = sizeof(state), .begin = begin_graph, .run = run, .end = end};
