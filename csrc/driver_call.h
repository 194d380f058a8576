/* What a failed driver call becomes: a status, a full message, and nothing left pending for other code to trip over. */
#ifndef RDM_DRIVER_CALL_H
#define RDM_DRIVER_CALL_H

#include "driver/driver.h"

#include <stdarg.h>

/*
 * Turns the error that a driver call returned into the thread's last error and gives its status. `format` says what
 * was being done. The runtime's own last-error slot is cleared, so that this failure is not blamed on a later call.
 * Never called for RDM_HIP_SUCCESS.
 */
__attribute__((format(printf, 5, 6))) rdm_status rdm__driver_call_failed(const rdm__driver *driver,
                                                                         int32_t device_index, rdm__call call,
                                                                         int error, const char *format, ...);
__attribute__((format(printf, 5, 0))) rdm_status rdm__driver_call_failed_list(const rdm__driver *driver,
                                                                              int32_t device_index, rdm__call call,
                                                                              int error, const char *format,
                                                                              va_list arguments);

/* Clears what a call of ours that was expected to fail (not-ready) left in the runtime's last-error slot. */
void rdm__driver_forget_error(const rdm__driver *driver);

#endif
