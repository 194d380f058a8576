/*
 * One suite for every driver: the rules of driver.h, call by call, against `sim`, `cuda` and `hip`.
 *
 *   cc -std=c11 -D_GNU_SOURCE -DRDM_DRIVER_HIP -DRDM_DRIVER_CUDA -O1 -g -Icsrc -Icsrc/include -o driver_conformance \
 *     tests/c/driver_conformance.c $(find tests/c -name 'conformance*.c') $(find csrc -name '*.c') -pthread -ldl
 *   ./driver_conformance sim|cuda|hip [--only TEST] [--list] [--verbose]
 *
 * The program needs no file of ours where it runs. Each test runs in a process of its own. Where a driver is known to
 * differ from HIP, its list below says so, and the difference has to show: one that does not is a failure. The last
 * line is "N passed, M failed, K skipped"; the exit code is 1 where one failed.
 */
#include "conformance.h"
#include "self.h"

#include "status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const rdm__driver *driver;
int device_count;

enum { SIM_DEVICES = 2, TEST_LIMIT_SECONDS = 90 };

typedef struct exception {
  const char *driver;
  const char *id;
  const char *reason;
} exception;

/* Tests that are never run on a driver. */
static const exception unsupported[] = {
    {"hip", "callback_calls_driver", "HIP forbids the call and does not promise to refuse it: it may hang"},
    {"sim", "null_stream", "it has no null stream: each call answers 801, and the library makes none on it"},
    {"sim", "blocking_stream", "it has only non-blocking streams, as the library makes no other"},
    {"sim", "copy_host_to_host", "it answers 801: the library copies to or from a device"},
    {NULL, NULL, NULL},
};

/* Checks that a driver fails, by its design. */
static const exception expected_differences[] = {
    {"sim", "across.host_function", "it is stricter: the stream's device has to be the current one"},
    {"sim", "across.host_function_ran", "it is stricter: the stream's device has to be the current one"},
    {"sim", "event.record_by_its_device", "it is stricter: the event's device has to be the current one"},
    {"cuda", "device.flags_after_use", "CUDA 12 overwrites the flags of a device in use"},
    {"cuda", "query.not_ready_is_last_error", "not-ready is no error to CUDA's last-error slot; to HIP 7's it is"},
    {"cuda", "event.not_ready_is_last_error", "not-ready is no error to CUDA's last-error slot; to HIP 7's it is"},
    {"cuda", "event.not_ready_is_left_once", "not-ready is no error to CUDA's last-error slot; to HIP 7's it is"},
    {"cuda", "module.missing_function_last_error", "the driver's library has no part in the runtime's last error"},
    {"cuda", "module.bad_image_last_error", "the driver's library has no part in the runtime's last error"},
    {"cuda", "launch.too_many_threads_last_error", "the driver's library has no part in the runtime's last error"},
    {NULL, NULL, NULL},
};

static const exception *find_exception(const exception *list, const char *id) {
  for (; list->driver != NULL; list++) {
    if (strcmp(list->driver, driver->name) == 0 && strcmp(list->id, id) == 0) return list;
  }
  return NULL;
}

/* ---- In the child ---------------------------------------------------------------------------------------------- */

static pthread_mutex_t output_lock = PTHREAD_MUTEX_INITIALIZER;

/* One line for each check, which the parent counts. */
static void say(const char *verdict, const char *id, const char *text) {
  pthread_mutex_lock(&output_lock);
  printf("%s %s %s\n", verdict, id, text);
  fflush(stdout);
  pthread_mutex_unlock(&output_lock);
}

void check(const char *id, bool good, const char *format, ...) {
  char text[1024];
  char whole[1400];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  /* One check is one line, also where a compiler's log is in it. */
  for (char *newline = text; (newline = strchr(newline, '\n')) != NULL;) *newline = '|';
  const exception *difference = find_exception(expected_differences, id);
  if (difference == NULL) {
    say(good ? "PASS" : "FAIL", id, good ? "" : text);
  } else if (good) {
    snprintf(whole, sizeof whole, "an expected difference did not show (%s)", difference->reason);
    say("FAIL", id, whole);
  } else {
    snprintf(whole, sizeof whole, "%s (expected: %s)", text, difference->reason);
    say("DIFF", id, whole);
  }
}

void skip(const char *id, const char *reason) {
  say("SKIP", id, reason);
}

static int open_driver(const char *name) {
  rdm_status status = RDM_ERROR_UNKNOWN_DRIVER;
  if (strcmp(name, "sim") == 0) {
    status = rdm__sim_open(SIM_DEVICES, &driver);
  } else if (strcmp(name, "cuda") == 0) {
    status = rdm__cuda_open(&driver);
  } else if (strcmp(name, "hip") == 0) {
    status = rdm__hip_open(&driver);
  } else {
    fprintf(stderr, "no driver is called %s\n", name);
    return 2;
  }
  if (status != RDM_OK) {
    fprintf(stderr, "the driver %s did not open: %d: %s\n", name, (int)status, rdm__thread_error()->message);
    return 1;
  }
  if (driver->get_device_count(&device_count) != RDM_HIP_SUCCESS) device_count = 0;
  (void)driver->get_last_error();
  return 0;
}

static const conformance_test *const groups[] = {device_tests, memory_tests, stream_tests, event_tests, module_tests,
                                                 launch_tests, thread_tests, graph_tests,  fault_tests};
enum { GROUP_COUNT = sizeof groups / sizeof groups[0] };

static const conformance_test *find_test(const char *name) {
  for (int i = 0; i < GROUP_COUNT; i++) {
    for (const conformance_test *test = groups[i]; test->name != NULL; test++) {
      if (strcmp(test->name, name) == 0) return test;
    }
  }
  return NULL;
}

static int run_in_child(const char *name) {
  if (strcmp(name, "open") == 0) {
    check("open", true, "it did");
    return 0;
  }
  const conformance_test *test = find_test(name);
  if (test == NULL) {
    fprintf(stderr, "no test is called %s\n", name);
    return 2;
  }
  const exception *never = find_exception(unsupported, name);
  if (never != NULL) {
    skip(name, never->reason);
    return 0;
  }
  if (test->devices > device_count) {
    char reason[64];
    snprintf(reason, sizeof reason, "needs %d device(s) and there are %d", test->devices, device_count);
    skip(name, reason);
    return 0;
  }
  test->run();
  return 0;
}

/* ---- In the parent --------------------------------------------------------------------------------------------- */

static int passed;
static int failed;
static int skipped;
static int differences;

static void count_line(const char *test, char *line, bool verbose) {
  char *end = strchr(line, '\n');
  if (end != NULL) *end = '\0';
  if (strncmp(line, "PASS ", 5) == 0) {
    passed++;
    if (verbose) printf("%s: %s\n", test, line);
    return;
  }
  if (strncmp(line, "FAIL ", 5) == 0) failed++;
  if (strncmp(line, "SKIP ", 5) == 0) skipped++;
  if (strncmp(line, "DIFF ", 5) == 0) {
    passed++;
    differences++;
  }
  printf("%s: %s\n", test, line);
}

/* False where the child ended otherwise than with 0. */
static bool run_test(const char *driver_name, const char *test, bool verbose) {
  int ends[2];
  fflush(stdout);
  if (pipe(ends) != 0) abort();
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    alarm(TEST_LIMIT_SECONDS);
    char path[4096];
    if (self_path(path, sizeof path)) execl(path, "driver_conformance", driver_name, "--child", test, (char *)NULL);
    _exit(127);
  }
  close(ends[1]);
  FILE *output = fdopen(ends[0], "r");
  char line[2048];
  int lines = 0;
  while (fgets(line, sizeof line, output) != NULL) {
    lines++;
    count_line(test, line, verbose);
  }
  fclose(output);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (status != 0) {
    failed++;
    printf("%s: FAIL its process ended with %s %d\n", test, WIFSIGNALED(status) ? "signal" : "code",
           WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  } else if (lines == 0) {
    failed++;
    printf("%s: FAIL it checked nothing\n", test);
  }
  return status == 0;
}

int main(int argument_count, char **arguments) {
  const char *only = NULL;
  bool verbose = false;
  if (argument_count < 2) {
    fprintf(stderr, "usage: %s sim|cuda|hip [--only TEST] [--list] [--verbose]\n", arguments[0]);
    return 2;
  }
  for (int i = 2; i < argument_count; i++) {
    if (strcmp(arguments[i], "--child") == 0 && i + 1 < argument_count) {
      int error = open_driver(arguments[1]);
      return error != 0 ? error : run_in_child(arguments[i + 1]);
    } else if (strcmp(arguments[i], "--only") == 0 && i + 1 < argument_count) {
      only = arguments[++i];
    } else if (strcmp(arguments[i], "--verbose") == 0) {
      verbose = true;
    } else if (strcmp(arguments[i], "--list") == 0) {
      for (int j = 0; j < GROUP_COUNT; j++) {
        for (const conformance_test *test = groups[j]; test->name != NULL; test++) printf("%s\n", test->name);
      }
      return 0;
    }
  }
  bool opens = run_test(arguments[1], "open", verbose);
  for (int i = 0; opens && i < GROUP_COUNT; i++) {
    for (const conformance_test *test = groups[i]; test->name != NULL; test++) {
      if (only == NULL || strcmp(only, test->name) == 0) run_test(arguments[1], test->name, verbose);
    }
  }
  if (only != NULL && find_test(only) == NULL) {
    printf("no test is called %s\n", only);
    failed++;
  }
  printf("%d expected difference(s) shown\n", differences);
  printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
  return failed == 0 ? 0 : 1;
}
