#include "expect.h"

#include "calls.h"

#include <stdio.h>
#include <string.h>

static bool watching;
static uint64_t calls_before;

/* Calls that do something: asking for the thread's device and choosing it are not counted. */
static uint64_t calls_that_act(void) {
  return calls_made(NULL) - calls_made("hipGetDevice") - calls_made("hipSetDevice");
}

void expect_watch_driver_calls(void) {
  watching = true;
  /* The library's own threads may still be ending what came before. */
  uint64_t before;
  do {
    before = calls_before;
    calls_before = calls_that_act();
    test_sleep_ns(10 * TEST_MILLISECOND);
  } while (before != calls_before);
}

void expect_error(const char *file, int line, const char *call, rdm_status status, rdm_status expected,
                  const char *fragment) {
  test_check_status(file, line, call, status, expected);
  rdm_error error = {.struct_size = sizeof error};
  CHECK_OK(rdm_last_error(&error));
  if (error.status != expected) {
    test_fail(file, line, "%s: the last error is %s, expected %s", call, rdm_status_name(error.status),
              rdm_status_name(expected));
  }
  if (strcmp(error.message, rdm_last_error_message()) != 0) test_fail(file, line, "%s: two messages", call);
  if (strstr(error.message, fragment) == NULL) {
    test_fail(file, line, "%s: the message \"%s\" does not name \"%s\"", call, error.message, fragment);
  }
  if (!watching) return;
  uint64_t calls_now = calls_that_act();
  if (calls_now != calls_before) {
    test_fail(file, line, "%s made %llu driver calls", call, (unsigned long long)(calls_now - calls_before));
  }
}

const char *expect_bits(uint64_t bits) {
  static _Thread_local char texts[4][32];
  static _Thread_local unsigned next;
  char *text = texts[next++ % 4];
  snprintf(text, sizeof texts[0], "%#llx", (unsigned long long)bits);
  return text;
}
