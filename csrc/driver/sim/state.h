/*
 * The simulated driver's state: one heap block, reachable from one static pointer, never freed. Made when the driver
 * is opened, before any other thread can call it.
 *
 * The layers of this folder, the lowest first. A file uses files of lower layers, and of its own layer those named
 * before it: nothing else, so there is no cycle.
 *
 *   state       state, call_name, thread, worker_thread, kernel_guard
 *   compiler    text, kernel_abi, kernel_signature, kernel_prelude, kernel_source, compiler_*, compiler
 *   tables      call_log, injection, object (the handles), capture
 *   device      callback, device, record
 *   streams     stream (the queue), device_streams (what is done to all of a device's), stream_thread (what runs it)
 *   the rest    host_function, event, memory, transfer, module, launch, program
 *   prologue    call (how every entry point begins and ends)
 *   HIP         calls_*: the entry points, each a prologue and one call into the layers below
 *   driver      driver_table: makes the state and the table
 */
#ifndef RDM_SIM_STATE_H
#define RDM_SIM_STATE_H

#include <stdatomic.h>
#include <stdbool.h>

enum { RDM__SIM_MAX_DEVICES = 64 };

struct rdm__sim_call_log;
struct rdm__sim_device;
struct rdm__sim_handle_table;
struct rdm__sim_injections;
struct rdm__sim_memory;

typedef struct rdm__sim_state_block {
  int device_count;
  /* What the environment chose when the driver was opened. */
  bool faults_are_process_wide;
  /* A fault ends the process, as it does with AMD's runtime; but for what HIP_SKIP_ABORT_ON_GPU_ERROR asks. */
  bool faults_abort;
  bool skips_abort;
  bool legacy_last_error;
  bool one_compile_at_a_time;
  /* The compiler that was found when the driver was opened; empty for none. */
  const char *compiler_path;
  /* False until the first hipInit returned. */
  atomic_bool initialized;
  /* The fault that every call returns where faults are process-wide, else 0. */
  atomic_int process_fault;
  /* How many threads are inside a compile or a module load. */
  atomic_int in_compiler;
  struct rdm__sim_call_log *calls;
  struct rdm__sim_injections *injections;
  struct rdm__sim_handle_table *handles;
  struct rdm__sim_memory *memory;
  struct rdm__sim_device *devices;
} rdm__sim_state_block;

/* NULL before the driver was opened. */
rdm__sim_state_block *rdm__sim_state(void);

/* For whoever opens the driver. */
void rdm__sim_state_set(rdm__sim_state_block *state);

#endif
