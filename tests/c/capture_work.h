/* Everything that the library does for itself and for its user, for while other code captures a stream. */
#ifndef TEST_CAPTURE_WORK_H
#define TEST_CAPTURE_WORK_H

#include <stdint.h>

/*
 * Loads a module that is new, makes and ends a stream, memory of both kinds, events and a handler, evaluates, and waits
 * in every way: each call has to succeed and every value has to be right.
 */
void capture_work_do(int32_t device_index);

#endif
