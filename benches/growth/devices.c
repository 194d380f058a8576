/* 1 to 64 devices, each with a stream and an event. */
#include "measure.h"
#include "series.h"

enum { MOST_DEVICES = 64, REMEMBERED = 8, ROUNDS = 9, LOOKUPS = 100000 };

static void look_up_first(void *context, uint64_t index) {
  (void)context;
  (void)index;
  rdm_device device;
  growth_check(rdm_device_get(0, &device), "looking up a device");
}

static void look_up_in_turn(void *context, uint64_t index) {
  rdm_device device;
  growth_check(rdm_device_get((int32_t)(index & (*(const uint64_t *)context - 1)), &device), "looking up a device");
}

static void use_device(int32_t index) {
  rdm_device device;
  rdm_stream stream;
  rdm_encoder encoder;
  rdm_event event;
  growth_check(rdm_device_get(index, &device), "a device");
  growth_check(rdm_stream_create(index, &stream), "a stream");
  growth_check(rdm_encoder_get(stream, &encoder), "an encoder");
  growth_check(rdm_event_create(device, RDM_EVENT_DEFAULT, &event), "an event");
  growth_check(rdm_encoder_record_event(encoder, event), "recording an event");
  growth_check(rdm_event_wait(event, RDM_WAIT_FOREVER), "waiting for an event");
  growth_check(rdm_event_release(event), "releasing an event");
  growth_check(rdm_stream_release(stream), "releasing a stream");
}

void growth_devices(void) {
  double before = growth_resident_kib();
  int32_t used = 0;
  for (uint64_t n = 1; n <= MOST_DEVICES; n *= 2) {
    while (used < (int32_t)n) use_device(used++);
    growth_point("devices", "lookup of one, ns", n, growth_least_ns(ROUNDS, LOOKUPS, look_up_first, NULL), "flat", 0);
    /* A thread remembers a few devices, and goes to the map for others: two levels, each of which has to be flat. */
    growth_point("devices", n <= REMEMBERED ? "lookup in turn, few, ns" : "lookup in turn, many, ns", n,
                 growth_least_ns(ROUNDS, LOOKUPS, look_up_in_turn, &n), "flat", 0);
    growth_point("devices", "memory, KiB", n, growth_resident_kib() - before, "linear", 0);
  }
}
