/* What is logged, where, and at which level. */
#include "calls.h"
#include "concurrency.h"
#include "work.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- What an engineer who looks for a fault is told ------------------------------------------------------------- */

enum { MAX_LINES = 64, LINE_SIZE = 1024 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char lines[MAX_LINES][LINE_SIZE];
static rdm_log_level levels[MAX_LINES];
static unsigned line_count;

static void keep(rdm_log_level level, const char *message, void *user_data) {
  (void)user_data;
  pthread_mutex_lock(&lock);
  if (line_count < MAX_LINES) {
    levels[line_count] = level;
    snprintf(lines[line_count++], LINE_SIZE, "%s", message);
  }
  pthread_mutex_unlock(&lock);
}

/* Fails unless there are `times` lines of the level that have all the texts in them. */
static void expect_lines(unsigned times, rdm_log_level level, const char *first, const char *second) {
  unsigned found = 0;
  pthread_mutex_lock(&lock);
  for (unsigned i = 0; i < line_count; i++) {
    found += levels[i] == level && strstr(lines[i], first) != NULL && strstr(lines[i], second) != NULL;
  }
  for (unsigned i = 0; i < line_count && found != times; i++) fprintf(stderr, "%d %s\n", levels[i], lines[i]);
  pthread_mutex_unlock(&lock);
  CHECK_THAT(found == times, "%u lines with \"%s\" and \"%s\"", found, first, second);
}

static void make_cache_folder(char path[64]) {
  snprintf(path, 64, "/tmp/rdm-log-XXXXXX");
  CHECK(mkdtemp(path) != NULL);
  setenv("RDM_CACHE_DIR", path, 1);
}

static void remove_folder(const char *path) {
  char command[128];
  snprintf(command, sizeof command, "rm -r '%s'", path);
  CHECK(system(command) == 0);
}

static void debug_lines_tell_what_happened(void) {
  char folder[64];
  make_cache_folder(folder);
  CHECK_OK(rdm_set_log_handler(keep, NULL, RDM_LOG_DEBUG));
  test_use_sim(2);
  work_kernels kernels;
  rdm_stream stream;
  rdm_encoder encoder;
  CHECK_OK(work_load(0, &kernels));
  expect_lines(1, RDM_LOG_DEBUG, "driver sim: 2 devices", "named by rdm_configure");
  expect_lines(1, RDM_LOG_INFO, "bound HIP device 0", "driver sim");
  expect_lines(1, RDM_LOG_DEBUG, "work for sim is entry ", "which has not it");
  expect_lines(1, RDM_LOG_DEBUG, "compiling work for sim took ", " ms");
  expect_lines(1, RDM_LOG_DEBUG, "device 0: module work loaded", " bytes");
  /* Another device loads the same code, which nobody compiles again. */
  CHECK_OK(work_load(1, &kernels));
  expect_lines(1, RDM_LOG_DEBUG, "compiling work", "");
  expect_lines(1, RDM_LOG_DEBUG, "device 1: module work loaded", "");
  rdm_module module;
  rdm_module_source broken = work_source;
  broken.source = "this is no kernel";
  CHECK_STATUS(rdm_module_get(kernels.device, &broken, &module), RDM_ERROR_COMPILE);
  expect_lines(1, RDM_LOG_DEBUG, "the failed compile of work for sim took ", " ms");
  CHECK_OK(rdm_stream_create(0, &stream));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
  expect_lines(1, RDM_LOG_DEBUG, "device 0: driver stream ", " made");
  CHECK_OK(rdm_clear_encoders());
  expect_lines(1, RDM_LOG_DEBUG, "device 0: 1 encoders cleared", "");
  CHECK_OK(rdm_sim_fault(0, 700));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
  for (int i = 0; i < 2; i++) {
    CHECK_STATUS(rdm_stream_synchronize(stream, RDM_WAIT_FOREVER), RDM_ERROR_DEVICE_FAULT);
  }
  expect_lines(1, RDM_LOG_DEBUG, "device 0 has faulted: ", "hipErrorIllegalAddress");
  expect_lines(0, RDM_LOG_WARNING, "", "");
  expect_lines(0, RDM_LOG_ERROR, "", "");
  remove_folder(folder);
}

/* The harness turns the cache off in each process. */
static int load_work(void) {
  setenv("RDM_CACHE_DIR", getenv("RDM_TEST_FOLDER"), 1);
  test_use_sim(1);
  CHECK_OK(rdm_set_log_handler(NULL, NULL, RDM_LOG_DEBUG));
  work_kernels kernels;
  CHECK_OK(work_load(0, &kernels));
  return 0;
}

static void a_hit_in_the_cache_on_disk_is_told(void) {
  char folder[64];
  char setting[96];
  const char *const environment[] = {setting, NULL};
  process_outcome outcome;
  make_cache_folder(folder);
  snprintf(setting, sizeof setting, "RDM_TEST_FOLDER=%s", folder);
  test_run_body("load_work", environment, 60, &outcome);
  CHECK_THAT(strstr(outcome.standard_error, "which has not it") != NULL, "%s", outcome.standard_error);
  test_run_body("load_work", environment, 60, &outcome);
  CHECK_THAT(strstr(outcome.standard_error, "of the cache on disk, which has it") != NULL, "%s",
             outcome.standard_error);
  CHECK(strstr(outcome.standard_error, "compiling") == NULL);
  remove_folder(folder);
}

static atomic_bool handler_may_end;

static void stand_still(rdm_status status, void *user_data) {
  (void)user_data;
  CHECK_OK(status);
  while (!handler_may_end) test_sleep_ns(TEST_MILLISECOND);
}

/* That is waited for with a leaf held, under which nothing is logged: debug builds assert it. */
static void a_watchdog_that_ends_a_wait_for_handlers_is_told(void) {
  rdm_stream stream;
  rdm_encoder encoder;
  setenv("RDM_WATCHDOG_SECS", "1", 1);
  test_use_sim(1);
  CHECK_OK(rdm_set_log_handler(keep, NULL, RDM_LOG_DEBUG));
  CHECK_OK(rdm_stream_create(0, &stream));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
  CHECK_OK(rdm_encoder_add_completion_handler(encoder, stand_still, NULL));
  CHECK_STATUS(rdm_stream_synchronize(stream, TEST_SECOND / 2), RDM_ERROR_TIMEOUT);
  expect_lines(0, RDM_LOG_DEBUG, "watchdog", "");
  CHECK_STATUS(rdm_stream_synchronize(stream, RDM_WAIT_FOREVER), RDM_ERROR_WATCHDOG);
  expect_lines(1, RDM_LOG_DEBUG, "the watchdog ends a wait: waiting for completion handlers on device 0", "1 s");
  rdm_counters counters = {.struct_size = sizeof counters};
  CHECK_OK(rdm_get_counters(&counters));
  CHECK(counters.wait_watchdogs == 1 && counters.wait_timeouts == 1 && counters.batches_pending == 1);
  handler_may_end = true;
  CHECK_OK(rdm_stream_synchronize(stream, RDM_WAIT_FOREVER));
}

/* ---- RDM_LOG_LEVEL ---------------------------------------------------------------------------------------------- */

/* Work of every kind that goes well. */
static int work_well(void) {
  rdm_device device;
  test_use_sim(2);
  CHECK_OK(work_on_new_stream(0, 2));
  CHECK_OK(work_on_new_stream(1, 2));
  CHECK_OK(rdm_device_get(0, &device));
  CHECK_OK(rdm_device_synchronize(device, RDM_WAIT_FOREVER));
  CHECK_OK(rdm_clear_encoders());
  return (int)rdm_default_log_level();
}

static unsigned count_lines(const char *text, const char *with) {
  unsigned count = 0;
  for (const char *line = text; *line != '\0';) {
    const char *end = strchr(line, '\n');
    size_t length = end == NULL ? strlen(line) : (size_t)(end - line);
    const char *found = strstr(line, with);
    count += found != NULL && found < line + length + (length == 0);
    line += length + (end != NULL);
  }
  return count;
}

static process_outcome run_with_level(const char *setting) {
  process_outcome outcome;
  const char *const environment[] = {setting, "RDM_CACHE_DIR=", NULL};
  test_run_body("work_well", environment, 60, &outcome);
  CHECK_THAT(outcome.signal == 0 && !outcome.timed_out, "%s", outcome.standard_error);
  return outcome;
}

static void what_goes_well_is_quiet_but_for_one_line_for_each_device(void) {
  static const char *const settings[] = {"RDM_LOG_LEVEL", "RDM_LOG_LEVEL=", "RDM_LOG_LEVEL=info"};
  for (int i = 0; i < 3; i++) {
    process_outcome outcome = run_with_level(settings[i]);
    CHECK(outcome.exit_code == RDM_LOG_INFO);
    CHECK_THAT(count_lines(outcome.standard_error, "") == 2, "%s", outcome.standard_error);
    CHECK(count_lines(outcome.standard_error, "[rdm] bound HIP device 0: ") == 1);
    CHECK(count_lines(outcome.standard_error, "[rdm] bound HIP device 1: ") == 1);
  }
}

static void the_environment_sets_the_level(void) {
  process_outcome outcome = run_with_level("RDM_LOG_LEVEL=error");
  CHECK_THAT(outcome.exit_code == RDM_LOG_ERROR && outcome.standard_error[0] == '\0', "%s", outcome.standard_error);
  outcome = run_with_level("RDM_LOG_LEVEL=warning");
  CHECK_THAT(outcome.exit_code == RDM_LOG_WARNING && outcome.standard_error[0] == '\0', "%s", outcome.standard_error);
  outcome = run_with_level("RDM_LOG_LEVEL=debug");
  CHECK_THAT(outcome.exit_code == RDM_LOG_DEBUG, "%s", outcome.standard_error);
  CHECK(count_lines(outcome.standard_error, "[rdm] bound HIP device ") == 2);
  CHECK(count_lines(outcome.standard_error, "[rdm] compiling work for sim took ") == 1);
}

static void a_level_that_is_none_is_told_once_and_ignored(void) {
  static const char *const settings[] = {"RDM_LOG_LEVEL=4", "RDM_LOG_LEVEL=Debug", "RDM_LOG_LEVEL=debug "};
  for (int i = 0; i < 3; i++) {
    process_outcome outcome = run_with_level(settings[i]);
    CHECK(outcome.exit_code == RDM_LOG_INFO);
    CHECK_THAT(count_lines(outcome.standard_error, "[rdm] RDM_LOG_LEVEL is \"") == 1, "%s", outcome.standard_error);
    CHECK_THAT(count_lines(outcome.standard_error, "") == 3, "%s", outcome.standard_error);
  }
}

const test_body log_bodies[] = {{"load_work", load_work}, {"work_well", work_well}, {0}};

const test_case log_tests[] = {
    {.name = "debug_lines_tell_what_happened", .function = debug_lines_tell_what_happened},
    {.name = "a_hit_in_the_cache_on_disk_is_told", .function = a_hit_in_the_cache_on_disk_is_told},
    {.name = "a_watchdog_that_ends_a_wait_for_handlers_is_told",
     .function = a_watchdog_that_ends_a_wait_for_handlers_is_told},
    {.name = "what_goes_well_is_quiet_but_for_one_line_for_each_device",
     .function = what_goes_well_is_quiet_but_for_one_line_for_each_device},
    {.name = "the_environment_sets_the_level", .function = the_environment_sets_the_level},
    {.name = "a_level_that_is_none_is_told_once_and_ignored",
     .function = a_level_that_is_none_is_told_once_and_ignored},
    {0},
};
