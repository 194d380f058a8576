/* The cache of builds by itself, with a builder that takes no time: what is left is the moment between two looks. */
#include "build_cache.h"
#include "module_cache.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, ROUNDS = 60, SOURCE_BYTES = 1 << 18 };

static rdm__build_cache cache = RDM__BUILD_CACHE_INIT;
static atomic_uint arrived;
static atomic_uint builds;
static char *text;

static void meet(unsigned round) {
  atomic_fetch_add(&arrived, 1);
  for (unsigned spins = 0; atomic_load(&arrived) < (round + 1) * THREADS; spins++) {
    if (spins > 1000) sched_yield();
  }
}

static rdm_status build(void *context, const rdm_module_source *source, void **out_value) {
  (void)context;
  char *value = strdup(source->name);
  if (value == NULL) return RDM_ERROR_OUT_OF_MEMORY;
  builds++;
  *out_value = value;
  return RDM_OK;
}

/* The source is so long that a thread is at it, between its look and its turn, for longer than a build takes. */
static void build_each_round(unsigned number) {
  (void)number;
  for (unsigned round = 0; round < ROUNDS; round++) {
    char name[32];
    void *value = NULL;
    snprintf(name, sizeof name, "round %u", round);
    const rdm_module_source source = {.struct_size = sizeof source, .name = name, .source = text};
    meet(round);
    CHECK_OK(rdm__build_cache_get(&cache, "scope", &source, UINT64_MAX, build, NULL, &value));
    CHECK_THAT(strcmp(value, name) == 0, "\"%s\" is not the value of \"%s\"", (char *)value, name);
  }
}

static void a_build_that_ended_since_the_look_is_not_made_again(void) {
  text = malloc(SOURCE_BYTES);
  CHECK(text != NULL);
  memset(text, 'x', SOURCE_BYTES - 1);
  text[SOURCE_BYTES - 1] = '\0';
  test_run_threads(THREADS, build_each_round);
  CHECK_THAT(builds == ROUNDS, "%u builds of %d keys", builds, ROUNDS);
}

/* One thread builds, and the others find it as soon as it is there, which takes no lock. */
static void build_or_find(unsigned number) {
  for (unsigned round = 0; round < ROUNDS; round++) {
    char name[32];
    void *value = NULL;
    snprintf(name, sizeof name, "key %u", round);
    const rdm_module_source source = {.struct_size = sizeof source, .name = name, .source = "text"};
    if (number == 0) {
      CHECK_OK(rdm__build_cache_get(&cache, "scope", &source, UINT64_MAX, build, NULL, &value));
    } else {
      while ((value = rdm__build_cache_find(&cache, "scope", &source)) == NULL) sched_yield();
    }
    CHECK_THAT(strcmp(value, name) == 0, "\"%s\" is not the value of \"%s\"", (char *)value, name);
  }
}

static void a_build_is_found_whole_or_not_at_all(void) {
  test_run_threads(THREADS, build_or_find);
}

/* ---- Kernels ---------------------------------------------------------------------------------------------------- */

static rdm_module module;
static rdm_kernel found[THREADS];

static void get_kernel(unsigned number) {
  CHECK_OK(rdm_module_get_kernel(module, "answer", &found[number]));
}

static void a_kernel_asked_for_by_many_at_once_is_one(void) {
  answer_source source;
  rdm_device device;
  test_use_sim(1);
  answer_source_make(1, &source);
  CHECK_OK(rdm_device_get(0, &device));
  CHECK_OK(rdm_module_get(device, &source.source, &module));
  CHECK_OK(rdm_sim_inject("hipModuleGetFunction", 1, 0, 0, 50 * TEST_MILLISECOND));
  test_run_threads(THREADS, get_kernel);
  for (int i = 1; i < THREADS; i++) CHECK(found[i].bits == found[0].bits);
}

const test_case build_tests[] = {
    {.name = "a_build_that_ended_since_the_look_is_not_made_again",
     .function = a_build_that_ended_since_the_look_is_not_made_again},
    {.name = "a_build_is_found_whole_or_not_at_all", .function = a_build_is_found_whole_or_not_at_all},
    {.name = "a_kernel_asked_for_by_many_at_once_is_one", .function = a_kernel_asked_for_by_many_at_once_is_one},
    {0},
};
