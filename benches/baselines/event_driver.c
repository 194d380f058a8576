/* Events without a pool: the driver makes and destroys one each time; and the driver's own record. */
#include "designs.h"
#include "raw_driver.h"

typedef struct state {
  rdm__bench_state base;
  const rdm__bench_raw *raw;
  void *stream;
  void *event;
} state;

static void begin(void *memory) {
  state *own = memory;
  own->raw = rdm__bench_raw_begin(&own->base);
}

static void run_pair(void *memory, uint64_t iterations) {
  state *own = memory;
  int failed = 0;
  for (uint64_t i = 0; i < iterations; i++) {
    void *event = NULL;
    failed = rdm__bench_first(failed, own->raw->event_create(&event, RDM__RAW_EVENT_DISABLE_TIMING));
    RDM__CONSUME(event);
    failed = rdm__bench_first(failed, own->raw->event_destroy(event));
  }
  rdm__bench_check_raw(&own->base, failed, "making and destroying an event");
}

static void begin_record(void *memory) {
  state *own = memory;
  begin(memory);
  if (own->raw == NULL) return;
  rdm__bench_check_raw(&own->base, own->raw->stream_create(&own->stream, RDM__RAW_STREAM_NON_BLOCKING),
                       "making a stream");
  rdm__bench_check_raw(&own->base, own->raw->event_create(&own->event, RDM__RAW_EVENT_DISABLE_TIMING),
                       "making an event");
}

static void run_record(void *memory, uint64_t iterations) {
  state *own = memory;
  int failed = 0;
  for (uint64_t i = 0; i < iterations; i++)
    failed = rdm__bench_first(failed, own->raw->event_record(own->event, own->stream));
  rdm__bench_check_raw(&own->base, failed, "recording an event");
}

static void end_record(void *memory) {
  state *own = memory;
  if (own->stream == NULL) return;
  rdm__bench_check_raw(&own->base, own->raw->stream_synchronize(own->stream), "waiting for a stream");
  if (own->event != NULL) rdm__bench_check_raw(&own->base, own->raw->event_destroy(own->event), "destroying an event");
  rdm__bench_check_raw(&own->base, own->raw->stream_destroy(own->stream), "destroying a stream");
}

const rdm__bench_design rdm__bench_driver_event_pair = {
    .name = "driver create and destroy", .state_bytes = sizeof(state), .begin = begin, .run = run_pair};

const rdm__bench_design rdm__bench_driver_record = {
    .name = "driver record", .state_bytes = sizeof(state), .begin = begin_record, .run = run_record, .end = end_record};
