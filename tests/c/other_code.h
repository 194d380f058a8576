/* Other code of the process that calls the driver itself, behind the library's back. The driver must be loaded. */
#ifndef TEST_OTHER_CODE_H
#define TEST_OTHER_CODE_H

/* Makes a device the calling thread's current one; the driver's error, 0 where it worked. */
int other_code_sets_device(int device);

/* The calling thread's current device. */
int other_code_gets_device(void);

/* What the driver's last-error slot of the calling thread holds. */
int other_code_peeks_at_last_error(void);

#endif
