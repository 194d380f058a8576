#include "count.h"

enum { CACHE_LINE = 64 };

static struct line { _Alignas(CACHE_LINE) _Atomic uint64_t count; } counters[RDM__COUNTER_END];

void rdm__count(rdm__counter counter, uint64_t by) {
  atomic_fetch_add_explicit(&counters[counter].count, by, memory_order_release);
}

uint64_t rdm__counted(rdm__counter counter) {
  return atomic_load_explicit(&counters[counter].count, memory_order_acquire);
}
