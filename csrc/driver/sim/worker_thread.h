/* The simulated driver's own threads: detached, so that none keeps the process from exiting. */
#ifndef RDM_SIM_WORKER_THREAD_H
#define RDM_SIM_WORKER_THREAD_H

#include <stdbool.h>

/* Starts a detached thread that no signal of the process is delivered to. False where the system has none to give. */
bool rdm__sim_worker_thread_start(void *(*body)(void *argument), void *argument);

#endif
