/* 1 to 4096 thread-local streams that one thread has resolved. */
#include "measure.h"
#include "series.h"

enum { MOST_HANDLES = 4096, ROUNDS = 9, RESOLUTIONS = 50000 };

typedef struct resolved {
  rdm_thread_local_stream handles[MOST_HANDLES];
  uint64_t count;
} resolved;

/* Sixteen of them, spread over all. */
static void resolve(void *context, uint64_t index) {
  const resolved *resolved = context;
  rdm_stream stream;
  uint64_t which = (index % 16) * resolved->count / 16;
  growth_check(rdm_thread_local_stream_resolve(resolved->handles[which], &stream), "resolving a stream");
}

void growth_handles(void) {
  static resolved resolved;
  for (uint64_t n = 1; n <= MOST_HANDLES; n *= 8) {
    for (; resolved.count < n; resolved.count++) {
      rdm_stream stream;
      growth_check(rdm_thread_local_stream_create(0, &resolved.handles[resolved.count]), "a thread-local stream");
      growth_check(rdm_thread_local_stream_resolve(resolved.handles[resolved.count], &stream), "resolving a stream");
    }
    growth_point("thread-local streams of one thread", "resolved again, ns", n,
                 growth_least_ns(ROUNDS, RESOLUTIONS, resolve, &resolved), "flat", 0);
  }
  for (uint64_t i = 0; i < resolved.count; i++) {
    growth_check(rdm_thread_local_stream_release(resolved.handles[i]), "releasing a thread-local stream");
  }
}
