/* The library's evaluation of arange * 2 + 1 as a graph: one launch, an event, and a wait. Every element is checked. */
#include "designs.h"
#include "evaluation.h"

#include <stdio.h>

typedef struct state {
  rdm__bench_state base;
  rdm_device device;
  rdm_stream stream;
  rdm_encoder encoder;
  rdm_event event;
  rdm_graph graph;
  void *device_memory;
  void *host_memory;
} state;

static rdm_status launch(const state *own, rdm_module module, const char *name, void **arguments) {
  const rdm_launch_config config = {
      .struct_size = sizeof config, .grid = {1, 1, 1}, .block = {RDM__BENCH_ELEMENTS, 1, 1}};
  rdm_kernel kernel;
  rdm_status status = rdm_module_get_kernel(module, name, &kernel);
  return status != RDM_OK ? status : rdm_encoder_launch(own->encoder, kernel, &config, arguments, 3);
}

static rdm_status submit(state *own, rdm_module module) {
  float start = 0;
  float step = 1;
  float factor = 2;
  float addend = 1;
  void *in = own->device_memory;
  rdm_status status = launch(own, module, "bench_arange", (void *[]){&in, &start, &step});
  if (status == RDM_OK) status = launch(own, module, "bench_multiply", (void *[]){&in, &in, &factor});
  if (status == RDM_OK) status = launch(own, module, "bench_add", (void *[]){&own->host_memory, &in, &addend});
  return status;
}

static rdm_status make(state *own) {
  const size_t bytes = RDM__BENCH_ELEMENTS * sizeof(float);
  const rdm_module_source source = {
      .struct_size = sizeof source, .name = "rdm_bench", .source = rdm__bench_evaluation_source};
  rdm_module module = {0};
  rdm_status status = rdm_device_get(own->base.device_index, &own->device);
  if (status == RDM_OK) status = rdm_stream_create(own->base.device_index, &own->stream);
  if (status == RDM_OK) status = rdm_encoder_get(own->stream, &own->encoder);
  if (status == RDM_OK) status = rdm_event_create(own->device, RDM_EVENT_DEFAULT, &own->event);
  if (status == RDM_OK) status = rdm_memory_allocate(own->device, bytes, &own->device_memory);
  if (status == RDM_OK) status = rdm_host_memory_allocate(own->device, bytes, &own->host_memory);
  if (status == RDM_OK) status = rdm_module_get(own->device, &source, &module);
  if (status == RDM_OK) status = rdm_encoder_begin_capture(own->encoder);
  if (status == RDM_OK) status = submit(own, module);
  if (status == RDM_OK) status = rdm_encoder_end_capture(own->encoder, &own->graph);
  return status;
}

static void begin(void *memory) {
  state *own = memory;
  rdm__bench_check(&own->base, make(own), "capturing a graph");
}

static void run(void *memory, uint64_t iterations) {
  state *own = memory;
  rdm_status failed = RDM_OK;
  int wrong = 0;
  for (uint64_t i = 0; i < iterations && failed == RDM_OK; i++) {
    failed = rdm_encoder_launch_graph(own->encoder, own->graph);
    if (failed == RDM_OK) failed = rdm_encoder_record_event(own->encoder, own->event);
    if (failed == RDM_OK) failed = rdm_event_wait(own->event, RDM_WAIT_FOREVER);
    wrong += rdm__bench_count_wrong(own->host_memory);
  }
  rdm__bench_check(&own->base, failed, "launching a graph");
  if (wrong != 0 && own->base.error[0] == '\0') {
    snprintf(own->base.error, sizeof own->base.error, "%d wrong elements in evaluations by graphs", wrong);
  }
}

static void end(void *memory) {
  state *own = memory;
  rdm_status status = RDM_OK;
  if (own->graph.bits != 0) status = rdm_graph_release(own->graph);
  if (own->event.bits != 0) status |= rdm_event_release(own->event);
  if (own->stream.bits != 0) status |= rdm_stream_release(own->stream);
  status |= rdm_memory_free(own->device, own->device_memory);
  status |= rdm_host_memory_free(own->device, own->host_memory);
  rdm__bench_check(&own->base, status, "ending a graph");
}

const rdm__bench_design rdm__bench_graph = {
    .name = "evaluation by a graph", .state_bytes = sizeof(state), .begin = begin, .run = run, .end = end};
