/*
 * The order of exit handlers, with a stand-in for AMD's runtime: once one of the runtime's own handlers runs, no call
 * of the library enters it any more. Run by exit_order.sh, which builds the stand-in.
 *
 *   exit_order CASE      used: the library has used the runtime; probed: it has only opened it for a look
 *
 * Ends with 0 where both of the runtime's handlers (probed: the one of its loading) ran and found the library closed.
 */
#include "rocm_device_map.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static rdm_device device;
static atomic_int *runtime_calls;
static int handlers_expected;
static int handlers_run;
static int failures;

static void pause_ms(long milliseconds) {
  nanosleep(&(struct timespec){.tv_nsec = milliseconds * 1000000}, NULL);
}

static void expect(rdm_status status, rdm_status expected, const char *what) {
  if (status == expected) return;
  failures++;
  fprintf(stderr, "exit_order: %s is %s, expected %s: %s\n", what, rdm_status_name(status), rdm_status_name(expected),
          rdm_last_error_message());
}

static void *keep_calling(void *unused) {
  (void)unused;
  for (;;) {
    rdm_device any;
    int32_t count;
    if (rdm_device_get(0, &any) == RDM_OK) rdm_device_make_current(any);
    rdm_probe_driver("hip", &count);
  }
  return NULL;
}

static void *keep_looking(void *unused) {
  (void)unused;
  for (;;) {
    int32_t count;
    rdm_probe_driver("hip", &count);
  }
  return NULL;
}

/* Called by the runtime as it is torn down: a call that enters it from here on may find it half gone. */
static void at_teardown(const char *registered) {
  int32_t count = 0;
  rdm_device any;
  rdm_stream stream;
  void *pointer = NULL;
  handlers_run++;
  /* A call that was inside as the exit began may end first. */
  pause_ms(20);
  int before = *runtime_calls;
  expect(rdm_probe_driver("hip", &count), RDM_ERROR_SHUTTING_DOWN, "rdm_probe_driver");
  expect(rdm_device_get(0, &any), RDM_ERROR_SHUTTING_DOWN, "rdm_device_get");
  expect(rdm_stream_create(0, &stream), RDM_ERROR_SHUTTING_DOWN, "rdm_stream_create");
  if (handlers_expected == 2) {
    expect(rdm_device_make_current(device), RDM_ERROR_SHUTTING_DOWN, "rdm_device_make_current");
    expect(rdm_memory_allocate(device, 64, &pointer), RDM_ERROR_SHUTTING_DOWN, "rdm_memory_allocate");
  }
  pause_ms(50);
  int calls = *runtime_calls - before;
  if (calls == 0) return;
  failures++;
  fprintf(stderr, "exit_order: %d calls entered the runtime in its exit handler, registered %s\n", calls, registered);
}

/* Registered first, so it runs last. */
static void end(void) {
  if (handlers_run != handlers_expected) {
    fprintf(stderr, "exit_order: %d of %d handlers of the runtime ran\n", handlers_run, handlers_expected);
    failures++;
  }
  _exit(failures == 0 ? 0 : 1);
}

static int stop(const char *what, const char *why) {
  fprintf(stderr, "exit_order: %s: %s\n", what, why);
  _exit(2);
}

int main(int argument_count, char **arguments) {
  int32_t count = 0;
  bool used = argument_count > 1 && strcmp(arguments[1], "used") == 0;
  pthread_t thread;
  if (atexit(end) != 0) return stop("atexit", "failed");
  if (rdm_probe_driver("hip", &count) != RDM_OK) return stop("rdm_probe_driver", rdm_last_error_message());
  if (used && rdm_device_get(0, &device) != RDM_OK) return stop("rdm_device_get", rdm_last_error_message());
  handlers_expected = used ? 2 : 1;
  void *runtime = dlopen(getenv("RDM_HIP_LIBRARY"), RTLD_NOW | RTLD_NOLOAD);
  if (runtime == NULL) return stop("dlopen", dlerror());
  void (**teardown)(const char *) = dlsym(runtime, "fake_at_teardown");
  runtime_calls = dlsym(runtime, "fake_calls");
  if (teardown == NULL || runtime_calls == NULL) return stop("dlsym", dlerror());
  *teardown = at_teardown;
  if (pthread_create(&thread, NULL, used ? keep_calling : keep_looking, NULL) != 0) return stop("a thread", "no");
  pause_ms(20);
  return 3;
}
