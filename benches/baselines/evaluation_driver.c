/*
 * arange * 2 + 1 of 256 elements as a programmer writes it who has nothing but the driver: three launches on the
 * thread's own stream, a copy to pinned memory, an event, and a loop that asks for it. Every element is checked.
 */
#include "designs.h"
#include "raw_driver.h"

#include <sched.h>
#include <stdio.h>

enum { ELEMENTS = 256 };

static const char source[] =
    "extern \"C\" __global__ void bench_arange(float *out, float start, float step) {\n"
    "  out[threadIdx.x] = start + step * (float)threadIdx.x;\n"
    "}\n"
    "extern \"C\" __global__ void bench_multiply(float *out, const float *in, float factor) {\n"
    "  out[threadIdx.x] = in[threadIdx.x] * factor;\n"
    "}\n"
    "extern \"C\" __global__ void bench_add(float *out, const float *in, float addend) {\n"
    "  out[threadIdx.x] = in[threadIdx.x] + addend;\n"
    "}\n";

typedef struct state {
  rdm__bench_state base;
  const rdm__bench_raw *raw;
  void *arange;
  void *multiply;
  void *add;
  void *stream;
  void *event;
  void *device_memory;
  void *host_memory;
} state;

static void begin(void *memory) {
  state *own = memory;
  rdm__bench_state *base = &own->base;
  const rdm__bench_raw *raw = own->raw = rdm__bench_raw_begin(base);
  if (raw == NULL) return;
  own->arange = rdm__bench_raw_kernel(base, source, "bench_arange");
  own->multiply = rdm__bench_raw_kernel(base, source, "bench_multiply");
  own->add = rdm__bench_raw_kernel(base, source, "bench_add");
  const size_t bytes = ELEMENTS * sizeof(float);
  rdm__bench_check_raw(base, raw->stream_create(&own->stream, RDM__RAW_STREAM_NON_BLOCKING), "making a stream");
  rdm__bench_check_raw(base, raw->event_create(&own->event, RDM__RAW_EVENT_DISABLE_TIMING), "making an event");
  rdm__bench_check_raw(base, raw->memory_allocate(&own->device_memory, bytes), "allocating device memory");
  rdm__bench_check_raw(base, raw->host_memory_allocate(&own->host_memory, bytes, 0), "allocating pinned memory");
}

static int launch(const state *own, void *kernel, void **arguments) {
  return own->raw->launch_kernel(kernel, 1, 1, 1, ELEMENTS, 1, 1, 0, own->stream, arguments, NULL);
}

static int evaluate(state *own) {
  const rdm__bench_raw *raw = own->raw;
  float start = 0;
  float step = 1;
  float factor = 2;
  float addend = 1;
  void *in = own->device_memory;
  int failed = launch(own, own->arange, (void *[]){&in, &start, &step});
  failed = rdm__bench_first(failed, launch(own, own->multiply, (void *[]){&in, &in, &factor}));
  failed = rdm__bench_first(failed, launch(own, own->add, (void *[]){&in, &in, &addend}));
  failed |=
      raw->memory_copy_async(own->host_memory, in, ELEMENTS * sizeof(float), RDM__RAW_DEVICE_TO_HOST, own->stream);
  failed = rdm__bench_first(failed, raw->event_record(own->event, own->stream));
  if (failed != 0) return failed;
  int error;
  while ((error = raw->event_query(own->event)) == RDM__RAW_NOT_READY) {
    /* A simulated GPU runs on these processors, and needs one. */
    if (raw->is_simulated) sched_yield();
  }
  return error;
}

static void run(void *memory, uint64_t iterations) {
  state *own = memory;
  uint64_t wrong = 0;
  int failed = 0;
  for (uint64_t i = 0; i < iterations && failed == 0; i++) {
    failed = evaluate(own);
    const volatile float *values = own->host_memory;
    for (int k = 0; k < ELEMENTS; k++) wrong += values[k] != 2.0f * (float)k + 1.0f;
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
  if (own->host_memory != NULL) own->raw->host_memory_free(own->host_memory);
  if (own->device_memory != NULL) own->raw->memory_free(own->device_memory);
  if (own->event != NULL) own->raw->event_destroy(own->event);
  if (own->stream != NULL) own->raw->stream_destroy(own->stream);
}

const rdm__bench_design rdm__bench_driver_evaluation = {
    .name = "hand-written driver code", .state_bytes = sizeof(state), .begin = begin, .run = run, .end = end};
