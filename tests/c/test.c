#include "test.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void test_fail(const char *file, int line, const char *format, ...) {
  char text[4096];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  fprintf(stderr, "%s:%d: %s\n", file, line, text);
  fflush(NULL);
  _exit(1);
}

void test_check_status(const char *file, int line, const char *call, rdm_status status, rdm_status expected) {
  if (status == expected) return;
  test_fail(file, line, "%s returned %s, expected %s; last error: %s", call, rdm_status_name(status),
            rdm_status_name(expected), rdm_last_error_message());
}

uint64_t test_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * TEST_SECOND + (uint64_t)now.tv_nsec;
}

void test_sleep_ns(uint64_t nanoseconds) {
  struct timespec left = {.tv_sec = (time_t)(nanoseconds / TEST_SECOND), .tv_nsec = (long)(nanoseconds % TEST_SECOND)};
  while (nanosleep(&left, &left) != 0) continue;
}

void test_use_sim(int32_t device_count) {
  rdm_config config = {.struct_size = sizeof config, .driver = "sim", .sim_device_count = device_count};
  CHECK_OK(rdm_configure(&config));
}

typedef struct numbered_thread {
  void (*function)(unsigned number);
  unsigned number;
} numbered_thread;

static void *run_numbered_thread(void *argument) {
  numbered_thread *thread = argument;
  thread->function(thread->number);
  return NULL;
}

void test_run_threads(unsigned count, void (*function)(unsigned number)) {
  pthread_t *threads = calloc(count, sizeof *threads);
  numbered_thread *arguments = calloc(count, sizeof *arguments);
  CHECK(threads != NULL && arguments != NULL);
  for (unsigned i = 0; i < count; i++) {
    arguments[i] = (numbered_thread){.function = function, .number = i};
    threads[i] = test_start_thread(run_numbered_thread, &arguments[i]);
  }
  for (unsigned i = 0; i < count; i++) test_join_thread(threads[i]);
  free(threads);
  free(arguments);
}

pthread_t test_start_thread(void *(*function)(void *), void *argument) {
  pthread_t thread;
  int error = pthread_create(&thread, NULL, function, argument);
  CHECK_THAT(error == 0, "pthread_create: %s", strerror(error));
  return thread;
}

void test_join_thread(pthread_t thread) {
  int error = pthread_join(thread, NULL);
  CHECK_THAT(error == 0, "pthread_join: %s", strerror(error));
}

uint32_t test_random(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(*state >> 33);
}

bool test_only_bound_lines(const char *standard_error) {
  const char *line = standard_error;
  while (*line != '\0') {
    size_t length = strcspn(line, "\n");
    static const char bound[] = "bound HIP device ";
    if (length > 0 && memmem(line, length, bound, sizeof bound - 1) == NULL) return false;
    line += length + (line[length] == '\n');
  }
  return true;
}

void test_run_body(const char *name, const char *const *environment, double limit_seconds, process_outcome *outcome) {
  process_run_self("--body", name, environment, limit_seconds, outcome);
}

static void print_indented(const char *title, const char *text) {
  if (*text == '\0') return;
  printf("    %s:\n", title);
  while (*text != '\0') {
    size_t length = strcspn(text, "\n");
    printf("      %.*s\n", (int)length, text);
    text += length + (text[length] == '\n');
  }
}

static double limit_of(const test_case *test) {
  const char *chosen = getenv("TEST_LIMIT_SECONDS");
  if (chosen != NULL) return atof(chosen);
  return (test->limit_seconds == 0 ? 60 : test->limit_seconds) * (TEST_SLOWDOWN == 1 ? 1.0 : 3.0);
}

/* Runs one test in a process of its own and prints its line. */
static bool run_test(const test_case *test) {
  process_outcome *outcome = malloc(sizeof *outcome);
  if (outcome == NULL) return false;
  double limit = limit_of(test);
  process_run_self("--test", test->name, NULL, limit, outcome);
  bool quiet = test->writes_to_standard_error || test_only_bound_lines(outcome->standard_error);
  bool passed = outcome->exit_code == 0 && !outcome->timed_out && quiet;
  printf("%s %s (%.2f s)\n", passed ? "ok    " : "FAILED", test->name, outcome->seconds);
  if (!passed) {
    if (outcome->timed_out) printf("    not ended after %.0f s\n", limit);
    if (outcome->signal != 0) printf("    ended by signal %d\n", outcome->signal);
    if (outcome->exit_code > 0) printf("    exit code %d\n", outcome->exit_code);
    if (outcome->exit_code == 0 && !quiet) printf("    unexpected lines on standard error\n");
    print_indented("standard output", outcome->standard_output);
    print_indented("standard error", outcome->standard_error);
  }
  fflush(stdout);
  free(outcome);
  return passed;
}

static int run_named_test(const char *name, const test_case *const *groups) {
  for (; *groups != NULL; groups++) {
    for (const test_case *test = *groups; test->name != NULL; test++) {
      if (strcmp(test->name, name) != 0) continue;
      test->function();
      return 0;
    }
  }
  return 2;
}

static int run_named_body(const char *name, const test_body *const *bodies) {
  for (; bodies != NULL && *bodies != NULL; bodies++) {
    for (const test_body *body = *bodies; body->name != NULL; body++) {
      if (strcmp(body->name, name) == 0) return body->function();
    }
  }
  return 126;
}

int test_main(int argc, char **argv, const test_case *const *groups, const test_body *const *bodies) {
  const char *filter = argc > 1 ? argv[1] : "";
  /* The user's cache of compiled kernels is not for tests: what an earlier run left there must not matter. */
  setenv("RDM_CACHE_DIR", "", 1);
  if (argc > 2 && strcmp(filter, "--test") == 0) return run_named_test(argv[2], groups);
  if (argc > 2 && strcmp(filter, "--body") == 0) return run_named_body(argv[2], bodies);
  bool list = strcmp(filter, "--list") == 0;
  unsigned passed = 0;
  unsigned failed = 0;
  for (; *groups != NULL; groups++) {
    for (const test_case *test = *groups; test->name != NULL; test++) {
      if (list) {
        printf("%s\n", test->name);
      } else if (strstr(test->name, filter) != NULL) {
        *(run_test(test) ? &passed : &failed) += 1;
      }
    }
  }
  if (list) return 0;
  if (passed + failed == 0) printf("no test has \"%s\" in its name\n", filter);
  printf("%u passed, %u failed\n", passed, failed);
  return failed == 0 && passed > 0 ? 0 : 1;
}
