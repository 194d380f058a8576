/*
 * Completion handlers: a batch's handlers run once the device has got to where it was committed, on one thread of the
 * library for each device.
 *
 * How the thread learns of it: a commit enqueues a host callback, which only counts and wakes the thread. After a
 * fault no callback ever comes, so the thread also looks at the driver now and then while batches are pending; and at
 * most a few callbacks are outstanding for one queue, a later one standing for all the batches before it, since
 * runtimes have crashed with tens of thousands.
 */
#ifndef RDM_COMPLETION_H
#define RDM_COMPLETION_H

#include "queue.h"
#include "wait.h"

/* Adds a handler to the open batch of the encoder with this handle. Called with the queue's lock held. */
rdm_status rdm__completions_add(rdm__queue *queue, uint64_t owner, rdm_completion_handler handler, void *user_data);

bool rdm__completion_worker_runs(rdm__device *device);

/* Starts the device's completion thread unless it runs. Called with no lock held. */
rdm_status rdm__completion_worker_start(rdm__device *device);

/*
 * Ends the open batch, if there is one. With `may_call_driver` a callback is enqueued for it now, with the device
 * current; else the thread sees to it. Called with the queue's lock held. A failure to enqueue loses nothing: the
 * thread finds out otherwise.
 */
void rdm__completions_commit(rdm__queue *queue, bool may_call_driver);

/* The same, if the open batch is that of the encoder with this handle. */
void rdm__completions_commit_own(rdm__queue *queue, uint64_t owner, bool may_call_driver);

/*
 * Ends a stream's use of its queue: the open batch counts as committed, and the queue goes back to the pool with what
 * is pending. Makes no driver call. Called with no lock held, once every encoder of the stream is closed.
 */
void rdm__completions_end_stream(rdm__queue *queue);

/* Waits until the handlers of the first `batch_count` batches of the queue have run. Called with no lock held. */
rdm_status rdm__completions_wait(rdm__queue *queue, uint64_t batch_count, const rdm__wait_limit *limit);

/* Whether the calling thread is running a completion handler. */
bool rdm__in_completion_handler(void);

#endif
