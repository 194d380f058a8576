/* What the simulated driver knows of each thread that calls it. */
#ifndef RDM_SIM_THREAD_H
#define RDM_SIM_THREAD_H

#include <stdbool.h>
#include <stdint.h>

typedef struct rdm__sim_thread {
  /* Counts from 1 in the order of the threads' first calls; 0: none yet. */
  uint64_t number;
  int current_device;
  int last_error;
  /* How much captures under way hold this thread up; global is 0, the default. */
  int capture_mode;
  /* Set on the threads that run host callbacks. */
  bool in_callback;
} rdm__sim_thread;

rdm__sim_thread *rdm__sim_this_thread(void);

#endif
