/* Streams: a queue of work each, which a thread of the stream's own takes one item after the other. */
#ifndef RDM_SIM_STREAM_H
#define RDM_SIM_STREAM_H

#include "driver/sim/capture.h"
#include "driver/sim/device.h"
#include "driver/sim/object.h"
#include "driver/sim/record.h"
#include "driver/sim/work.h"

#include <stdbool.h>

typedef struct rdm__sim_stream rdm__sim_stream;

/*
 * Makes a stream on the device and gives its handle, NULL where memory is short. `thread` is what the stream's thread
 * does once there is work: see stream_thread.h.
 */
void *rdm__sim_stream_create(rdm__sim_device *device, void *(*thread)(void *stream));

/* Ends the handle; the stream itself goes once its work is done. */
int rdm__sim_stream_close(const void *handle);

/* Takes the stream off its device's list. */
void rdm__sim_stream_leave_device(rdm__sim_stream *stream);

/* The stream that an entry of its device's list is. */
rdm__sim_stream *rdm__sim_stream_of(rdm__sim_object *object);

/* The stream of a handle with one more reference, NULL where the handle is not one. */
rdm__sim_stream *rdm__sim_stream_get(const void *handle);
void rdm__sim_stream_retain(rdm__sim_stream *stream);
/* NULL is fine. */
void rdm__sim_stream_release(rdm__sim_stream *stream);

/* The stream's device, and its index: -1 for NULL. */
rdm__sim_device *rdm__sim_stream_device(rdm__sim_stream *stream);
int rdm__sim_stream_device_index(rdm__sim_stream *stream);

/*
 * The checks that submitting needs: the handle, and that the stream's device is the calling thread's current one. The
 * real runtimes let most calls pass on another device; being strict shows a missing set-device in a test.
 */
int rdm__sim_stream_check_submit(rdm__sim_stream *stream, const void *handle);

/* Puts work at the end of the queue. Takes the work over in any case. */
int rdm__sim_stream_submit(rdm__sim_stream *stream, rdm__sim_work *work);

/* For the stream's thread: counts the item before as completed, if there was one, and waits for the next. NULL: end. */
rdm__sim_work *rdm__sim_stream_next(rdm__sim_stream *stream, bool completed_one);

/* Whether all that was submitted has completed: 0, not-ready, or the device's fault. */
int rdm__sim_stream_query(rdm__sim_stream *stream);

/* Waits until what was submitted before has completed. Returns 0 or the device's fault. */
int rdm__sim_stream_wait(rdm__sim_stream *stream);

/* Captures: 0 or HIP's error. The status is one of RDM_HIP_CAPTURE_NONE and its like. */
int rdm__sim_stream_begin_capture(rdm__sim_stream *stream, int mode);
int rdm__sim_stream_end_capture(rdm__sim_stream *stream, void **out_graph);
int rdm__sim_stream_capture_status(rdm__sim_stream *stream);

/* The capture that the stream's work goes into, with one more reference; NULL where it runs. */
rdm__sim_capture *rdm__sim_stream_capture(rdm__sim_stream *stream);
/* For what asks whether a stream is done, which a captured one never is: 0, or an error, and the capture is lost. */
int rdm__sim_stream_check_not_captured(rdm__sim_stream *stream);
/* Makes the stream's work go into another stream's capture, too, unless it is in that one already. */
int rdm__sim_stream_join_capture(rdm__sim_stream *stream, rdm__sim_capture *capture);

/* Makes the stream's thread look again at whether it is held. */
void rdm__sim_stream_wake(rdm__sim_stream *stream);

/* After a fault: drops what is queued and ends every wait. */
void rdm__sim_stream_drop_work(rdm__sim_stream *stream, int fault);

/* Waits, on the stream's own thread, until the record is over or the stream's device has faulted. */
void rdm__sim_stream_wait_record(rdm__sim_stream *stream, rdm__sim_record *record);

#endif
