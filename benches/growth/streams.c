/* 100,000 streams one after the other, and as many alive at once. */
#include "measure.h"
#include "series.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_STREAMS = 100000, LOOKED_UP = 16, ROUNDS = 9, LOOKUPS = 100000, WINDOW = 1000, FIRST_INDEX = 1000000 };
enum { MOST_USED = 256, REMEMBERED = 4 };

static const uint64_t driver_stream_limit = 2048;

static uint64_t driver_streams(void) {
  rdm_sim_objects objects = {.struct_size = sizeof objects};
  growth_check(rdm_sim_count_objects(&objects), "counting the driver's objects");
  return objects.streams;
}

static void live_and_end(void *context, uint64_t index) {
  (void)context;
  (void)index;
  rdm_stream stream;
  rdm_encoder encoder;
  growth_check(rdm_stream_create(0, &stream), "a stream");
  growth_check(rdm_encoder_get(stream, &encoder), "its encoder");
  growth_check(rdm_stream_release(stream), "releasing a stream");
}

static void over_time(void) {
  uint64_t done = 0;
  uint64_t before = driver_streams();
  for (uint64_t n = 1000; n <= MOST_STREAMS; n *= 10) {
    for (; done < n - WINDOW; done++) live_and_end(NULL, 0);
    double cost = growth_least_ns(5, WINDOW / 5, live_and_end, NULL);
    done += WINDOW;
    growth_point("streams over time", "made, used and ended, ns", n, cost, "flat", 0);
    growth_point("streams over time", "memory, KiB", n, growth_resident_kib(), "flat", 0);
    growth_point("streams over time", "driver streams", n, (double)driver_streams(), "bounded", (double)before + 8);
  }
}

typedef struct population {
  rdm_stream *streams;
  int32_t looked_up[LOOKED_UP];
} population;

/* The same few streams whatever lives beside them, so that it is the table that is measured and not the cache. */
static void look_up_index(void *context, uint64_t index) {
  const population *population = context;
  rdm_stream stream;
  growth_check(rdm_stream_get(0, population->looked_up[index % LOOKED_UP], &stream), "looking up a stream");
}

static void create_and_release(void *context, uint64_t index) {
  (void)context;
  (void)index;
  rdm_stream stream;
  growth_check(rdm_stream_create(0, &stream), "a stream");
  growth_check(rdm_stream_release(stream), "releasing a stream");
}

static void alive_at_once(void) {
  population population = {.streams = calloc(MOST_STREAMS, sizeof(rdm_stream))};
  if (population.streams == NULL) abort();
  double before = growth_resident_kib();
  uint64_t alive = 0;
  for (uint64_t n = 100; n <= MOST_STREAMS; n *= 10) {
    for (; alive < n; alive++) growth_check(rdm_stream_create(0, &population.streams[alive]), "a stream");
    for (int i = 0; i < LOOKED_UP; i++) {
      rdm_stream_info info = {.struct_size = sizeof info};
      growth_check(rdm_stream_get_info(population.streams[n / LOOKED_UP * (uint64_t)i], &info), "asking for an index");
      population.looked_up[i] = info.stream_index;
    }
    growth_point("streams alive", "one more made and ended, ns", n,
                 growth_least_ns(ROUNDS, 20000, create_and_release, NULL), "flat", 0);
    growth_point("streams alive", "lookup by index, ns", n,
                 growth_least_ns(ROUNDS, LOOKUPS, look_up_index, &population), "flat", 0);
    growth_point("streams alive", "memory, KiB", n, growth_resident_kib() - before, "linear", 0);
  }
  for (uint64_t i = 0; i < alive; i++) growth_check(rdm_stream_release(population.streams[i]), "releasing a stream");
  free(population.streams);
}

typedef struct used_streams {
  rdm_stream streams[MOST_USED];
  uint64_t count;
} used_streams;

/* Their number is a power of two, since to divide costs as much as what is measured. */
static void look_up_encoder(void *context, uint64_t index) {
  const used_streams *used = context;
  rdm_encoder encoder;
  growth_check(rdm_encoder_get(used->streams[index & (used->count - 1)], &encoder), "looking up an encoder");
}

/* One thread that goes around its streams. It remembers a few encoders, and goes to the table for others. */
static void used_in_turn(void) {
  static used_streams used;
  for (uint64_t n = 1; n <= MOST_USED; n *= 2) {
    for (; used.count < n; used.count++) {
      growth_check(rdm_stream_create(0, &used.streams[used.count]), "a stream");
      rdm_encoder encoder;
      growth_check(rdm_encoder_get(used.streams[used.count], &encoder), "its encoder");
    }
    growth_point("streams used in turn", n <= REMEMBERED ? "encoder of one of few, ns" : "encoder of one of many, ns",
                 n, growth_least_ns(ROUNDS, LOOKUPS, look_up_encoder, &used), "flat", 0);
  }
  for (uint64_t i = 0; i < used.count; i++) growth_check(rdm_stream_release(used.streams[i]), "releasing a stream");
}

/* Indices that the caller chose, a thousand apart, as a server that numbers its streams by kind might. */
static void registered(void) {
  population population = {0};
  uint64_t made = 0;
  for (uint64_t n = 10; n <= 10000; n *= 10) {
    rdm_stream stream;
    for (; made < n; made++) {
      growth_check(rdm_stream_get(0, FIRST_INDEX + (int32_t)made * 1024, &stream), "registering a stream");
    }
    for (int i = 0; i < LOOKED_UP; i++) {
      population.looked_up[i] = FIRST_INDEX + (int32_t)((n - 1) * (uint64_t)i / LOOKED_UP) * 1024;
    }
    growth_point("streams registered", "lookup by index, ns", n,
                 growth_least_ns(ROUNDS, LOOKUPS, look_up_index, &population), "flat", 0);
  }
}

void growth_streams(void) {
  if (driver_streams() > driver_stream_limit) abort();
  used_in_turn();
  over_time();
  alive_at_once();
  registered();
}
