/*
 * How the drivers' libraries are found, with stand-ins for AMD's: run by loader_test.sh, which builds them.
 *
 *   loader_test CASE [ARGUMENT]
 *
 * One case is one process, since a library that was loaded stays. Prints what is wrong and ends with 1, or with 0.
 */
#include "driver/driver.h"
#include "driver/loader.h"
#include "driver/no_compiler.h"
#include "status.h"

#include <dlfcn.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int failures;

static void expect(bool good, const char *what) {
  if (good) return;
  failures++;
  printf("  not so: %s\n  the last error is: %s\n", what, rdm__thread_error()->message);
}

#define EXPECT(condition) expect((condition), #condition)

static const rdm__driver *driver;

static bool message_has(const char *text) {
  return strstr(rdm__thread_error()->message, text) != NULL;
}

static bool opened_from(const char *file) {
  rdm_status status = rdm__hip_open(&driver);
  return status == RDM_OK && strstr(driver->runtime_path, file) != NULL;
}

static bool report_has(const char *name, const char *text, bool used) {
  static rdm__loader_attempt attempts[96];
  size_t count = rdm__loader_report(attempts, 96);
  for (size_t i = 0; i < count && i < 96; i++) {
    if (strstr(attempts[i].name, name) != NULL && strstr(attempts[i].result, text) != NULL &&
        attempts[i].used == used) {
      return true;
    }
  }
  return false;
}

/* The runtime that is expected is used, its first call is hipInit, and opening again opens nothing. */
static void uses(const char *file) {
  EXPECT(opened_from(file));
  if (failures > 0) return;
  void *library = dlopen(driver->runtime_path, RTLD_NOW | RTLD_NOLOAD);
  int *first = library != NULL ? dlsym(library, "fake_first") : NULL;
  int *calls = library != NULL ? dlsym(library, "fake_calls") : NULL;
  EXPECT(first != NULL && *first == 1);
  /* Its symbols stay out of the process's own. */
  EXPECT(dlsym(RTLD_DEFAULT, "fake_calls") == NULL);
  int before = calls != NULL ? *calls : -1;
  const rdm__driver *again = NULL;
  EXPECT(rdm__hip_open(&again) == RDM_OK && again == driver);
  EXPECT(calls != NULL && *calls == before);
}

static void case_uses(const char *file) {
  uses(file);
}

static void case_skips_broken(const char *file) {
  uses(file);
  EXPECT(report_has("libamdhip64.so.7", "lacks the symbol hipEventRecord", false));
  EXPECT(report_has("libamdhip64.so.6", "libmissing_dependency", false));
  EXPECT(report_has("libamdhip64.so.5", file, true));
}

static void case_explicit_missing(const char *path) {
  EXPECT(rdm__hip_open(&driver) == RDM_ERROR_NO_DRIVER);
  EXPECT(message_has("RDM_HIP_LIBRARY") && message_has(path) && message_has("No such file"));
  /* The same again: nothing is left behind by a failure. */
  EXPECT(rdm__hip_open(&driver) == RDM_ERROR_NO_DRIVER);
}

static void case_explicit_symbol(const char *path) {
  EXPECT(rdm__hip_open(&driver) == RDM_ERROR_NO_DRIVER);
  EXPECT(message_has("hipEventRecord") && message_has(path));
}

static void case_explicit_version(const char *path) {
  EXPECT(rdm__hip_open(&driver) == RDM_ERROR_DRIVER_VERSION);
  EXPECT(message_has(path) && message_has("5 to 7"));
}

static void case_nothing(const char *unused) {
  (void)unused;
  EXPECT(rdm__hip_open(&driver) == RDM_ERROR_NO_DRIVER);
  EXPECT(message_has("libamdhip64.so.7") && message_has("libamdhip64.so.6") && message_has("libamdhip64.so.5"));
  EXPECT(message_has("invalid ELF header") && message_has("RDM_HIP_LIBRARY") && message_has("ROCM_PATH"));
}

static void case_only_newer(const char *unused) {
  (void)unused;
  EXPECT(rdm__hip_open(&driver) == RDM_ERROR_DRIVER_VERSION);
  EXPECT(message_has("major version 8") && message_has("5 to 7"));
}

static void case_version_lies(const char *unused) {
  (void)unused;
  EXPECT(rdm__hip_open(&driver) == RDM_ERROR_DRIVER_VERSION);
  EXPECT(message_has("80000000"));
}

/* A runtime that the process has loaded is taken, whatever is found on disk. */
static void case_loaded(const char *path) {
  void *loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  EXPECT(loaded != NULL);
  uses(path);
}

static void case_loaded_newer(const char *path) {
  void *loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  EXPECT(loaded != NULL);
  EXPECT(rdm__hip_open(&driver) == RDM_ERROR_DRIVER_VERSION);
  EXPECT(message_has("that this process has loaded") && message_has("major version 8"));
}

static void case_compiler(const char *file) {
  int major = 0;
  int minor = 0;
  EXPECT(rdm__hip_open(&driver) == RDM_OK);
  if (failures > 0) return;
  EXPECT(strstr(driver->compiler_path, file) != NULL);
  EXPECT(driver->rtc_version(&major, &minor) == 0 && major == 9);
}

/* A missing compiler is no failure to open: its calls fail and say what was tried. */
static void case_no_compiler(const char *name) {
  void *program = NULL;
  size_t size = 0;
  int number = 0;
  EXPECT(rdm__hip_open(&driver) == RDM_OK);
  if (failures > 0) return;
  int error = driver->rtc_create_program(&program, "int unused;", "x");
  EXPECT(error == RDM__RTC_NO_COMPILER);
  EXPECT(driver->rtc_version(&number, &number) == RDM__RTC_NO_COMPILER);
  EXPECT(driver->rtc_compile_program(NULL, 0, NULL) == RDM__RTC_NO_COMPILER);
  EXPECT(driver->rtc_get_log_size(NULL, &size) == RDM__RTC_NO_COMPILER);
  EXPECT(driver->rtc_get_log(NULL, NULL) == RDM__RTC_NO_COMPILER);
  EXPECT(driver->rtc_get_code_size(NULL, &size) == RDM__RTC_NO_COMPILER);
  EXPECT(driver->rtc_get_code(NULL, NULL) == RDM__RTC_NO_COMPILER);
  EXPECT(driver->rtc_destroy_program(&program) == RDM__RTC_NO_COMPILER);
  EXPECT(strstr(driver->rtc_error_string(error), name) != NULL);
  EXPECT(driver->compiler_path[0] == '\0');
}

static void case_init_fails(const char *number) {
  int error = atoi(number);
  EXPECT(rdm__hip_open(&driver) == (error == 35 ? RDM_ERROR_DRIVER_VERSION : RDM_ERROR_DRIVER));
  EXPECT(rdm__thread_error()->driver_code == error);
  EXPECT(strcmp(rdm__thread_error()->call, "hipInit") == 0);
  EXPECT(strcmp(rdm__thread_error()->driver_name, "hipErrorOfTheFake") == 0);
}

static void case_init_without_device(const char *file) {
  EXPECT(opened_from(file));
}

static void case_properties(const char *architecture) {
  rdm__device_properties properties;
  bool newer = strcmp(architecture, "gfx1030") != 0;
  EXPECT(rdm__hip_open(&driver) == RDM_OK);
  if (failures > 0) return;
  EXPECT(driver->get_device_properties(&properties, 0) == 0);
  EXPECT(strcmp(properties.architecture, architecture) == 0);
  EXPECT(strcmp(properties.name, newer ? "fake of the newer layout" : "fake of the older layout") == 0);
  EXPECT(properties.total_memory_bytes == (newer ? 6000000000u : 5000000000u));
  EXPECT(properties.warp_size == (newer ? 64 : 32));
  EXPECT(properties.multiprocessor_count == (newer ? 104 : 40));
  EXPECT(properties.max_threads_per_block == 1024);
  EXPECT(driver->get_device_properties(&properties, 1) == 101);
  EXPECT(driver->get_device_properties(NULL, 0) == RDM_HIP_INVALID_VALUE);
}

static void add_one(void *user_data) {
  (*(int *)user_data)++;
}

static void case_old_callback(const char *unused) {
  (void)unused;
  int calls = 0;
  int failing_stream = 0;
  EXPECT(rdm__hip_open(&driver) == RDM_OK);
  if (failures > 0) return;
  EXPECT(driver->launch_host_function(NULL, add_one, &calls) == 0 && calls == 1);
  /* hipLaunchHostFunc does not run a function after an error, so neither does what stands for it. */
  EXPECT(driver->launch_host_function(&failing_stream, add_one, &calls) == 0 && calls == 1);
  EXPECT(driver->launch_host_function(NULL, NULL, NULL) == RDM_HIP_INVALID_VALUE);
  EXPECT(strcmp(driver->call_name(RDM__CALL_launch_host_function), "hipStreamAddCallback") == 0);
}

/* A node that another user may open and this one may not. Run as root, which then becomes nobody. */
static void case_denied(const char *folder) {
  char path[512];
  char text[1024] = "";
  if (geteuid() != 0) {
    printf("  SKIPPED: only root can make a file that this user may not open\n");
    return;
  }
  snprintf(path, sizeof path, "%s/node", folder);
  FILE *file = fopen(path, "w");
  if (file != NULL) fclose(file);
  EXPECT(chmod(folder, 0755) == 0 && chmod(path, 0660) == 0 && chown(path, 0, 44) == 0);
  EXPECT(!rdm__loader_node_denied(path, true, text, sizeof text));
  EXPECT(!rdm__loader_node_denied("/no/such/node", true, text, sizeof text));
  gid_t none = 65534;
  EXPECT(setgroups(0, NULL) == 0 && setgid(none) == 0 && setuid(65534) == 0);
  EXPECT(rdm__loader_node_denied(path, false, text, sizeof text));
  struct group *group = getgrgid(44);
  EXPECT(strstr(text, path) != NULL && strstr(text, "0660") != NULL && strstr(text, "65534") != NULL);
  EXPECT(group == NULL || strstr(text, group->gr_name) != NULL);
  EXPECT(strstr(text, "usermod -aG") != NULL);
}

static void case_no_cuda(const char *unused) {
  (void)unused;
  EXPECT(rdm__cuda_open(&driver) == RDM_ERROR_NO_DRIVER);
  EXPECT(message_has("libcuda.so.1") && message_has("NVIDIA"));
  EXPECT(rdm__cuda_open(&driver) == RDM_ERROR_NO_DRIVER);
}

static const struct loader_case {
  const char *name;
  void (*run)(const char *argument);
} cases[] = {
    {"uses", case_uses},
    {"skips_broken", case_skips_broken},
    {"explicit_missing", case_explicit_missing},
    {"explicit_symbol", case_explicit_symbol},
    {"explicit_version", case_explicit_version},
    {"nothing", case_nothing},
    {"only_newer", case_only_newer},
    {"version_lies", case_version_lies},
    {"loaded", case_loaded},
    {"loaded_newer", case_loaded_newer},
    {"compiler", case_compiler},
    {"no_compiler", case_no_compiler},
    {"init_fails", case_init_fails},
    {"init_without_device", case_init_without_device},
    {"properties", case_properties},
    {"old_callback", case_old_callback},
    {"denied", case_denied},
    {"no_cuda", case_no_cuda},
};

int main(int argument_count, char **arguments) {
  for (size_t i = 0; argument_count >= 2 && i < sizeof cases / sizeof cases[0]; i++) {
    if (strcmp(cases[i].name, arguments[1]) != 0) continue;
    cases[i].run(argument_count > 2 ? arguments[2] : "");
    return failures == 0 ? 0 : 1;
  }
  fprintf(stderr, "no such case\n");
  return 2;
}
