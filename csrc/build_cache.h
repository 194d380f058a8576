/*
 * A cache of values that are built once for each (scope, source): what makes one compile of many requests.
 *
 * Invariant: a key has at most one build in flight, and only a finished value is ever found. Threads that want a key
 * that is being built wait for that build, and get its value or its error. A failed build leaves nothing behind.
 *
 * Locks. `lock` guards the table, taken shared by a hit and held while nothing is built. `wait_lock` guards nothing but
 * the waiting of those who want a key in flight. Both are leaves.
 */
#ifndef RDM_BUILD_CACHE_H
#define RDM_BUILD_CACHE_H

#include "lock.h"
#include "rocm_device_map.h"

enum { RDM__BUILD_BUCKETS = 256 };

typedef struct rdm__build rdm__build;

typedef struct rdm__build_cache {
  rdm__shared_lock lock;
  rdm__build *buckets[RDM__BUILD_BUCKETS];
  rdm__mutex wait_lock;
  rdm__condition finished;
} rdm__build_cache;

#define RDM__BUILD_CACHE_INIT                                                                                  \
  {                                                                                                            \
    .lock = RDM__SHARED_LOCK_INIT(RDM__RANK_LEAF), .wait_lock = RDM__MUTEX_INIT(RDM__RANK_LEAF), .finished = { \
      .native = PTHREAD_COND_INITIALIZER                                                                       \
    }                                                                                                          \
  }

/* Builds the value of a key. Called with no lock held. On failure it sets the thread's last error. */
typedef rdm_status (*rdm__builder)(void *context, const rdm_module_source *source, void **out_value);

/*
 * The value for a scope and a source, whose name, text and options, in their order, are all part of the key. Values
 * live as long as the process.
 */
rdm_status rdm__build_cache_get(rdm__build_cache *cache, const char *scope, const rdm_module_source *source,
                                rdm__builder builder, void *context, void **out_value);

#endif
