/* The library's device lookup, and its encoder lookup after that: what each launch pays before it. */
#include "designs.h"

typedef struct state {
  rdm__bench_state base;
  volatile int32_t index;
  rdm_stream owned;
  volatile uint64_t stream_bits;
} state;

static void begin_device(void *memory) {
  state *own = memory;
  own->index = own->base.device_index;
}

static void begin_encoder(void *memory) {
  state *own = memory;
  begin_device(memory);
  rdm__bench_check(&own->base, rdm_stream_create(own->base.device_index, &own->owned), "creating a stream");
  own->stream_bits = own->owned.bits;
}

static void run_device(void *memory, uint64_t iterations) {
  state *own = memory;
  rdm_status failed = RDM_OK;
  for (uint64_t i = 0; i < iterations; i++) {
    rdm_device device;
    failed |= rdm_device_get(own->index, &device);
    RDM__CONSUME(device.bits);
  }
  rdm__bench_check(&own->base, failed, "looking a device up");
}

static void run_encoder(void *memory, uint64_t iterations) {
  state *own = memory;
  rdm_status failed = RDM_OK;
  for (uint64_t i = 0; i < iterations; i++) {
    rdm_device device;
    failed |= rdm_device_get(own->index, &device);
    RDM__CONSUME(device.bits);
    rdm_encoder encoder;
    failed |= rdm_encoder_get((rdm_stream){own->stream_bits}, &encoder);
    RDM__CONSUME(encoder.bits);
  }
  rdm__bench_check(&own->base, failed, "looking an encoder up");
}

static void end_encoder(void *memory) {
  state *own = memory;
  if (own->owned.bits != 0) rdm__bench_check(&own->base, rdm_stream_release(own->owned), "releasing a stream");
}

const rdm__bench_design rdm__bench_device_lookup = {
    .name = "device lookup", .state_bytes = sizeof(state), .begin = begin_device, .run = run_device};

const rdm__bench_design rdm__bench_encoder_lookup = {.name = "device and encoder lookup",
                                                     .state_bytes = sizeof(state),
                                                     .begin = begin_encoder,
                                                     .run = run_encoder,
                                                     .end = end_encoder};
