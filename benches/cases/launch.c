/* The library's launch of an empty kernel, each thread on its own stream; and making a device current. */
#include "designs.h"
#include "kernels.h"

typedef struct state {
  rdm__bench_state base;
  rdm_device device;
  rdm_stream stream;
  rdm_encoder encoder;
  rdm_kernel kernel;
} state;

static void begin_current(void *memory) {
  state *own = memory;
  rdm__bench_check(&own->base, rdm_device_get(own->base.device_index, &own->device), "looking a device up");
}

static void run_current(void *memory, uint64_t iterations) {
  state *own = memory;
  rdm_status failed = RDM_OK;
  for (uint64_t i = 0; i < iterations; i++) failed |= rdm_device_make_current(own->device);
  rdm__bench_check(&own->base, failed, "making a device current");
}

static void begin_launch(void *memory) {
  state *own = memory;
  begin_current(memory);
  rdm__bench_check(&own->base, rdm_stream_create(own->base.device_index, &own->stream), "creating a stream");
  rdm__bench_check(&own->base, rdm_encoder_get(own->stream, &own->encoder), "looking an encoder up");
  const rdm_module_source source = {
      .struct_size = sizeof source, .name = "rdm_bench", .source = rdm__bench_empty_source};
  rdm_module module;
  rdm_status status = rdm_module_get(own->device, &source, &module);
  if (status == RDM_OK) status = rdm_module_get_kernel(module, "bench_empty", &own->kernel);
  rdm__bench_check(&own->base, status, "compiling a kernel");
}

/* The last wait counts, as it does for the driver: a launch that only fills a queue is not done. */
static void run_launch(void *memory, uint64_t iterations) {
  state *own = memory;
  const rdm_launch_config config = {.struct_size = sizeof config, .grid = {1, 1, 1}, .block = {1, 1, 1}};
  rdm_status failed = RDM_OK;
  for (uint64_t i = 0; i < iterations; i++) {
    failed |= rdm_encoder_launch(own->encoder, own->kernel, &config, NULL, 0);
  }
  failed |= rdm_stream_synchronize(own->stream, RDM_WAIT_FOREVER);
  rdm__bench_check(&own->base, failed, "launching a kernel");
}

static void end_launch(void *memory) {
  state *own = memory;
  if (own->stream.bits != 0) rdm__bench_check(&own->base, rdm_stream_release(own->stream), "releasing a stream");
}

const rdm__bench_design rdm__bench_make_current = {
    .name = "make current", .state_bytes = sizeof(state), .begin = begin_current, .run = run_current};

const rdm__bench_design rdm__bench_launch = {
    .name = "launch", .state_bytes = sizeof(state), .begin = begin_launch, .run = run_launch, .end = end_launch};
