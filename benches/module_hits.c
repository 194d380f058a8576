#include "module_hits.h"

#include <time.h>

extern const rdm__bench_modules rdm__bench_module_cache;
extern const rdm__bench_modules rdm__bench_module_one_lock;

const rdm__bench_modules *rdm__bench_modules_at(size_t number) {
  return number == 0 ? &rdm__bench_module_cache : number == 1 ? &rdm__bench_module_one_lock : NULL;
}

size_t rdm__bench_sample_hits(const rdm__bench_modules *modules, rdm__bench_state *state, _Atomic int32_t *phase,
                              uint32_t *samples_ns, size_t capacity) {
  const struct timespec pause = {.tv_nsec = 20000};
  uint64_t count = 0;
  int32_t now;
  while ((now = atomic_load_explicit(phase, memory_order_acquire)) != RDM__BENCH_OVER && state->error[0] == '\0') {
    if (now == RDM__BENCH_WAITING) {
      nanosleep(&pause, NULL);
      continue;
    }
    uint64_t start = rdm__bench_now_ns();
    modules->hit(state);
    uint64_t took = rdm__bench_now_ns() - start;
    samples_ns[count++ % capacity] = took < UINT32_MAX ? (uint32_t)took : UINT32_MAX;
  }
  return count < capacity ? (size_t)count : capacity;
}
