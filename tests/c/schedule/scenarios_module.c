/* Modules: one build for one key. */
#include "driver.h"
#include "scenario.h"

static rdm_device device;
static rdm_module modules[MOST_BODIES];
static rdm_kernel kernels[MOST_BODIES];

static rdm_status get_module(int thread, const char *name) {
  rdm_module_source source = {.struct_size = sizeof source, .name = name, .source = "the source"};
  return rdm_module_get(device, &source, &modules[thread]);
}

static void prepare(void) {
  rdm_set_log_handler(NULL, NULL, RDM_LOG_ERROR);
  rdm_device_get(1, &device);
  /* The tables are there that the process's first module and kernel make, so that a schedule is short. */
  rdm_kernel ready = {0};
  get_module(3, "ready");
  rdm_module_get_kernel(modules[3], "ready", &ready);
}

static void prepare_failure(void) {
  prepare();
  driver_fail(RDM__CALL_rtc_compile_program, 1, RDM_RTC_COMPILATION);
}

static void prepare_serial(void) {
  driver_set_serial_compiler();
  prepare();
}

static void prepare_module(void) {
  prepare();
  get_module(0, "one");
  modules[1] = modules[0];
}

static void get_one_first(void) {
  EXPECT_STATUS(RDM_OK, get_module(0, "one"));
}

static void get_one_second(void) {
  EXPECT_STATUS(RDM_OK, get_module(1, "one"));
}

static void get_one_third(void) {
  EXPECT_STATUS(RDM_OK, get_module(2, "one"));
}

static void get_two(void) {
  EXPECT_STATUS(RDM_OK, get_module(1, "two"));
}

/* The deadline lies far off, so it never passes here. */
static void get_one_within(void) {
  rdm_module_source source = {.struct_size = sizeof source, .name = "one", .source = "the source"};
  EXPECT_STATUS(RDM_OK, rdm_module_get_within(device, &source, UINT64_C(3600000000000), &modules[1]));
}

static void expect_compiles(uint64_t wanted) {
  uint64_t count = 0;
  EXPECT_STATUS(RDM_OK, rdm_module_compile_count(&count));
  EXPECT(count == wanted);
}

static void check_one(void) {
  EXPECT(modules[0].bits == modules[1].bits);
  EXPECT(modules[2].bits == 0 || modules[2].bits == modules[0].bits);
  expect_compiles(1 + 1);
  EXPECT(driver_count(RDM__CALL_module_load_data) == 1 + 1);
}

static void check_two(void) {
  EXPECT(modules[0].bits != modules[1].bits);
  expect_compiles(1 + 2);
}

/* Who waited for the build that failed gets its error, and the next call builds anew. */
static void get_again(int thread) {
  rdm_status status = get_module(thread, "one");
  if (status == RDM_OK) return;
  EXPECT(status == RDM_ERROR_COMPILE);
  EXPECT_STATUS(RDM_OK, get_module(thread, "one"));
}

static void get_again_first(void) {
  get_again(0);
}

static void get_again_second(void) {
  get_again(1);
}

static void check_failed_once(void) {
  EXPECT(modules[0].bits == modules[1].bits);
  expect_compiles(1 + 2);
  EXPECT(driver_count(RDM__CALL_module_load_data) == 1 + 1);
}

static void kernel_first(void) {
  EXPECT_STATUS(RDM_OK, rdm_module_get_kernel(modules[0], "kernel", &kernels[0]));
}

static void kernel_second(void) {
  EXPECT_STATUS(RDM_OK, rdm_module_get_kernel(modules[1], "kernel", &kernels[1]));
}

static void other_kernel(void) {
  EXPECT_STATUS(RDM_OK, rdm_module_get_kernel(modules[1], "another", &kernels[1]));
}

static void check_kernel(void) {
  EXPECT(kernels[0].bits == kernels[1].bits);
  EXPECT(driver_count(RDM__CALL_module_get_function) == 1 + 1);
}

static void check_kernels(void) {
  EXPECT(kernels[0].bits != kernels[1].bits);
  EXPECT(driver_count(RDM__CALL_module_get_function) == 1 + 2);
  kernel_second();
  EXPECT(kernels[0].bits == kernels[1].bits);
}

const scenario module_scenarios[] = {
    {"module_one_key", prepare, {get_one_first, get_one_second}, check_one, 0},
    {"module_one_key_within", prepare, {get_one_first, get_one_within}, check_one, 0},
    {"module_two_keys", prepare, {get_one_first, get_two}, check_two, SCENARIO_IS_LARGE},
    {"module_serial_compiler", prepare_serial, {get_one_first, get_two}, check_two, SCENARIO_IS_LARGE},
    {"module_failing_build", prepare_failure, {get_again_first, get_again_second}, check_failed_once, 0},
    {"module_three_threads", prepare, {get_one_first, get_one_second, get_one_third}, check_one, SCENARIO_IS_LARGE},
    {"kernel_one_name", prepare_module, {kernel_first, kernel_second}, check_kernel, 0},
    {"kernel_two_names", prepare_module, {kernel_first, other_kernel}, check_kernels, 0},
    {.name = NULL},
};
