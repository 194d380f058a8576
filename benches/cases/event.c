/* The library's events: taken and given back, each side alone, and recorded. */
#include "designs.h"

#include <stdbool.h>

/* How many events are out at once where one side is timed alone. Reading the clock twice is shared by as many. */
enum { BATCH = 16 };

typedef struct state {
  rdm__bench_state base;
  rdm_device device;
  rdm_stream stream;
  rdm_encoder encoder;
  rdm_event event;
} state;

static void begin(void *memory) {
  state *own = memory;
  rdm__bench_check(&own->base, rdm_device_get(own->base.device_index, &own->device), "looking a device up");
}

static void run_pair(void *memory, uint64_t iterations) {
  state *own = memory;
  rdm_status failed = RDM_OK;
  for (uint64_t i = 0; i < iterations; i++) {
    rdm_event event;
    failed |= rdm_event_create(own->device, RDM_EVENT_DEFAULT, &event);
    RDM__CONSUME(event.bits);
    failed |= rdm_event_release(event);
  }
  rdm__bench_check(&own->base, failed, "taking an event and giving it back");
}

/* Times the one side or the other of batches. */
static void run_batches(state *own, uint64_t iterations, bool times_create) {
  rdm_status failed = RDM_OK;
  uint64_t spent = 0;
  for (uint64_t done = 0; done < iterations; done += BATCH) {
    rdm_event events[BATCH];
    int count = iterations - done < BATCH ? (int)(iterations - done) : BATCH;
    uint64_t start = rdm__bench_now_ns();
    for (int i = 0; i < count; i++) failed |= rdm_event_create(own->device, RDM_EVENT_DEFAULT, &events[i]);
    uint64_t middle = rdm__bench_now_ns();
    for (int i = 0; i < count; i++) failed |= rdm_event_release(events[i]);
    uint64_t end = rdm__bench_now_ns();
    spent += times_create ? middle - start : end - middle;
  }
  own->base.own_ns = spent;
  rdm__bench_check(&own->base, failed, "taking events and giving them back");
}

static void run_create(void *memory, uint64_t iterations) {
  run_batches(memory, iterations, true);
}

static void run_release(void *memory, uint64_t iterations) {
  run_batches(memory, iterations, false);
}

static void begin_record(void *memory) {
  state *own = memory;
  begin(memory);
  rdm__bench_check(&own->base, rdm_stream_create(own->base.device_index, &own->stream), "creating a stream");
  rdm__bench_check(&own->base, rdm_encoder_get(own->stream, &own->encoder), "looking an encoder up");
  rdm__bench_check(&own->base, rdm_event_create(own->device, RDM_EVENT_DEFAULT, &own->event), "taking an event");
}

static void run_record(void *memory, uint64_t iterations) {
  state *own = memory;
  rdm_status failed = RDM_OK;
  for (uint64_t i = 0; i < iterations; i++) failed |= rdm_encoder_record_event(own->encoder, own->event);
  rdm__bench_check(&own->base, failed, "recording an event");
}

static void end_record(void *memory) {
  state *own = memory;
  if (own->stream.bits == 0) return;
  rdm__bench_check(&own->base, rdm_stream_synchronize(own->stream, RDM_WAIT_FOREVER), "waiting for a stream");
  if (own->event.bits != 0) rdm__bench_check(&own->base, rdm_event_release(own->event), "giving an event back");
  rdm__bench_check(&own->base, rdm_stream_release(own->stream), "releasing a stream");
}

const rdm__bench_design rdm__bench_event_pair = {
    .name = "event create and release", .state_bytes = sizeof(state), .begin = begin, .run = run_pair};

const rdm__bench_design rdm__bench_event_create = {
    .name = "event create alone", .state_bytes = sizeof(state), .begin = begin, .run = run_create};

const rdm__bench_design rdm__bench_event_release = {
    .name = "event release alone", .state_bytes = sizeof(state), .begin = begin, .run = run_release};

const rdm__bench_design rdm__bench_event_record = {
    .name = "event record", .state_bytes = sizeof(state), .begin = begin_record, .run = run_record, .end = end_record};
