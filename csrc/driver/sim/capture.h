/*
 * Stream captures: from hipStreamBeginCapture to hipStreamEndCapture a stream collects its work in place of running it.
 *
 * What else may be called meanwhile, and by whom, follows CUDA: a call that could disturb a capture is refused, and the
 * refusal itself invalidates the capture. Whom a capture holds up is decided by its mode and by the calling thread's.
 * What is collected becomes a graph: see graph.h.
 *
 * Its lock is a leaf.
 */
#ifndef RDM_SIM_CAPTURE_H
#define RDM_SIM_CAPTURE_H

#include "driver/driver.h"
#include "driver/sim/work.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct rdm__sim_capture rdm__sim_capture;

/* Begins a capture of this thread, with two references: the caller's, and the list's until it ends. NULL: no memory. */
rdm__sim_capture *rdm__sim_capture_begin(int mode, int device);
void rdm__sim_capture_retain(rdm__sim_capture *capture);
/* NULL is fine. */
void rdm__sim_capture_release(rdm__sim_capture *capture);

/* RDM_HIP_CAPTURE_NONE once it has ended, and for NULL. */
int rdm__sim_capture_status(rdm__sim_capture *capture);

/* Gives `error` for a call that conflicts with the capture, which is lost by it. */
int rdm__sim_capture_conflict(rdm__sim_capture *capture, int error);

/* Adds work that was submitted to a captured stream. False where the capture takes none: it has been lost. */
bool rdm__sim_capture_add(rdm__sim_capture *capture, rdm__sim_work *work);

/* Ends it: 0 and the graph, or the error that hipStreamEndCapture returns. On a wrong thread it goes on. */
int rdm__sim_capture_end(rdm__sim_capture *capture, void **out_graph);

/* The mode of the calling thread; the old one. -1 where `mode` is none. */
int rdm__sim_capture_exchange_mode(int mode);

/*
 * For each entry point: whether captures under way forbid this thread the call, which invalidates them. `device` is the
 * one that the call acts on. 0 or an error.
 */
int rdm__sim_capture_check_call(rdm__call call, int device);

#endif
