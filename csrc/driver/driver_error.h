/* What an error number of the driver means. Used by every driver; makes no call into a runtime. */
#ifndef RDM_DRIVER_ERROR_H
#define RDM_DRIVER_ERROR_H

/* HIP's constant for the number, "hipErrorUnrecognized" where the number is not one of HIP's. Static storage. */
const char *rdm__driver_error_name(int error);

/* A few words on the number. Static storage. */
const char *rdm__driver_error_string(int error);

/* A few words on a number of the run-time compiler. Static storage. */
const char *rdm__driver_rtc_error_string(int error);

#endif
