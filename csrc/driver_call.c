#include "driver_call.h"

#include "count.h"
#include "runtime.h"
#include "status.h"

#include <stdio.h>

static rdm_status status_of(rdm__call call, int error) {
  if (rdm__driver_error_is_fault(error)) return RDM_ERROR_DEVICE_FAULT;
  if (error == RDM_HIP_OUT_OF_MEMORY) return RDM_ERROR_OUT_OF_MEMORY;
  if (error == RDM_HIP_NO_DEVICE) return RDM_ERROR_NO_DEVICE;
  if (error >= RDM_HIP_CAPTURE_UNSUPPORTED && error <= RDM_HIP_CAPTURE_WRONG_THREAD) return RDM_ERROR_CAPTURING;
  if (call == RDM__CALL_module_get_function && error == RDM_HIP_NOT_FOUND) return RDM_ERROR_KERNEL_NOT_FOUND;
  if (call == RDM__CALL_stream_begin_capture && error == RDM_HIP_NOT_SUPPORTED) return RDM_ERROR_UNSUPPORTED;
  if (call == RDM__CALL_launch_kernel) return RDM_ERROR_LAUNCH;
  return RDM_ERROR_DRIVER;
}

rdm_status rdm__driver_call_failed_list(const rdm__driver *driver, int32_t device_index, rdm__call call, int error,
                                        const char *format, va_list arguments) {
  char doing[768];
  rdm__count(RDM__COUNT_DRIVER_ERRORS, 1);
  vsnprintf(doing, sizeof doing, format, arguments);
  rdm__driver_forget_error(driver);
  const char *call_name = driver->call_name(call);
  const char *error_name = driver->error_name(error);
  return rdm__fail_driver(status_of(call, error), error, error_name, call_name, device_index,
                          "%s: %s on device %d failed: %s (%d): %s", doing, call_name, device_index, error_name, error,
                          driver->error_string(error));
}

rdm_status rdm__driver_call_failed(const rdm__driver *driver, int32_t device_index, rdm__call call, int error,
                                   const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  rdm_status status = rdm__driver_call_failed_list(driver, device_index, call, error, format, arguments);
  va_end(arguments);
  return status;
}

void rdm__driver_forget_error(const rdm__driver *driver) {
  /* What is pending on a thread of a process that is exiting misleads nobody. */
  if (!rdm__runtime_is_over()) driver->get_last_error();
}
