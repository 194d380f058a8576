/*
 * Field log 11: a kernel that writes where there is nothing, in a process of its own, with and without
 * HIP_SKIP_ABORT_ON_GPU_ERROR and the right to dump core. AMD's runtime ends the process on a thread of its own, unless
 * the flag keeps it from that; `sim` does so where RDM_SIM_FAULT_ABORT is 1. Each cell is a fault that the library
 * reports, or the signal at once; none hangs.
 */
#include "concurrency.h"
#include "work.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

enum { EXIT_FAULT = 31, EXIT_NO_LIMIT = 77 };

/* TEST_CORE_LIMIT is "0" or "unlimited". Where the limit lets a core be dumped, no file is written all the same. */
static bool set_core_limit(void) {
  const char *text = getenv("TEST_CORE_LIMIT");
  rlim_t wanted = text != NULL && strcmp(text, "unlimited") == 0 ? RLIM_INFINITY : 0;
  struct rlimit limit = {.rlim_cur = wanted, .rlim_max = wanted};
  prctl(PR_SET_DUMPABLE, 0);
  if (setrlimit(RLIMIT_CORE, &limit) == 0) return true;
  /* What one may raise it to without privileges. */
  if (getrlimit(RLIMIT_CORE, &limit) != 0 || limit.rlim_max == 0) return false;
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_CORE, &limit) == 0;
}

/* Prints when the kernel was launched; ends with EXIT_FAULT once the library has said what happened. */
static int launch_a_wild_kernel(void) {
  work_kernels kernels;
  rdm_stream stream;
  rdm_encoder encoder;
  rdm_module module;
  rdm_kernel wild;
  const rdm_module_source source = {.struct_size = sizeof source,
                                    .name = "wild",
                                    .source =
                                        "extern \"C\" __global__ void wild(float *out) { *(volatile float *)((char "
                                        "*)out + 0x700000000000ull) = 1; }\n"};
  float *nowhere = NULL;
  void *arguments[] = {&nowhere};
  const rdm_launch_config config = {.struct_size = sizeof config, .grid = {1, 1, 1}, .block = {1, 1, 1}};
  if (!set_core_limit()) return EXIT_NO_LIMIT;
  test_use_sim(1);
  CHECK_OK(work_load(0, &kernels));
  CHECK_OK(rdm_module_get(kernels.device, &source, &module));
  CHECK_OK(rdm_module_get_kernel(module, "wild", &wild));
  CHECK_OK(rdm_stream_create(0, &stream));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
  printf("%llu\n", (unsigned long long)test_now_ns());
  fflush(stdout);
  CHECK_OK(rdm_encoder_launch(encoder, wild, &config, arguments, 1));
  CHECK_STATUS(rdm_stream_synchronize(stream, 20 * TEST_SECOND), RDM_ERROR_DEVICE_FAULT);
  return EXIT_FAULT;
}

/* A flag of NULL: not set. Where the limit can not be had the cell says so. */
static void check_cell(const char *abort, const char *flag, const char *core_limit, bool ends_by_signal) {
  const char *const environment[] = {abort, flag == NULL ? "HIP_SKIP_ABORT_ON_GPU_ERROR" : flag, core_limit, NULL};
  process_outcome *outcome = malloc(sizeof *outcome);
  CHECK(outcome != NULL);
  test_run_body("launch_a_wild_kernel", environment, 30, outcome);
  uint64_t ended = test_now_ns();
  if (outcome->exit_code == EXIT_NO_LIMIT) {
    printf("SKIPPED: this process may not set %s\n", core_limit);
  } else {
    uint64_t launched = strtoull(outcome->standard_output, NULL, 10);
    CHECK_THAT(!outcome->timed_out && outcome->signal == (ends_by_signal ? SIGABRT : 0) &&
                   outcome->exit_code == (ends_by_signal ? -1 : EXIT_FAULT),
               "%s %s %s: exit code %d, signal %d, timed out %d: %s", abort, environment[1], core_limit,
               outcome->exit_code, outcome->signal, outcome->timed_out, outcome->standard_error);
    CHECK_THAT(launched > 0 && ended - launched < TEST_SECOND * TEST_SLOWDOWN, "%s %s: the end came %.3f s late",
               environment[1], core_limit, (double)(ended - launched) * 1e-9);
    CHECK_THAT(test_only_bound_lines(outcome->standard_error), "it wrote: %s", outcome->standard_error);
  }
  free(outcome);
}

static const char aborts[] = "RDM_SIM_FAULT_ABORT=1";
static const char skip[] = "HIP_SKIP_ABORT_ON_GPU_ERROR=1";
static const char no_core[] = "TEST_CORE_LIMIT=0";
static const char core[] = "TEST_CORE_LIMIT=unlimited";

static void field_log_11_without_the_flag_a_fault_is_a_prompt_signal(void) {
  check_cell(aborts, NULL, no_core, true);
  check_cell(aborts, NULL, core, true);
  check_cell(aborts, "HIP_SKIP_ABORT_ON_GPU_ERROR=0", no_core, true);
}

static void field_log_11_with_the_flag_and_no_core_a_fault_is_reported(void) {
  check_cell(aborts, skip, no_core, false);
}

static void field_log_11_the_way_to_a_core_dump_overrides_the_flag(void) {
  check_cell(aborts, skip, core, true);
}

static void a_runtime_that_does_not_abort_reports_in_every_cell(void) {
  check_cell("RDM_SIM_FAULT_ABORT", NULL, no_core, false);
  check_cell("RDM_SIM_FAULT_ABORT=0", skip, core, false);
}

const test_body abort_bodies[] = {{"launch_a_wild_kernel", launch_a_wild_kernel}, {0}};

const test_case abort_tests[] = {
    {.name = "field_log_11_without_the_flag_a_fault_is_a_prompt_signal",
     .function = field_log_11_without_the_flag_a_fault_is_a_prompt_signal},
    {.name = "field_log_11_with_the_flag_and_no_core_a_fault_is_reported",
     .function = field_log_11_with_the_flag_and_no_core_a_fault_is_reported},
    {.name = "field_log_11_the_way_to_a_core_dump_overrides_the_flag",
     .function = field_log_11_the_way_to_a_core_dump_overrides_the_flag},
    {.name = "a_runtime_that_does_not_abort_reports_in_every_cell",
     .function = a_runtime_that_does_not_abort_reports_in_every_cell},
    {0},
};
