/*
 * How long a hit on a compiled module takes, one by one: what counts is the slowest in a thousand, and whether a
 * compile in flight delays it. Two designs: this library, and one lock that is held while compiling.
 */
#ifndef RDM_BENCH_MODULE_HITS_H
#define RDM_BENCH_MODULE_HITS_H

#include "bench.h"

#include <stdatomic.h>

typedef struct rdm__bench_modules {
  const char *name;
  /* Compiles what is hit. */
  void (*begin)(rdm__bench_state *state);
  void (*hit)(rdm__bench_state *state);
  /*
   * Compiles a source. Sets `*phase` to running once it holds what a hit would wait for, and back to waiting before it
   * lets go of that: so hits are made only beside the compile.
   */
  void (*compile)(rdm__bench_state *state, const char *source, _Atomic int32_t *phase);
} rdm__bench_modules;

/* Waiting: no hits. Running: hits are made and timed. Over: the threads end. */
enum { RDM__BENCH_WAITING = 0, RDM__BENCH_RUNNING = 1, RDM__BENCH_OVER = 2 };

/* 0: ours, 1: one lock held while compiling. */
const rdm__bench_modules *rdm__bench_modules_at(size_t number);

/*
 * Makes hits while `*phase` is running and keeps the time of each, in nanoseconds, the latest `capacity` of them.
 * Returns how many were kept, once it is over. Reading the clock is in each: some 20 ns.
 */
size_t rdm__bench_sample_hits(const rdm__bench_modules *modules, rdm__bench_state *state, _Atomic int32_t *phase,
                              uint32_t *samples_ns, size_t capacity);

#endif
