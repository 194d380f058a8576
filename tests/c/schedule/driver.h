/*
 * The driver of the schedule tests: every call is a scheduling point and does just enough bookkeeping to check what the
 * library must keep to. It works at once; in a scenario with a GPU a thread of the driver does it, one piece at a time.
 */
#ifndef SCHEDULE_DRIVER_H
#define SCHEDULE_DRIVER_H

#include "driver/driver.h"

enum { DRIVER_DEVICES = 4 };

/* The next `times` calls of this kind fail with `error`. */
void driver_fail(rdm__call call, int times, int error);

/* The device is lost, with a HIP error number: its work is dropped and its callbacks never come. */
void driver_fault(int device, int error);

/* As AMD's compiler: one compile or load at a time. Before the driver is opened. */
void driver_set_serial_compiler(void);

/* The calling thread's error slot, as other code in the process leaves it and reads it. */
void driver_leave_error(int error);
int driver_left_error(void);

/* How many calls of a kind succeeded; how often a device was constructed. */
int driver_count(rdm__call call);
int driver_constructions(int device);

/* How many pieces of work a driver stream was given. */
int driver_submissions(void *native_stream);

#endif
