/* A stream's own thread: it runs the stream's work, and faults the device where the work does. */
#ifndef RDM_SIM_STREAM_THREAD_H
#define RDM_SIM_STREAM_THREAD_H

/* Takes over a reference to the stream, which it holds until the stream is closed and its work done. */
void *rdm__sim_stream_thread(void *stream);

#endif
