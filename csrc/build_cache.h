/*
 * A cache of values that are built once for each (scope, source): what makes one compile of many requests.
 *
 * Invariants. A key has at most one build in flight. A finished value is never removed or changed, so it is found
 * without a lock: a hit costs the same whatever is being built. Threads that want a key in flight wait for that build,
 * and get its value or its error. A failed build leaves nothing behind.
 */
#ifndef RDM_BUILD_CACHE_H
#define RDM_BUILD_CACHE_H

#include "lock.h"
#include "rocm_device_map.h"

#include <stdatomic.h>
#include <stdbool.h>

enum { RDM__BUILD_BUCKETS = 256 };

typedef struct rdm__build rdm__build;

typedef struct rdm__build_cache {
  /* Finished builds, the latest first; each is published whole, with release. */
  _Atomic(rdm__build *) buckets[RDM__BUILD_BUCKETS];
  /* A leaf. Guards the builds in flight and the publishing; held while nothing is built. */
  rdm__mutex lock;
  rdm__build *in_flight;
  /* Made by the first build, since it goes by the monotonic clock. */
  rdm__condition finished;
  bool has_condition;
} rdm__build_cache;

#define RDM__BUILD_CACHE_INIT \
  { .lock = RDM__MUTEX_INIT(RDM__RANK_LEAF) }

/* Builds the value of a key. Called with no lock held. On failure it sets the thread's last error. */
typedef rdm_status (*rdm__builder)(void *context, const rdm_module_source *source, void **out_value);

/*
 * The value for a scope and a source, whose name, text and options, in their order, are all part of the key. Values
 * live as long as the process. Where another thread is building it, that is waited for until `deadline_ns` on the
 * monotonic clock (UINT64_MAX: without end), and then given up with RDM_ERROR_TIMEOUT; the build goes on.
 */
rdm_status rdm__build_cache_get(rdm__build_cache *cache, const char *scope, const rdm_module_source *source,
                                uint64_t deadline_ns, rdm__builder builder, void *context, void **out_value);

/* The value where it has been built, else null. Takes no lock. */
void *rdm__build_cache_find(rdm__build_cache *cache, const char *scope, const rdm_module_source *source);

#endif
