/* What a compile that fails leaves: the compiler's own words to each who waited, and nothing else. */
#include "calls.h"
#include "module_cache.h"

#include <stdatomic.h>
#include <string.h>

enum { THREADS = 8, COMPILE_ERROR = 6 };

static const char compile_call[] = "hiprtcCompileProgram";

static const rdm_module_source broken = {.struct_size = sizeof broken,
                                         .name = "broken_kernel.hip",
                                         .source =
                                             "extern \"C\" __global__ void answer(int *out) {\n"
                                             "  *out = 1;\n"
                                             "  *out = not_declared_anywhere;\n"
                                             "}\n"};

static rdm_device device;
static atomic_uint failures;

/* True where the thread's last error has the source's name, the line and the compiler's complaint. */
static bool has_the_log(void) {
  const char *message = rdm_last_error_message();
  return strstr(message, "broken_kernel.hip:3") != NULL && strstr(message, "not_declared_anywhere") != NULL;
}

static void *get_broken(void *argument) {
  (void)argument;
  rdm_module module = {123};
  CHECK_STATUS(rdm_module_get(device, &broken, &module), RDM_ERROR_COMPILE);
  CHECK_THAT(has_the_log(), "the message is \"%s\"", rdm_last_error_message());
  CHECK(module.bits == 123);
  failures++;
  return NULL;
}

static void each_waiter_gets_the_log_of_a_failed_compile(void) {
  pthread_t threads[THREADS];
  test_use_sim(1);
  CHECK_OK(rdm_device_get(0, &device));
  CHECK_OK(rdm_sim_inject(compile_call, 1, 1, 0, 300 * TEST_MILLISECOND * TEST_SLOWDOWN));
  for (int i = 0; i < THREADS; i++) threads[i] = test_start_thread(get_broken, NULL);
  for (int i = 0; i < THREADS; i++) test_join_thread(threads[i]);
  CHECK(failures == THREADS);
  CHECK_THAT(compile_count() == 1, "%llu compiles", (unsigned long long)compile_count());
  CHECK(calls_count_objects().programs == 0 && calls_count_objects().modules == 0);
  /* Nothing was kept: the next call compiles again. */
  get_broken(NULL);
  CHECK(compile_count() == 2);
}

static void a_failure_that_passes_is_not_kept(void) {
  static const struct {
    const char *call;
    int error;
    rdm_status status;
  } steps[] = {{"hiprtcCreateProgram", 2, RDM_ERROR_COMPILE},    {compile_call, COMPILE_ERROR, RDM_ERROR_COMPILE},
               {"hiprtcGetCodeSize", 4, RDM_ERROR_COMPILE},      {"hiprtcGetCode", 4, RDM_ERROR_COMPILE},
               {"hiprtcDestroyProgram", 4, RDM_ERROR_COMPILE},   {"hipModuleLoadData", 200, RDM_ERROR_DRIVER},
               {"hipModuleLoadData", 2, RDM_ERROR_OUT_OF_MEMORY}};
  test_use_sim(1);
  CHECK_OK(rdm_device_get(0, &device));
  for (int i = 0; i < (int)(sizeof steps / sizeof steps[0]); i++) {
    answer_source source;
    rdm_module module = {0};
    answer_source_make(i, &source);
    CHECK_OK(rdm_sim_inject(steps[i].call, 1, 1, steps[i].error, 0));
    rdm_status status = rdm_module_get(device, &source.source, &module);
    CHECK_OK(rdm_sim_clear_injections(NULL));
    CHECK_THAT(status == steps[i].status, "%s: %s", steps[i].call, rdm_last_error_message());
    CHECK(module.bits == 0);
    CHECK_OK(rdm_module_get(device, &source.source, &module));
    CHECK(answer_of(0, module) == i);
  }
}

static void a_long_name_leaves_room_for_the_log(void) {
  char name[4001];
  memset(name, 'n', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  rdm_module_source source = broken;
  source.name = name;
  rdm_module module;
  test_use_sim(1);
  CHECK_OK(rdm_device_get(0, &device));
  CHECK_STATUS(rdm_module_get(device, &source, &module), RDM_ERROR_COMPILE);
  CHECK_THAT(strstr(rdm_last_error_message(), "not_declared_anywhere") != NULL, "the message is \"%s\"",
             rdm_last_error_message());
  answer_source right;
  answer_source_make(9, &right);
  right.source.name = name;
  CHECK_OK(rdm_module_get(device, &right.source, &module));
  CHECK(answer_of(0, module) == 9);
}

static void *get_stalled(void *argument) {
  answer_source source;
  rdm_module module;
  (void)argument;
  answer_source_make(1, &source);
  (void)rdm_module_get(device, &source.source, &module);
  return NULL;
}

/* Leaves a compile and those who wait for it behind; that this process ends in time is what is tested. */
static void an_exit_waits_for_no_compile(void) {
  test_use_sim(1);
  CHECK_OK(rdm_device_get(0, &device));
  CHECK_OK(rdm_sim_inject(compile_call, 1, 1, 0, 600 * TEST_SECOND));
  for (int i = 0; i < THREADS; i++) pthread_detach(test_start_thread(get_stalled, NULL));
  wait_until_inside(compile_call, 1);
}

const test_case failure_tests[] = {
    {.name = "each_waiter_gets_the_log_of_a_failed_compile", .function = each_waiter_gets_the_log_of_a_failed_compile},
    {.name = "a_failure_that_passes_is_not_kept",
     .function = a_failure_that_passes_is_not_kept,
     .writes_to_standard_error = true},
    {.name = "a_long_name_leaves_room_for_the_log", .function = a_long_name_leaves_room_for_the_log},
    {.name = "an_exit_waits_for_no_compile", .function = an_exit_waits_for_no_compile, .limit_seconds = 20},
    {0},
};
