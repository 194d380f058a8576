#include "build_cache.h"

#include "clock.h"
#include "hash.h"
#include "runtime.h"
#include "status.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t check_interval_ns = 100 * RDM__NS_PER_MS;

enum { BUILDING, BUILT, FAILED };

struct rdm__build {
  uint64_t hash;
  char *scope;
  rdm_module_source source;
  void *value;
  /* Guarded by the cache's lock: the state, and how many hold this record. Those are the builder, the waiters, and for
   * ever the bucket that it is in. */
  int state;
  uint32_t holders;
  rdm_error *error;
  rdm__build *next;
};

static uint64_t hash_key(const char *scope, const rdm_module_source *source) {
  uint64_t hash = rdm__hash_text(source->option_count, scope);
  hash = rdm__hash_text(hash, source->name);
  hash = rdm__hash_text(hash, source->source);
  for (uint32_t i = 0; i < source->option_count; i++) hash = rdm__hash_text(hash, source->options[i]);
  return hash;
}

static bool has_key(const rdm__build *build, uint64_t hash, const char *scope, const rdm_module_source *source) {
  if (build->hash != hash || build->source.option_count != source->option_count) return false;
  if (strcmp(build->scope, scope) != 0 || strcmp(build->source.name, source->name) != 0) return false;
  if (strcmp(build->source.source, source->source) != 0) return false;
  for (uint32_t i = 0; i < source->option_count; i++) {
    if (strcmp(build->source.options[i], source->options[i]) != 0) return false;
  }
  return true;
}

static void destroy(rdm__build *build) {
  free(build->scope);
  free((char *)(uintptr_t)build->source.name);
  free((char *)(uintptr_t)build->source.source);
  for (uint32_t i = 0; build->source.options != NULL && i < build->source.option_count; i++) {
    free((char *)(uintptr_t)build->source.options[i]);
  }
  free((void *)(uintptr_t)build->source.options);
  free(build->error);
  free(build);
}

/* Held by the thread that will build it. Null where memory ran out. */
static rdm__build *make(uint64_t hash, const char *scope, const rdm_module_source *source) {
  rdm__build *build = calloc(1, sizeof *build);
  const char **options = calloc(source->option_count + 1, sizeof *options);
  if (build == NULL || options == NULL) {
    free(build);
    free(options);
    return NULL;
  }
  build->hash = hash;
  build->scope = strdup(scope);
  build->source = (rdm_module_source){.struct_size = sizeof build->source,
                                      .option_count = source->option_count,
                                      .name = strdup(source->name),
                                      .source = strdup(source->source),
                                      .options = options};
  bool complete = build->scope != NULL && build->source.name != NULL && build->source.source != NULL;
  for (uint32_t i = 0; i < source->option_count; i++) {
    options[i] = strdup(source->options[i]);
    complete = complete && options[i] != NULL;
  }
  build->state = BUILDING;
  build->holders = 1;
  if (complete) return build;
  destroy(build);
  return NULL;
}

static rdm__build *find(rdm__build *first, uint64_t hash, const char *scope, const rdm_module_source *source) {
  rdm__build *build = first;
  while (build != NULL && !has_key(build, hash, scope, source)) build = build->next;
  return build;
}

/* Takes no lock. Null where there is no finished build of the key. */
static rdm__build *find_finished(rdm__build_cache *cache, uint64_t hash, const char *scope,
                                 const rdm_module_source *source) {
  rdm__build *first = atomic_load_explicit(&cache->buckets[hash % RDM__BUILD_BUCKETS], memory_order_acquire);
  return find(first, hash, scope, source);
}

/* With the lock held. */
static void end_flight(rdm__build_cache *cache, rdm__build *build) {
  rdm__build **place = &cache->in_flight;
  while (*place != build) place = &(*place)->next;
  *place = build->next;
}

/* With the lock held. */
static void publish(rdm__build_cache *cache, rdm__build *build) {
  _Atomic(rdm__build *) *bucket = &cache->buckets[build->hash % RDM__BUILD_BUCKETS];
  build->holders++;
  build->next = atomic_load_explicit(bucket, memory_order_relaxed);
  atomic_store_explicit(bucket, build, memory_order_release);
}

static void drop(rdm__build_cache *cache, rdm__build *build) {
  rdm__mutex_lock(&cache->lock);
  bool last = --build->holders == 0;
  rdm__mutex_unlock(&cache->lock);
  if (last) destroy(build);
}

static rdm_status build_now(rdm__build_cache *cache, rdm__build *build, rdm__builder builder, void *context,
                            void **out_value) {
  void *value = NULL;
  rdm_error *error = NULL;
  rdm__assert_no_lock_held();
  rdm_status status = builder(context, &build->source, &value);
  if (status == RDM_OK) {
    *out_value = value;
  } else if ((error = malloc(sizeof *error)) != NULL) {
    *error = *rdm__thread_error();
  }
  rdm__mutex_lock(&cache->lock);
  end_flight(cache, build);
  build->value = value;
  build->error = error;
  build->state = status == RDM_OK ? BUILT : FAILED;
  if (status == RDM_OK) publish(cache, build);
  rdm__condition_broadcast(&cache->finished);
  rdm__mutex_unlock(&cache->lock);
  drop(cache, build);
  return status;
}

/* With the caller among the build's holders. */
static rdm_status wait_for(rdm__build_cache *cache, rdm__build *build, uint64_t deadline_ns, void **out_value) {
  rdm_status status = RDM_OK;
  rdm__mutex_lock(&cache->lock);
  while (status == RDM_OK && build->state == BUILDING) {
    /* Woken now and then to see whether the process is exiting: then the builder may never come back. */
    uint64_t now = rdm__now_ns();
    if (now >= deadline_ns) {
      status = rdm__fail(RDM_ERROR_TIMEOUT, "another thread is still building %.200s", build->source.name);
      break;
    }
    uint64_t next_check = now + check_interval_ns;
    rdm__condition_wait(&cache->finished, &cache->lock, next_check < deadline_ns ? next_check : deadline_ns);
    status = rdm__runtime_check();
  }
  int state = build->state;
  rdm__mutex_unlock(&cache->lock);
  if (state == BUILT) {
    *out_value = build->value;
    status = RDM_OK;
  } else if (state == FAILED) {
    status = build->error != NULL ? rdm__fail_with(build->error)
                                  : rdm__fail(RDM_ERROR_OUT_OF_MEMORY, "a build failed, with no memory to say why");
  }
  drop(cache, build);
  return status;
}

/* The finished build of the key, or the one in flight with the caller among its holders, or else `made`, in flight. */
static rdm__build *join(rdm__build_cache *cache, rdm__build *made, bool *out_finished) {
  rdm__mutex_lock(&cache->lock);
  if (!cache->has_condition) rdm__condition_init(&cache->finished);
  cache->has_condition = true;
  /* Another thread may have begun, or finished, since the look. */
  rdm__build *build = find_finished(cache, made->hash, made->scope, &made->source);
  *out_finished = build != NULL;
  if (build == NULL) {
    build = find(cache->in_flight, made->hash, made->scope, &made->source);
    if (build != NULL) {
      build->holders++;
    } else {
      build = made;
      made->next = cache->in_flight;
      cache->in_flight = made;
    }
  }
  rdm__mutex_unlock(&cache->lock);
  return build;
}

void *rdm__build_cache_find(rdm__build_cache *cache, const char *scope, const rdm_module_source *source) {
  const rdm__build *build = find_finished(cache, hash_key(scope, source), scope, source);
  return build == NULL ? NULL : build->value;
}

rdm_status rdm__build_cache_get(rdm__build_cache *cache, const char *scope, const rdm_module_source *source,
                                uint64_t deadline_ns, rdm__builder builder, void *context, void **out_value) {
  uint64_t hash = hash_key(scope, source);
  rdm__build *build = find_finished(cache, hash, scope, source);
  if (build != NULL) {
    *out_value = build->value;
    return RDM_OK;
  }
  rdm__build *made = make(hash, scope, source);
  if (made == NULL) return rdm__fail(RDM_ERROR_OUT_OF_MEMORY, "no memory for one more source");
  bool finished = false;
  build = join(cache, made, &finished);
  if (build == made) return build_now(cache, made, builder, context, out_value);
  destroy(made);
  if (!finished) return wait_for(cache, build, deadline_ns, out_value);
  *out_value = build->value;
  return RDM_OK;
}
