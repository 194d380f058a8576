/*
 * Random calls of the whole ABI. An input's first byte says how many threads call (1 to 3); the rest is split between
 * them. Each operation is one byte that chooses the call and a few that choose its arguments.
 */
#ifndef FUZZ_CALLS_H
#define FUZZ_CALLS_H

#include "fuzz.h"
#include "rocm_device_map.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
  CALLS_DEVICES = 3,
  CALLS_SIM_DEVICES = 64,
  CALLS_SLOTS = 6,
  CALLS_GRAVES = 8,
  CALLS_MOST_THREADS = 3,
  CALLS_MOST_OPERATIONS = 96,
  CALLS_CELL_BYTES = 64,
  CALLS_CELLS = 512,
};

typedef enum calls_kind {
  CALLS_DEVICE,
  CALLS_STREAM,
  CALLS_THREAD,
  CALLS_ENCODER,
  CALLS_EVENT,
  CALLS_KINDS
} calls_kind;

/* What is known of a handle that was chosen. */
typedef enum calls_expectation {
  /* Live, or another thread may have ended it meanwhile: any status that the call documents. */
  CALLS_ANY,
  /* Random bits, which may be anything. */
  CALLS_UNSURE,
  CALLS_NULL,
  CALLS_STALE,
  CALLS_FOREIGN,
  /* A slot of ours with a generation that it never had: foreign or stale. */
  CALLS_BAD,
} calls_expectation;

typedef struct calls_device {
  int32_t index;
  rdm_device handle;
  rdm_module module;
  rdm_kernel add;
  uint8_t *cells;
  uint8_t *host;
} calls_device;

/* What all threads of one input share, and what is kept between inputs. */
typedef struct calls_world {
  calls_device devices[CALLS_DEVICES];
  int32_t next_fresh_device;
  atomic_bool lost[CALLS_DEVICES];
  /* Live handles, 0 where there is none. Whoever takes one out releases it. */
  _Atomic uint64_t slots[CALLS_KINDS][CALLS_SLOTS];
  /* Handles that were released for good; every later use of them has to be refused as stale. */
  _Atomic uint64_t graves[CALLS_KINDS][CALLS_GRAVES];
  atomic_uint next_grave[CALLS_KINDS];
  atomic_uint next_cell;
  atomic_ulong handlers_added;
  atomic_ulong handlers_run;
  /* Set by the calls after which a driver call may fail for no fault of the library. */
  atomic_bool injected;
  atomic_bool held;
  unsigned thread_count;
} calls_world;

extern calls_world the_world;

/* One thread's part of the input. */
typedef struct calls_thread {
  fuzz_input input;
  unsigned number;
} calls_thread;

/* ---- fuzz_calls_check.c ---------------------------------------------------------------------------------------- */

/* Not what no call may come to here: the driver is there, the process is one and goes on, and nothing is configured. */
bool calls_is_possible(rdm_status status);

/* Before a call: keeps the thread's last error. After it: looks whether status, last error and locks agree. */
void calls_begin(void);
rdm_status calls_end(const char *call, rdm_status status, calls_expectation expected);

/* A call on a handle, checked against what is known of the handle. */
#define CALL(expected, call) (calls_begin(), calls_end(#call, (call), (expected)))

/* ---- fuzz_calls_handles.c -------------------------------------------------------------------------------------- */

/* Chooses a handle of the kind, or what is none, as the input says. */
uint64_t calls_choose(fuzz_input *input, calls_kind kind, calls_expectation *out_expected);
calls_device *calls_choose_device(fuzz_input *input);

/* Puts a live handle into a slot and releases the one that was there. */
void calls_put(fuzz_input *input, calls_kind kind, uint64_t bits);
/* Releases a handle that was taken out of its slot. */
void calls_release(calls_kind kind, uint64_t bits);
/* After this every use of the handle has to be refused. */
void calls_bury(calls_kind kind, uint64_t bits);

/* ---- the operations, by topic ---------------------------------------------------------------------------------- */

void calls_stream_operation(fuzz_input *input, uint8_t which);
void calls_work_operation(fuzz_input *input, uint8_t which);

/* ---- fuzz_calls_end.c ------------------------------------------------------------------------------------------ */

/* Counts what is alive before an input, and after it looks whether all that it made is gone. */
void calls_note_objects(void);
void calls_check_end(void);

#endif
