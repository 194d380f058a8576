/* What the designs of lookups look up, and what each thread has for it. */
#ifndef RDM_BENCH_LOOKUP_DEVICES_H
#define RDM_BENCH_LOOKUP_DEVICES_H

#include "bench.h"

enum { RDM__BENCH_DEVICES = 8, RDM__BENCH_MOST_THREADS = 1024 };

/* As large as a real one's first cache lines. */
typedef struct rdm__bench_device {
  _Alignas(128) int index;
} rdm__bench_device;

rdm__bench_device *rdm__bench_device_at(int index);

typedef struct lookup_state {
  rdm__bench_state base;
  /* Volatile, so that no lookup is moved out of the loop or folded into the one before. */
  volatile int index;
  volatile int stream;
} lookup_state;

#endif
