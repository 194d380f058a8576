/*
 * What the tests of the simulated driver share. Each test runs in a process of its own, started afresh, with the
 * environment that it asks for: faults are for ever, and the driver reads its environment once.
 */
#ifndef SIM_DRIVER_TEST_H
#define SIM_DRIVER_TEST_H

#include "clock.h"
#include "driver/driver.h"
#include "driver/sim/call_log.h"
#include "driver/sim/call_name.h"
#include "driver/sim/device.h"
#include "driver/sim/device_streams.h"
#include "driver/sim/driver_table.h"
#include "driver/sim/injection.h"
#include "driver/sim/memory.h"
#include "driver/sim/object.h"
#include "driver/sim/state.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SIM_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SIM_TEST_SANITIZED 1
#endif
#endif
#ifndef SIM_TEST_SANITIZED
#define SIM_TEST_SANITIZED 0
#endif

typedef struct sim_test {
  const char *name;
  void (*run)(void);
  /* "NAME=value", or NULL. */
  const char *environment;
  /* The signal that must end the process, 0: it must return. */
  int ends_by;
} sim_test;

/* The tests of each file, ended by one without a name. */
extern const sim_test driver_tests[];
extern const sim_test stream_tests[];
extern const sim_test fault_tests[];
extern const sim_test kernel_tests[];
extern const sim_test control_tests[];
extern const sim_test capture_tests[];

/* The driver under test, and how many checks of this process failed. */
extern const rdm__driver *driver;
extern atomic_int failed_checks;

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #condition); \
      atomic_fetch_add(&failed_checks, 1);                                     \
    }                                                                          \
  } while (0)

/* Checks what a call returned. */
#define RETURNS(expected, call)                                                                                  \
  do {                                                                                                           \
    int returned_ = (call);                                                                                      \
    if (returned_ != (expected)) {                                                                               \
      fprintf(stderr, "%s:%d: %s returned %d, not %d\n", __FILE__, __LINE__, #call, returned_, (int)(expected)); \
      atomic_fetch_add(&failed_checks, 1);                                                                       \
    }                                                                                                            \
  } while (0)

/* For what the rest of a test can not do without. */
#define MUST(call)                                                                      \
  do {                                                                                  \
    int returned_ = (call);                                                             \
    if (returned_ != 0) {                                                               \
      fprintf(stderr, "%s:%d: %s returned %d\n", __FILE__, __LINE__, #call, returned_); \
      exit(1);                                                                          \
    }                                                                                   \
  } while (0)

void open_driver(int device_count);
void hold(int device, bool held);
void fault(int device, int error);
void inject(const char *entry_point, uint64_t nth, uint64_t times, int error, uint64_t stall_ns);

/* The latest call in the log. */
rdm_sim_call last_call(void);

void *create_stream(void);
void *create_event(unsigned flags);
void *allocate(size_t size);
void sleep_ms(unsigned milliseconds);

/* Compiles a source that must compile, and loads it on the current device. */
void *load_source(const char *source);
void *get_function(void *module, const char *name);

/* Launches one block of `threads`. */
int launch(void *function, void *stream, unsigned threads, void **arguments);

#endif
