/* The monotonic clock in nanoseconds. */
#ifndef RDM_CLOCK_H
#define RDM_CLOCK_H

#include <stdint.h>
#include <time.h>

#define RDM__NS_PER_SECOND UINT64_C(1000000000)
#define RDM__NS_PER_MS UINT64_C(1000000)
#define RDM__NS_PER_US UINT64_C(1000)

static inline uint64_t rdm__now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * RDM__NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

/* The moment `ns` after `from`; UINT64_MAX, which never comes, where that overflows. */
static inline uint64_t rdm__deadline_ns(uint64_t from, uint64_t ns) {
  return ns > UINT64_MAX - from ? UINT64_MAX : from + ns;
}

static inline struct timespec rdm__timespec(uint64_t ns) {
  struct timespec time = {.tv_sec = (time_t)(ns / RDM__NS_PER_SECOND), .tv_nsec = (long)(ns % RDM__NS_PER_SECOND)};
  return time;
}

#endif
