/*
 * Host callbacks: each device has one thread that runs them, one after the other, while the stream that each came
 * from waits. A driver call from within one is refused.
 */
#ifndef RDM_SIM_CALLBACK_H
#define RDM_SIM_CALLBACK_H

#include "driver/driver.h"

#include <stdbool.h>

typedef struct rdm__sim_callback_queue rdm__sim_callback_queue;

/* NULL where memory is short. */
rdm__sim_callback_queue *rdm__sim_callback_queue_create(void);

/* Starts the thread if it does not run yet. False where the system has none to give. */
bool rdm__sim_callback_queue_start(rdm__sim_callback_queue *queue);

/* Runs the function on the queue's thread and waits for it; returns without running it after the fault. */
void rdm__sim_callback_run(rdm__sim_callback_queue *queue, rdm__host_function function, void *user_data);

/* For the fault: between the two, no callback begins; what has not begun by then never does. */
void rdm__sim_callback_queue_lock(rdm__sim_callback_queue *queue);
void rdm__sim_callback_queue_drop_and_unlock(rdm__sim_callback_queue *queue);

#endif
