/*
 * How often things happened, for rdm_get_counters. A lower layer: it knows none of what it counts.
 *
 * Three ways, by what the counting place can afford. rdm__count is an atomic step on a counter of the whole process:
 * for what takes microseconds by itself. rdm__count_alone is a plain addition: for a count that one thread at a time
 * may write, since it is the thread's own or a lock that is held guards it. A tally is the sum of a cell for each
 * thread, for hot paths that hold no lock. What is read by rdm_get_counters and can be told from state that exists
 * anyway, such as a handle table, is not counted at all.
 */
#ifndef RDM_COUNT_H
#define RDM_COUNT_H

#include <stdatomic.h>
#include <stdint.h>

/* ---- Of the whole process -------------------------------------------------------------------------------------- */

typedef enum rdm__counter {
  /* Lookups that asked the map, a stream or the build cache, since the thread remembered nothing that holds. */
  RDM__COUNT_DEVICE_MISSES,
  RDM__COUNT_ENCODER_MISSES,
  RDM__COUNT_MODULE_MISSES,
  RDM__COUNT_FAULTS,
  RDM__COUNT_LAUNCHES_REFUSED,
  RDM__COUNT_DRIVER_EVENTS_MADE,
  /* Destroyed, or left alone for ever on a device that is lost. */
  RDM__COUNT_DRIVER_EVENTS_ENDED,
  RDM__COUNT_WAITS,
  RDM__COUNT_WAITS_ENDED,
  RDM__COUNT_WAIT_TIME_NS,
  RDM__COUNT_WAIT_TIMEOUTS,
  RDM__COUNT_WAIT_WATCHDOGS,
  RDM__COUNT_COMPILES,
  RDM__COUNT_COMPILES_ENDED,
  RDM__COUNT_COMPILE_FAILURES,
  RDM__COUNT_COMPILE_TIME_NS,
  RDM__COUNT_DISK_HITS,
  RDM__COUNT_DISK_MISSES,
  RDM__COUNT_DEVICE_ALLOCATIONS,
  RDM__COUNT_DEVICE_FREES,
  RDM__COUNT_HOST_ALLOCATIONS,
  RDM__COUNT_HOST_FREES,
  RDM__COUNT_DRIVER_ERRORS,
  RDM__COUNT_STREAM_ERRORS,
  RDM__COUNT_LOG_ERRORS,
  RDM__COUNT_LOG_WARNINGS,
  RDM__COUNTER_END
} rdm__counter;

/* Each is in a cache line of its own. With release, and read with acquire: what was counted before is seen with it. */
void rdm__count(rdm__counter counter, uint64_t by);
uint64_t rdm__counted(rdm__counter counter);

/* ---- By one thread at a time ----------------------------------------------------------------------------------- */

static inline void rdm__count_alone(_Atomic uint64_t *count, uint64_t by) {
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
  /* What follows, in one instruction. Not locked: no other thread writes. */
  __asm__("addq %1, %0" : "+m"(*(uint64_t *)(void *)count) : "er"(by) : "cc");
#else
  atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + by, memory_order_relaxed);
#endif
}

static inline uint64_t rdm__counted_alone(const _Atomic uint64_t *count) {
  return atomic_load_explicit(count, memory_order_relaxed);
}

#endif
