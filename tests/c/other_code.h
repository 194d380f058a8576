/* Other code of the process that calls the driver itself, behind the library's back. The driver must be loaded. */
#ifndef TEST_OTHER_CODE_H
#define TEST_OTHER_CODE_H

/* Makes a device the calling thread's current one; the driver's error, 0 where it worked. */
int other_code_sets_device(int device);

/* The calling thread's current device. */
int other_code_gets_device(void);

/* What the driver's last-error slot of the calling thread holds. */
int other_code_peeks_at_last_error(void);

/* A stream of the driver's own, on the current device, which the library knows nothing of. */
void *other_code_creates_stream(void);

/* The modes of a capture: global 0, thread-local 1, relaxed 2. These give the driver's error. */
int other_code_begins_capture(void *stream, int mode);
/* Destroys the graph where there is one. */
int other_code_ends_capture(void *stream);

/* 0: it captures nothing, 1: the capture is whole, 2: something has invalidated it. */
int other_code_asks_for_capture(void *stream);

/* The calling thread's own capture mode. */
int other_code_gets_capture_mode(void);

/* Allocates and frees device memory as other code would, that is not at all while a capture forbids it. */
int other_code_allocates(void);

/* Destroys a driver stream, whose device has to be current; the driver's error, 0 where it worked. */
int other_code_destroys_stream(void *native_stream);

#endif
