/* The driver's own launch of an empty kernel, each thread on its own stream; and its set-device to the same device. */
#include "designs.h"
#include "kernels.h"
#include "raw_driver.h"

typedef struct state {
  rdm__bench_state base;
  const rdm__bench_raw *raw;
  void *stream;
  void *kernel;
} state;

static void begin_current(void *memory) {
  state *own = memory;
  own->raw = rdm__bench_raw_begin(&own->base);
}

static void run_current(void *memory, uint64_t iterations) {
  state *own = memory;
  int failed = 0;
  for (uint64_t i = 0; i < iterations; i++)
    failed = rdm__bench_first(failed, own->raw->set_device(own->base.device_index));
  rdm__bench_check_raw(&own->base, failed, "setting the device");
}

static void begin_launch(void *memory) {
  state *own = memory;
  begin_current(memory);
  if (own->raw == NULL) return;
  own->kernel = rdm__bench_raw_kernel(&own->base, rdm__bench_empty_source, "bench_empty");
  rdm__bench_check_raw(&own->base, own->raw->stream_create(&own->stream, RDM__RAW_STREAM_NON_BLOCKING),
                       "making a stream");
}

static void run_launch(void *memory, uint64_t iterations) {
  state *own = memory;
  int failed = 0;
  for (uint64_t i = 0; i < iterations; i++) {
    failed =
        rdm__bench_first(failed, own->raw->launch_kernel(own->kernel, 1, 1, 1, 1, 1, 1, 0, own->stream, NULL, NULL));
  }
  failed = rdm__bench_first(failed, own->raw->stream_synchronize(own->stream));
  rdm__bench_check_raw(&own->base, failed, "launching a kernel");
}

static void end_launch(void *memory) {
  state *own = memory;
  if (own->stream != NULL) rdm__bench_check_raw(&own->base, own->raw->stream_destroy(own->stream), "ending a stream");
}

const rdm__bench_design rdm__bench_driver_set_device = {
    .name = "driver set-device", .state_bytes = sizeof(state), .begin = begin_current, .run = run_current};

const rdm__bench_design rdm__bench_driver_launch = {
    .name = "driver launch", .state_bytes = sizeof(state), .begin = begin_launch, .run = run_launch, .end = end_launch};
