/*
 * A small test runner. Each test runs in a fresh process of its own with a time limit, so that each meets the library
 * before its first use, and a crash or a hang is one failed test.
 *
 *   program [FILTER]      runs the tests whose name contains FILTER, prints a line for each, then "N passed, M failed"
 *   program --list        prints the names
 *
 * TEST_LIMIT_SECONDS replaces each test's time limit.
 */
#ifndef TEST_H
#define TEST_H

#include "process.h"
#include "rocm_device_map.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 1 in a plain build; more where a sanitizer makes everything slower, to shorten loops and lengthen bounds. */
#if defined(__SANITIZE_THREAD__)
#define TEST_SLOWDOWN 8
#elif defined(__SANITIZE_ADDRESS__)
#define TEST_SLOWDOWN 3
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TEST_SLOWDOWN 8
#elif __has_feature(address_sanitizer)
#define TEST_SLOWDOWN 3
#endif
#endif
#ifndef TEST_SLOWDOWN
#define TEST_SLOWDOWN 1
#endif

typedef struct test_case {
  const char *name;
  void (*function)(void);
  /* The test may write more to standard error than the library's lines on devices that it bound. */
  bool writes_to_standard_error;
  /* 0: 60 seconds. Longer under a sanitizer. */
  unsigned limit_seconds;
} test_case;

/* What a test runs as a process of its own with test_run_body; main returns what the function returns. */
typedef struct test_body {
  const char *name;
  int (*function)(void);
} test_body;

/* `groups` is a null-terminated list of lists that end with a null name; so is `bodies`, which may be null. */
int test_main(int argc, char **argv, const test_case *const *groups, const test_body *const *bodies);

void test_run_body(const char *name, const char *const *environment, double limit_seconds, process_outcome *outcome);

/* True where each line of a process's standard error is the library's line on a device that it bound. */
bool test_only_bound_lines(const char *standard_error);

/* Prints the text and ends the process as a failed test, from any thread. */
__attribute__((format(printf, 3, 4), noreturn)) void test_fail(const char *file, int line, const char *format, ...);

void test_check_status(const char *file, int line, const char *call, rdm_status status, rdm_status expected);

/* Fails unless the condition holds. */
#define CHECK(condition)                                                         \
  do {                                                                           \
    if (!(condition)) test_fail(__FILE__, __LINE__, "not true: %s", #condition); \
  } while (0)

/* Fails unless `condition` holds, with a formatted text. */
#define CHECK_THAT(condition, ...)                                \
  do {                                                            \
    if (!(condition)) test_fail(__FILE__, __LINE__, __VA_ARGS__); \
  } while (0)

/* Fails unless the call returns the status. */
#define CHECK_STATUS(call, expected) test_check_status(__FILE__, __LINE__, #call, (call), (expected))
#define CHECK_OK(call) CHECK_STATUS(call, RDM_OK)

uint64_t test_now_ns(void);
void test_sleep_ns(uint64_t nanoseconds);
#define TEST_MILLISECOND UINT64_C(1000000)
#define TEST_SECOND UINT64_C(1000000000)

/* Chooses the simulated driver with this many devices, however the environment is set. */
void test_use_sim(int32_t device_count);

/* Starts `count` threads that run `function` with their number, and waits for their end. */
void test_run_threads(unsigned count, void (*function)(unsigned number));

/* Starts a joinable thread. */
pthread_t test_start_thread(void *(*function)(void *), void *argument);
void test_join_thread(pthread_t thread);

/* A small random number generator for each thread. */
uint32_t test_random(uint64_t *state);

#endif
