/* Public reports on run-time compiled modules, by their numbers in the field log. */
#include "cache_key.h"
#include "calls.h"
#include "module_cache.h"
#include "other_code.h"
#include "runtime.h"
#include "work.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- 14: a failed module lookup poisons the next launch ---------------------------------------------------------- */

static void field_log_14_a_failed_lookup_is_not_blamed_on_a_launch(void) {
  answer_source source;
  rdm_device device;
  rdm_module module;
  rdm_kernel kernel;
  char garbage[256];
  memset(garbage, 7, sizeof garbage);
  test_use_sim(1);
  CHECK_OK(rdm_device_get(0, &device));
  answer_source_make(14, &source);
  CHECK_STATUS(rdm_module_load(device, "garbage", garbage, sizeof garbage, &module), RDM_ERROR_DRIVER);
  CHECK(strstr(rdm_last_error_message(), "garbage") != NULL);
  CHECK(other_code_peeks_at_last_error() == 0);
  CHECK_OK(rdm_module_get(device, &source.source, &module));
  CHECK_STATUS(rdm_module_get_kernel(module, "nope", &kernel), RDM_ERROR_KERNEL_NOT_FOUND);
  CHECK(strstr(rdm_last_error_message(), "nope") != NULL);
  CHECK(other_code_peeks_at_last_error() == 0);
  CHECK(answer_of(0, module) == 14);
  CHECK(other_code_peeks_at_last_error() == 0);
}

/* ---- 21: parallel module loads deadlock -------------------------------------------------------------------------- */

enum { THREADS = 16, KERNELS = TEST_SLOWDOWN == 1 ? 40 : 16 };

static rdm_device the_device;
static atomic_bool loading_is_over;
static atomic_uint evaluations;
static pthread_barrier_t barrier;

static void get_many(unsigned number) {
  pthread_barrier_wait(&barrier);
  /* Half of the threads want the same kernels in the same order, the others each its own part. */
  for (int i = 0; i < KERNELS; i++) {
    int wanted = number < THREADS / 2 ? i : (i * 7 + (int)number) % KERNELS;
    answer_source source;
    rdm_module module;
    answer_source_make(wanted, &source);
    CHECK_OK(rdm_module_get(the_device, &source.source, &module));
  }
}

static void *evaluate_meanwhile(void *argument) {
  work_kernels kernels;
  work_buffers buffers;
  rdm_stream stream;
  (void)argument;
  CHECK_OK(work_load(0, &kernels));
  CHECK_OK(work_buffers_allocate(kernels.device, &buffers));
  CHECK_OK(rdm_stream_create(0, &stream));
  pthread_barrier_wait(&barrier);
  while (!loading_is_over) {
    uint32_t wrong = 0;
    CHECK_OK(work_evaluate(stream, &kernels, &buffers, &wrong));
    CHECK(wrong == 0);
    evaluations++;
  }
  return NULL;
}

/* The simulated driver refuses a second thread inside a compile or a load; one refusal fails this. */
static void field_log_21_loads_and_compiles_go_one_at_a_time(void) {
  const rdm__driver *driver = NULL;
  CHECK(setenv("RDM_SIM_SERIAL_COMPILER", "1", 1) == 0);
  test_use_sim(1);
  CHECK_OK(rdm__runtime_enter(&driver));
  CHECK(driver->compiles_one_at_a_time);
  CHECK_OK(rdm_device_get(0, &the_device));
  CHECK(pthread_barrier_init(&barrier, NULL, THREADS + 1) == 0);
  pthread_t meanwhile = test_start_thread(evaluate_meanwhile, NULL);
  test_run_threads(THREADS, get_many);
  loading_is_over = true;
  test_join_thread(meanwhile);
  CHECK_THAT(compile_count() == KERNELS + 1, "%llu compiles", (unsigned long long)compile_count());
  CHECK(calls_made("hipModuleLoadData") == KERNELS + 1);
  CHECK_THAT(evaluations >= KERNELS, "only %u evaluations while %d kernels were compiled", evaluations, KERNELS);
}

static atomic_uint refusals;

static void *want_broken(void *argument) {
  const rdm_module_source broken = {.struct_size = sizeof broken, .name = "broken_21", .source = "int f( {"};
  rdm_module module;
  (void)argument;
  CHECK_STATUS(rdm_module_get(the_device, &broken, &module), RDM_ERROR_COMPILE);
  CHECK(strstr(rdm_last_error_message(), "broken_21") != NULL);
  refusals++;
  return NULL;
}

static void field_log_21_a_failed_build_fails_its_waiters_and_is_retried(void) {
  pthread_t threads[8];
  CHECK(setenv("RDM_SIM_SERIAL_COMPILER", "1", 1) == 0);
  test_use_sim(1);
  CHECK_OK(rdm_device_get(0, &the_device));
  CHECK_OK(rdm_sim_inject("hiprtcCompileProgram", 1, 1, 0, 300 * TEST_MILLISECOND * TEST_SLOWDOWN));
  for (int i = 0; i < 8; i++) threads[i] = test_start_thread(want_broken, NULL);
  for (int i = 0; i < 8; i++) test_join_thread(threads[i]);
  CHECK(refusals == 8 && compile_count() == 1);
  want_broken(NULL);
  CHECK(compile_count() == 2);
}

/* ---- 22: a function looked up with the wrong GPU current ----------------------------------------------------------
 */

static void *look_up_on_both(void *argument) {
  rdm_module *modules = argument;
  for (int i = 0; i < 20; i++) {
    rdm_kernel kernel;
    /* Each name is new to its module, so the driver is asked, while other code has left the other device current. */
    char name[32];
    snprintf(name, sizeof name, "not_there_%d", i);
    CHECK(other_code_sets_device((i + 1) % 2) == 0);
    CHECK_STATUS(rdm_module_get_kernel(modules[i % 2], name, &kernel), RDM_ERROR_KERNEL_NOT_FOUND);
    CHECK(answer_of(i % 2, modules[i % 2]) == 22);
  }
  return NULL;
}

static void field_log_22_a_module_is_used_with_its_own_device_current(void) {
  answer_source source;
  rdm_module modules[2];
  test_use_sim(2);
  answer_source_make(22, &source);
  for (int i = 0; i < 2; i++) {
    rdm_device device;
    CHECK_OK(rdm_device_get(i, &device));
    CHECK(other_code_sets_device((i + 1) % 2) == 0);
    CHECK_OK(rdm_module_get(device, &source.source, &modules[i]));
  }
  CHECK(modules[0].bits != modules[1].bits);
  look_up_on_both(modules);
  test_join_thread(test_start_thread(look_up_on_both, modules));
  CHECK(calls_made("hipModuleLoadData") == 2);
  call_list list = calls_read(0);
  calls_check_current_device(&list);
  calls_free(&list);
}

/* ---- 23: same name, other source, wrong numbers --------------------------------------------------------------------
 */

static const char *const first_options[] = {"-DVALUE=1", "-DOTHER=2"};
static const char *const reversed_options[] = {"-DOTHER=2", "-DVALUE=1"};
static const char *const changed_options[] = {"-DVALUE=3", "-DOTHER=2"};
static const char *const joined_options[] = {"-DVALUE=1 -DOTHER=2"};
static const char text[] = "extern \"C\" __global__ void answer(int *out) { *out = VALUE * 10 + OTHER; }\n";
static const char changed_text[] = "extern \"C\" __global__ void answer(int *out) { *out = VALUE * 100 + OTHER; }\n";

#define SOURCE(source_name, source_text, count, list) \
  { sizeof(rdm_module_source), (count), (source_name), (source_text), (list) }

/* Each differs from the first in exactly one thing. */
static const struct {
  rdm_module_source source;
  int answer;
} variants[] = {
    {SOURCE("kernel", text, 2, first_options), 12},          {SOURCE("other", text, 2, first_options), 12},
    {SOURCE("kernel", changed_text, 2, first_options), 102}, {SOURCE("kernel", text, 2, reversed_options), 12},
    {SOURCE("kernel", text, 2, changed_options), 32},
};

enum { VARIANTS = sizeof variants / sizeof variants[0] };

static void check_in_memory(rdm_device device) {
  rdm_module modules[VARIANTS];
  for (int i = 0; i < VARIANTS; i++) {
    CHECK_OK(rdm_module_get(device, &variants[i].source, &modules[i]));
    CHECK_THAT(answer_of(0, modules[i]) == variants[i].answer, "variant %d gave %d", i, answer_of(0, modules[i]));
    for (int j = 0; j < i; j++) CHECK(modules[i].bits != modules[j].bits);
  }
  CHECK(compile_count() == VARIANTS);
  for (int i = 0; i < VARIANTS; i++) {
    rdm_module again;
    CHECK_OK(rdm_module_get(device, &variants[i].source, &again));
    CHECK(again.bits == modules[i].bits);
  }
  CHECK(compile_count() == VARIANTS);
}

static void field_log_23_sources_that_differ_in_anything_are_two_modules(void) {
  rdm_device device;
  char folder[256];
  rdm_cache_info info = {.struct_size = sizeof info};
  test_use_sim(1);
  use_new_cache_folder(folder, sizeof folder);
  CHECK_OK(rdm_device_get(0, &device));
  check_in_memory(device);
  CHECK_OK(rdm_cache_get_info(&info));
  CHECK(info.entry_count == VARIANTS);
  remove_cache_folder(folder);
}

static char *key_text(const rdm__driver *driver, const char *architecture, const rdm_module_source *source,
                      size_t *out_size) {
  rdm__cache_key key;
  CHECK(rdm__cache_key_make(driver, architecture, source, &key));
  *out_size = key.size_bytes;
  return key.bytes;
}

enum { KEYS = VARIANTS + 6 };

/* As above, and in what belongs to the driver: each pair of keys has to differ, and in its file's name as well. */
static void field_log_23_keys_on_disk_differ_with_all_that_changes_the_code(void) {
  const rdm__driver *driver = NULL;
  char *keys[KEYS];
  size_t sizes[KEYS];
  char names[KEYS][RDM__CACHE_NAME_SIZE];
  int count = 0;
  test_use_sim(1);
  CHECK_OK(rdm__runtime_enter(&driver));
  rdm__driver other_driver = *driver;
  rdm__driver other_compiler = *driver;
  rdm__driver other_build = *driver;
  other_driver.name = "hip";
  snprintf(other_compiler.compiler_path, sizeof other_compiler.compiler_path, "/usr/bin/another");
  snprintf(other_build.compiler_identity, sizeof other_build.compiler_identity, "another");
  const rdm_module_source joined = SOURCE("kernel", text, 1, joined_options);
  const rdm_module_source *first = &variants[0].source;
  for (; count < VARIANTS; count++) keys[count] = key_text(driver, "gfx90a", &variants[count].source, &sizes[count]);
  const struct {
    const rdm__driver *driver;
    const char *architecture;
    const rdm_module_source *source;
  } others[] = {{driver, "gfx90a", &joined},      {driver, "gfx90c", first},          {driver, "gfx90a:xnack-", first},
                {&other_driver, "gfx90a", first}, {&other_compiler, "gfx90a", first}, {&other_build, "gfx90a", first}};
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++, count++) {
    keys[count] = key_text(others[i].driver, others[i].architecture, others[i].source, &sizes[count]);
  }
  for (int i = 0; i < count; i++) {
    const rdm__cache_key key = {.bytes = keys[i], .size_bytes = sizes[i]};
    rdm__cache_entry_name(&key, names[i]);
    for (int j = 0; j < i; j++) {
      bool same = sizes[i] == sizes[j] && memcmp(keys[i], keys[j], sizes[i]) == 0;
      CHECK_THAT(!same && strcmp(names[i], names[j]) != 0, "keys %d and %d are the same", i, j);
    }
  }
  size_t again_size = 0;
  char *again = key_text(driver, "gfx90a", first, &again_size);
  CHECK(again_size == sizes[0] && memcmp(again, keys[0], again_size) == 0);
  free(again);
  for (int i = 0; i < count; i++) free(keys[i]);
}

const test_case module_field_log_tests[] = {
    {.name = "field_log_14_a_failed_lookup_is_not_blamed_on_a_launch",
     .function = field_log_14_a_failed_lookup_is_not_blamed_on_a_launch},
    {.name = "field_log_21_loads_and_compiles_go_one_at_a_time",
     .function = field_log_21_loads_and_compiles_go_one_at_a_time},
    {.name = "field_log_21_a_failed_build_fails_its_waiters_and_is_retried",
     .function = field_log_21_a_failed_build_fails_its_waiters_and_is_retried},
    {.name = "field_log_22_a_module_is_used_with_its_own_device_current",
     .function = field_log_22_a_module_is_used_with_its_own_device_current},
    {.name = "field_log_23_sources_that_differ_in_anything_are_two_modules",
     .function = field_log_23_sources_that_differ_in_anything_are_two_modules},
    {.name = "field_log_23_keys_on_disk_differ_with_all_that_changes_the_code",
     .function = field_log_23_keys_on_disk_differ_with_all_that_changes_the_code},
    {0},
};
