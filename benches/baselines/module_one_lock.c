/*
 * One lock held while compiling: a mutex over a hash map from a module's name to the module, as std::mutex over
 * std::unordered_map. A lookup that misses compiles where it is, and every other lookup waits for that. The compile
 * itself is the library's, so that it takes as long as in the design that this is compared with.
 */
#include "hash_map.h"
#include "kernels.h"
#include "module_hits.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct named {
  /* Of the same hash. */
  struct named *next;
  char *name;
  rdm_module module;
} named;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static rdm__bench_map modules;

/* FNV-1a. */
static int hash_of(const char *text) {
  uint32_t hash = 2166136261u;
  for (; *text != '\0'; text++) hash = (hash ^ (unsigned char)*text) * 16777619u;
  return (int)(hash & 0x7fffffff);
}

static named *find(const char *name, int hash) {
  named *entry = rdm__bench_map_find(&modules, hash);
  while (entry != NULL && strcmp(entry->name, name) != 0) entry = entry->next;
  return entry;
}

static void get(rdm__bench_state *state, const char *name, const char *text, _Atomic int32_t *phase) {
  int hash = hash_of(name);
  pthread_mutex_lock(&lock);
  if (phase != NULL) atomic_store_explicit(phase, RDM__BENCH_RUNNING, memory_order_release);
  named *entry = find(name, hash);
  if (entry == NULL) {
    rdm_device device;
    const rdm_module_source source = {.struct_size = sizeof source, .name = "rdm_bench", .source = text};
    rdm_module module = {0};
    rdm_status status = rdm_device_get(state->device_index, &device);
    if (status == RDM_OK) status = rdm_module_get(device, &source, &module);
    rdm__bench_check(state, status, "getting a module");
    entry = calloc(1, sizeof *entry);
    if (entry == NULL || (entry->name = strdup(name)) == NULL) abort();
    entry->module = module;
    entry->next = rdm__bench_map_find(&modules, hash);
    rdm__bench_map_set(&modules, hash, entry);
  }
  RDM__CONSUME(entry->module.bits);
  if (phase != NULL) atomic_store_explicit(phase, RDM__BENCH_WAITING, memory_order_release);
  pthread_mutex_unlock(&lock);
}

static void hit(rdm__bench_state *state) {
  get(state, "empty", rdm__bench_empty_source, NULL);
}

/* Each source of these is another module's, and stands for its name. */
static void compile(rdm__bench_state *state, const char *source, _Atomic int32_t *phase) {
  get(state, source, source, phase);
}

extern const rdm__bench_modules rdm__bench_module_one_lock;
const rdm__bench_modules rdm__bench_module_one_lock = {
    .name = "one lock while compiling", .begin = hit, .hit = hit, .compile = compile};
