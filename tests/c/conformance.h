/* The conformance suite's harness: what a test is, how it checks, and the helpers that several files use. */
#ifndef RDM_TESTS_CONFORMANCE_H
#define RDM_TESTS_CONFORMANCE_H

#include "driver/driver.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* The driver under test, and how many devices it has. */
extern const rdm__driver *driver;
extern int device_count;

typedef struct conformance_test {
  const char *name;
  void (*run)(void);
  /* How many devices it needs: 0, 1 or 2. */
  int devices;
} conformance_test;

/* One table for each file, ended by a null name. */
extern const conformance_test device_tests[];
extern const conformance_test memory_tests[];
extern const conformance_test stream_tests[];
extern const conformance_test event_tests[];
extern const conformance_test module_tests[];
extern const conformance_test launch_tests[];
extern const conformance_test thread_tests[];
extern const conformance_test graph_tests[];
extern const conformance_test fault_tests[];

/*
 * One checked fact. `id` names it for ever; where the driver's list of expected differences has it, the check has to
 * fail. The text says what was seen.
 */
__attribute__((format(printf, 3, 4))) void check(const char *id, bool good, const char *format, ...);

/* That a call gave this number. */
void check_error(const char *id, int error, int expected);

/* That it gave one of the two. */
void check_either(const char *id, int error, int expected, int other);

/* Ends the test where a call that it builds on fails. */
void need(const char *what, int error);

/* Leaves the checks that follow it out, with a reason, in place of one check. */
void skip(const char *id, const char *reason);

/* ---- Helpers --------------------------------------------------------------------------------------------------- */

/* A host function that holds its stream until the gate opens. */
typedef struct gate {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool entered;
  bool open;
} gate;

void gate_make(gate *made);
void gate_hold(gate *held, void *stream);
/* Until the host function runs. */
void gate_wait_entered(gate *held);
void gate_open(gate *held);

/* A host function that counts its calls. */
void count_call(void *counter);

void sleep_milliseconds(int milliseconds);

/* Calls stream_query until it is not 600, at most 20 seconds, and returns the last answer. */
int wait_stream(void *stream);

/* Runs a function on a thread of its own and waits for it. */
void on_thread(void *(*function)(void *), void *argument);

void *make_stream(void);
void *make_event(unsigned flags);
void *make_device_memory(size_t size);
void *make_host_memory(size_t size);

/* Compiles for device 0 with the driver's own compiler and loads on the current device. Kernels: see kernel_source. */
extern const char kernel_source[];
void *make_module(void);
void *make_kernel(void *module, const char *name);

/* Compiles a text. `log` may be null; `code` is malloc'd on success, for the caller to free. */
int compile_text(const char *source, const char *extra_option, char **code, size_t *code_size, char *log,
                 size_t log_capacity);

/* kernel `fill`: out[i] = value for i < count. */
int launch_fill(void *kernel, void *stream, void *out, float value, unsigned count);
/* kernel `step`: out[i] = out[i] * 2 + 1, as unsigned numbers. */
int launch_step(void *kernel, void *stream, void *out, unsigned count);
/* kernel `poke`: writes to an address. */
int launch_poke(void *kernel, void *stream, unsigned long long address);

#endif
