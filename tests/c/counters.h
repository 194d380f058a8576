/* What the tests of rdm_get_counters share. */
#ifndef TEST_COUNTERS_H
#define TEST_COUNTERS_H

#include "test.h"

static inline rdm_counters read_counters(void) {
  rdm_counters counters = {.struct_size = sizeof counters};
  CHECK_OK(rdm_get_counters(&counters));
  return counters;
}

#define CHECK_COUNT(counters, field, expected)                                      \
  CHECK_THAT((counters).field == (uint64_t)(expected), #field " is %llu, not %llu", \
             (unsigned long long)(counters).field, (unsigned long long)(expected))

#endif
