#include "build_cache.h"

#include "clock.h"
#include "hash.h"
#include "runtime.h"
#include "status.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t check_interval_ns = 100 * RDM__NS_PER_MS;

enum { BUILDING, BUILT, FAILED };

struct rdm__build {
  uint64_t hash;
  char *scope;
  rdm_module_source source;
  /* Set once, from BUILDING, after the value or the error. */
  _Atomic int state;
  void *value;
  rdm_error *error;
  /* Those who hold this record: the table, the builder, the waiters. The last one frees it. */
  _Atomic uint32_t holders;
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

static void drop(rdm__build *build) {
  if (atomic_fetch_sub_explicit(&build->holders, 1, memory_order_acq_rel) == 1) destroy(build);
}

/* Held by the table and by the thread that will build it. Null where memory ran out. */
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
  atomic_init(&build->state, BUILDING);
  atomic_init(&build->holders, 2);
  if (complete) return build;
  destroy(build);
  return NULL;
}

/* With the lock held, shared or not. The caller holds the record found. */
static rdm__build *find(rdm__build_cache *cache, uint64_t hash, const char *scope, const rdm_module_source *source) {
  rdm__build *build = cache->buckets[hash % RDM__BUILD_BUCKETS];
  while (build != NULL && !has_key(build, hash, scope, source)) build = build->next;
  return build;
}

static void unlink_failed(rdm__build_cache *cache, rdm__build *build) {
  rdm__shared_lock_write(&cache->lock);
  rdm__build **place = &cache->buckets[build->hash % RDM__BUILD_BUCKETS];
  while (*place != build) place = &(*place)->next;
  *place = build->next;
  rdm__shared_lock_write_unlock(&cache->lock);
  drop(build);
}

static rdm_status build_now(rdm__build_cache *cache, rdm__build *build, rdm__builder builder, void *context,
                            void **out_value) {
  void *value = NULL;
  rdm__assert_no_lock_held();
  rdm_status status = builder(context, &build->source, &value);
  if (status == RDM_OK) {
    build->value = value;
    *out_value = value;
  } else {
    build->error = malloc(sizeof *build->error);
    if (build->error != NULL) *build->error = *rdm__thread_error();
    /* Out of the table before anyone is told, so that whoever tries again starts a new build. */
    unlink_failed(cache, build);
  }
  rdm__mutex_lock(&cache->wait_lock);
  atomic_store_explicit(&build->state, status == RDM_OK ? BUILT : FAILED, memory_order_release);
  rdm__condition_broadcast(&cache->finished);
  rdm__mutex_unlock(&cache->wait_lock);
  drop(build);
  return status;
}

static rdm_status wait_for(rdm__build_cache *cache, rdm__build *build, void **out_value) {
  rdm_status status = RDM_OK;
  rdm__mutex_lock(&cache->wait_lock);
  while (status == RDM_OK && atomic_load_explicit(&build->state, memory_order_acquire) == BUILDING) {
    rdm__condition_wait(&cache->finished, &cache->wait_lock, rdm__now_ns() + check_interval_ns);
    status = rdm__runtime_check();
  }
  rdm__mutex_unlock(&cache->wait_lock);
  if (status == RDM_OK && atomic_load_explicit(&build->state, memory_order_acquire) == BUILT) {
    *out_value = build->value;
  } else if (status == RDM_OK) {
    status = build->error != NULL ? rdm__fail_with(build->error)
                                  : rdm__fail(RDM_ERROR_OUT_OF_MEMORY, "a build failed, with no memory to say why");
  }
  drop(build);
  return status;
}

/* A finished value, or the record in flight with the caller among its holders, or neither. */
static rdm__build *look(rdm__build_cache *cache, uint64_t hash, const char *scope, const rdm_module_source *source,
                        void **out_value) {
  rdm__build *build = find(cache, hash, scope, source);
  if (build == NULL) return NULL;
  if (atomic_load_explicit(&build->state, memory_order_acquire) == BUILT) {
    *out_value = build->value;
    return NULL;
  }
  atomic_fetch_add_explicit(&build->holders, 1, memory_order_relaxed);
  return build;
}

rdm_status rdm__build_cache_get(rdm__build_cache *cache, const char *scope, const rdm_module_source *source,
                                rdm__builder builder, void *context, void **out_value) {
  uint64_t hash = hash_key(scope, source);
  void *value = NULL;
  rdm__shared_lock_read(&cache->lock);
  rdm__build *in_flight = look(cache, hash, scope, source, &value);
  rdm__shared_lock_read_unlock(&cache->lock);
  if (value != NULL) {
    *out_value = value;
    return RDM_OK;
  }
  if (in_flight != NULL) return wait_for(cache, in_flight, out_value);

  rdm__build *made = make(hash, scope, source);
  if (made == NULL) return rdm__fail(RDM_ERROR_OUT_OF_MEMORY, "no memory for one more source");
  rdm__shared_lock_write(&cache->lock);
  /* Another thread may have begun, or finished, since the look. */
  in_flight = look(cache, hash, scope, source, &value);
  if (in_flight == NULL && value == NULL) {
    made->next = cache->buckets[hash % RDM__BUILD_BUCKETS];
    cache->buckets[hash % RDM__BUILD_BUCKETS] = made;
  }
  rdm__shared_lock_write_unlock(&cache->lock);
  if (in_flight == NULL && value == NULL) return build_now(cache, made, builder, context, out_value);
  destroy(made);
  if (in_flight != NULL) return wait_for(cache, in_flight, out_value);
  *out_value = value;
  return RDM_OK;
}
