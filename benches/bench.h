/*
 * What is measured: designs, each a loop in C, so that no call from another language is inside what is timed.
 *
 * A design is ours (cases/) or one that others use (baselines/). Cases call the public ABI alone. The harness makes one
 * zeroed state for each thread, calls `begin` on that thread, lets all threads go at once, times `run`, and calls
 * `end`.
 */
#ifndef RDM_BENCH_H
#define RDM_BENCH_H

#include "rocm_device_map.h"

#include <stddef.h>
#include <stdint.h>

/* Each state begins with this. */
typedef struct rdm__bench_state {
  /* The number of the thread, from 0, and the device that is measured. Set before `begin`. */
  int32_t thread;
  int32_t device_index;
  /* What the latest run took, where the design times itself since a part of its loop does not count; else 0. */
  uint64_t own_ns;
  /* What went wrong first; empty: nothing did. */
  char error[512];
} rdm__bench_state;

typedef struct rdm__bench_design {
  const char *name;
  size_t state_bytes;
  /* May be null. */
  void (*begin)(void *state);
  void (*run)(void *state, uint64_t iterations);
  /* May be null. Called also where something went wrong. */
  void (*end)(void *state);
} rdm__bench_design;

/* The design with this number, null past the last one. */
const rdm__bench_design *rdm__bench_design_at(size_t number);

/* Keeps a value from being optimized away, and memory from being kept in registers across it. */
#define RDM__CONSUME(value) __asm__ volatile("" : : "r"(value) : "memory")

/* Keeps the first error: the library's last one where `status` is a failure of it. */
void rdm__bench_check(rdm__bench_state *state, rdm_status status, const char *what);

/* The same for a driver's error number. */
void rdm__bench_check_raw(rdm__bench_state *state, int error, const char *what);

/* The first of two results that is not 0. */
static inline int rdm__bench_first(int kept, int next) {
  return kept != 0 ? kept : next;
}

/* Nanoseconds on the monotonic clock. */
uint64_t rdm__bench_now_ns(void);

#endif
