/*
 * The simulated driver's state: one heap block, reachable from one static pointer, never freed. Made when the driver
 * is opened, before any other thread can call it.
 */
#ifndef RDM_SIM_STATE_H
#define RDM_SIM_STATE_H

#include "driver/driver.h"

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
  bool legacy_last_error;
  bool one_compile_at_a_time;
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

rdm__sim_state_block *rdm__sim_state(void);

/* Makes the state and fills the table, without initializing the runtime. NULL with the thread's last error set. */
const rdm__driver *rdm__sim_prepare(int device_count);

#endif
