/* Ten million events one after the other, and 100,000 alive at once. */
#include "measure.h"
#include "series.h"

#include <stdlib.h>

enum { WINDOW = 1000, RECORDED_EACH = 64, MOST_ALIVE = 100000, SPARE_EVENTS = 8 };

typedef struct place {
  rdm_device device;
  rdm_stream stream;
  rdm_encoder encoder;
} place;

static uint64_t driver_events(void) {
  rdm_sim_objects objects = {.struct_size = sizeof objects};
  growth_check(rdm_sim_count_objects(&objects), "counting the driver's objects");
  return objects.events;
}

static void live_and_end(void *context, uint64_t index) {
  const place *place = context;
  rdm_event event;
  growth_check(rdm_event_create(place->device, RDM_EVENT_DEFAULT, &event), "an event");
  if (index % RECORDED_EACH == 0) growth_check(rdm_encoder_record_event(place->encoder, event), "recording an event");
  growth_check(rdm_event_release(event), "releasing an event");
}

/* Costs nothing but what the pool and the handles cost: a record's cost is the driver's. */
static void create_and_release(void *context, uint64_t index) {
  (void)index;
  const place *place = context;
  rdm_event event;
  growth_check(rdm_event_create(place->device, RDM_EVENT_DEFAULT, &event), "an event");
  growth_check(rdm_event_release(event), "releasing an event");
}

static void over_time(place *place, bool full) {
  uint64_t done = 0;
  uint64_t before = driver_events();
  for (uint64_t n = 10000; n <= (full ? 10000000U : 1000000U); n *= 10) {
    for (; done < n; done++) live_and_end(place, done);
    growth_check(rdm_stream_synchronize(place->stream, RDM_WAIT_FOREVER), "waiting for the stream");
    growth_point("events over time", "made and ended, ns", n,
                 growth_least_ns(9, WINDOW * 10, create_and_release, place), "flat", 0);
    growth_point("events over time", "memory, KiB", n, growth_resident_kib(), "flat", 0);
    growth_point("events over time", "driver events", n, (double)driver_events(), "bounded",
                 (double)(before + SPARE_EVENTS));
  }
}

static void alive_at_once(place *place) {
  rdm_event *events = calloc(MOST_ALIVE, sizeof *events);
  if (events == NULL) abort();
  double before = growth_resident_kib();
  uint64_t alive = 0;
  for (uint64_t n = 100; n <= MOST_ALIVE; n *= 10) {
    for (; alive < n; alive++) {
      growth_check(rdm_event_create(place->device, RDM_EVENT_DEFAULT, &events[alive]), "an event");
    }
    growth_point("events alive", "one more made and ended, ns", n,
                 growth_least_ns(9, WINDOW * 10, create_and_release, place), "flat", 0);
    growth_point("events alive", "memory, KiB", n, growth_resident_kib() - before, "linear", 0);
  }
  for (uint64_t i = 0; i < alive; i++) growth_check(rdm_event_release(events[i]), "releasing an event");
  free(events);
}

void growth_events(bool full) {
  place place = {0};
  growth_check(rdm_device_get(0, &place.device), "the device");
  growth_check(rdm_stream_create(0, &place.stream), "a stream");
  growth_check(rdm_encoder_get(place.stream, &place.encoder), "its encoder");
  over_time(&place, full);
  alive_at_once(&place);
  growth_check(rdm_stream_release(place.stream), "releasing the stream");
}
