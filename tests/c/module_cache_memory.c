/* One compile for each key, and lookups that wait for nobody. */
#include "calls.h"
#include "module_cache.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 8, ROUNDS = 16 / TEST_SLOWDOWN, WARM = 1000, COLD = 2000 };

static const char compile_call[] = "hiprtcCompileProgram";

static rdm_device device;
static rdm_module warm_module;
static pthread_barrier_t barrier;
static rdm_module found[THREADS];

static rdm_module get(int number) {
  answer_source source;
  rdm_module module = {0};
  answer_source_make(number, &source);
  CHECK_OK(rdm_module_get(device, &source.source, &module));
  return module;
}

static void start(void) {
  test_use_sim(2);
  CHECK_OK(rdm_device_get(0, &device));
}

/* ---- One compile ----------------------------------------------------------------------------------------------- */

static void get_same_in_each_round(unsigned number) {
  for (int round = 0; round < ROUNDS; round++) {
    pthread_barrier_wait(&barrier);
    found[number] = get(round);
    pthread_barrier_wait(&barrier);
    if (number != 0) continue;
    for (unsigned i = 1; i < THREADS; i++) CHECK(found[i].bits == found[0].bits);
    CHECK(compile_count() == (uint64_t)round + 1);
    CHECK(answer_of(0, found[0]) == round);
  }
}

static void one_key_from_many_threads_is_one_compile_and_one_module(void) {
  start();
  CHECK(pthread_barrier_init(&barrier, NULL, THREADS) == 0);
  test_run_threads(THREADS, get_same_in_each_round);
  CHECK(calls_made(compile_call) == ROUNDS);
  CHECK(calls_made("hipModuleLoadData") == ROUNDS);
  CHECK(calls_count_objects().programs == 0);
  CHECK(calls_count_objects().modules == ROUNDS);
}

static void get_own(unsigned number) {
  pthread_barrier_wait(&barrier);
  found[number] = get((int)number);
}

static void many_keys_are_compiled_at_the_same_time(void) {
  start();
  CHECK(pthread_barrier_init(&barrier, NULL, THREADS) == 0);
  /* Each stalls until all are inside: with one compile at a time the second would never come. */
  CHECK_OK(rdm_sim_inject(compile_call, 1, THREADS, 0, TEST_SECOND));
  uint64_t begin = test_now_ns();
  test_run_threads(THREADS, get_own);
  CHECK_THAT(test_now_ns() - begin < THREADS * TEST_SECOND, "the compiles came one after the other");
  for (unsigned i = 0; i < THREADS; i++) CHECK(answer_of(0, found[i]) == (int)i);
  CHECK(compile_count() == THREADS);
}

static void unlike_devices_load_one_code(void) {
  start();
  rdm_device second;
  CHECK_OK(rdm_device_get(1, &second));
  rdm_module module = get(3);
  answer_source source;
  rdm_module other = {0};
  answer_source_make(3, &source);
  CHECK_OK(rdm_module_get(second, &source.source, &other));
  CHECK(other.bits != module.bits);
  CHECK(compile_count() == 1);
  CHECK(calls_made("hipModuleLoadData") == 2);
  CHECK(answer_of(0, module) == 3 && answer_of(1, other) == 3);
}

/* ---- Hits ------------------------------------------------------------------------------------------------------ */

static void *compile_cold(void *argument) {
  get(COLD + (int)(intptr_t)argument);
  return NULL;
}

static void a_hit_waits_for_no_compile(void) {
  enum { COMPILES = 4, HITS = 2000 };
  pthread_t threads[COMPILES];
  start();
  warm_module = get(WARM);
  const uint64_t stall = TEST_SECOND;
  CHECK_OK(rdm_sim_inject(compile_call, 1, COMPILES, 0, stall));
  uint64_t begin = test_now_ns();
  for (intptr_t i = 0; i < COMPILES; i++) threads[i] = test_start_thread(compile_cold, (void *)i);
  wait_until_inside(compile_call, COMPILES);
  for (int i = 0; i < HITS; i++) {
    rdm_kernel kernel;
    CHECK(get(WARM).bits == warm_module.bits);
    CHECK_OK(rdm_module_get_kernel(warm_module, "answer", &kernel));
  }
  CHECK(answer_of(0, warm_module) == WARM);
  CHECK_THAT(test_now_ns() - begin < stall, "the hits waited for the compiles");
  CHECK(calls_inside(compile_call) == COMPILES);
  for (int i = 0; i < COMPILES; i++) test_join_thread(threads[i]);
}

static void *get_missing_kernel(void *argument) {
  (void)argument;
  rdm_kernel kernel;
  CHECK_STATUS(rdm_module_get_kernel(warm_module, "nobody", &kernel), RDM_ERROR_KERNEL_NOT_FOUND);
  return NULL;
}

static void a_kernel_that_is_known_waits_for_no_other(void) {
  static const char call[] = "hipModuleGetFunction";
  rdm_kernel kernel;
  rdm_kernel again;
  start();
  warm_module = get(WARM);
  CHECK_OK(rdm_module_get_kernel(warm_module, "answer", &kernel));
  const uint64_t stall = TEST_SECOND;
  CHECK_OK(rdm_sim_inject(call, 1, 1, 0, stall));
  uint64_t begin = test_now_ns();
  pthread_t thread = test_start_thread(get_missing_kernel, NULL);
  wait_until_inside(call, 1);
  CHECK_OK(rdm_module_get_kernel(warm_module, "answer", &again));
  CHECK(again.bits == kernel.bits);
  CHECK_THAT(test_now_ns() - begin < stall, "the lookup waited for another's");
  test_join_thread(thread);
}

static void *get_cold(void *argument) {
  (void)argument;
  get(COLD);
  return NULL;
}

static void those_who_wait_for_a_compile_sleep(void) {
  pthread_t threads[THREADS];
  start();
  get(WARM);
  CHECK_OK(rdm_sim_inject(compile_call, 1, 1, 0, TEST_SECOND));
  for (int i = 0; i < THREADS; i++) threads[i] = test_start_thread(get_cold, NULL);
  wait_until_inside(compile_call, 1);
  test_sleep_ns(100 * TEST_MILLISECOND);
  uint64_t before = process_time_ns();
  test_sleep_ns(500 * TEST_MILLISECOND);
  uint64_t used = process_time_ns() - before;
  CHECK_THAT(used < 100 * TEST_MILLISECOND, "%d waiting threads used %llu us in half a second", THREADS - 1,
             (unsigned long long)used / 1000);
  for (int i = 0; i < THREADS; i++) test_join_thread(threads[i]);
  CHECK(compile_count() == 2);
}

/* ---- Code ------------------------------------------------------------------------------------------------------ */

static void code_is_compiled_without_a_device_and_loads(void) {
  answer_source source;
  const void *code = NULL;
  const void *again = NULL;
  size_t size = 0;
  rdm_module module;
  test_use_sim(1);
  answer_source_make(5, &source);
  CHECK_OK(rdm_code_get("sim", &source.source, &code, &size));
  CHECK_OK(rdm_code_get("sim", &source.source, &again, &size));
  CHECK(code == again && size > 0 && compile_count() == 1);
  uint64_t constructed = 1;
  CHECK_OK(rdm_device_construction_count(0, &constructed));
  CHECK(constructed == 0);
  CHECK_OK(rdm_device_get(0, &device));
  CHECK_OK(rdm_module_load(device, "by hand", code, size, &module));
  CHECK(answer_of(0, module) == 5);
  /* The module of the same source takes the code that is there. */
  CHECK(answer_of(0, get(5)) == 5);
  CHECK(compile_count() == 1);
}

static void bad_arguments_of_code_get(void) {
  answer_source source;
  const void *code = NULL;
  size_t size = 0;
  char long_name[400];
  test_use_sim(1);
  answer_source_make(5, &source);
  memset(long_name, 'g', sizeof long_name - 1);
  long_name[sizeof long_name - 1] = '\0';
  CHECK_STATUS(rdm_code_get(NULL, &source.source, &code, &size), RDM_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rdm_code_get("sim", NULL, &code, &size), RDM_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rdm_code_get("sim", &source.source, NULL, &size), RDM_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rdm_code_get("sim", &source.source, &code, NULL), RDM_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rdm_code_get("", &source.source, &code, &size), RDM_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rdm_code_get(long_name, &source.source, &code, &size), RDM_ERROR_INVALID_ARGUMENT);
  CHECK(strstr(rdm_last_error_message(), "architecture") != NULL);
  CHECK(compile_count() == 0);
}

static void bad_arguments_of_module_load(void) {
  rdm_module module = {123};
  test_use_sim(1);
  CHECK_OK(rdm_device_get(0, &device));
  CHECK_STATUS(rdm_module_load(device, NULL, "code", 4, &module), RDM_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rdm_module_load(device, "name", NULL, 4, &module), RDM_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rdm_module_load(device, "name", "code", 0, &module), RDM_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rdm_module_load(device, "name", "code", 4, NULL), RDM_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(rdm_module_load((rdm_device){0}, "name", "code", 4, &module), RDM_ERROR_NULL_HANDLE);
  CHECK_STATUS(rdm_module_load((rdm_device){7}, "name", "code", 4, &module), RDM_ERROR_FOREIGN_HANDLE);
  CHECK(calls_made("hipModuleLoadData") == 0);
  CHECK_STATUS(rdm_module_load(device, "name", "code", 4, &module), RDM_ERROR_DRIVER);
  CHECK(module.bits == 123);
}

const test_case memory_tests[] = {
    {.name = "one_key_from_many_threads_is_one_compile_and_one_module",
     .function = one_key_from_many_threads_is_one_compile_and_one_module},
    {.name = "many_keys_are_compiled_at_the_same_time", .function = many_keys_are_compiled_at_the_same_time},
    {.name = "unlike_devices_load_one_code", .function = unlike_devices_load_one_code},
    {.name = "a_hit_waits_for_no_compile", .function = a_hit_waits_for_no_compile},
    {.name = "a_kernel_that_is_known_waits_for_no_other", .function = a_kernel_that_is_known_waits_for_no_other},
    {.name = "those_who_wait_for_a_compile_sleep", .function = those_who_wait_for_a_compile_sleep},
    {.name = "code_is_compiled_without_a_device_and_loads", .function = code_is_compiled_without_a_device_and_loads},
    {.name = "bad_arguments_of_code_get", .function = bad_arguments_of_code_get},
    {.name = "bad_arguments_of_module_load", .function = bad_arguments_of_module_load},
    {0},
};
