#include "status.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static _Thread_local rdm_error last_error = {.struct_size = sizeof(rdm_error), .device_index = -1};

/* X(constant, description) */
#define STATUSES(X)                                                                                                \
  X(RDM_OK, "The call succeeded.")                                                                                 \
  X(RDM_ERROR_INVALID_ARGUMENT, "An argument is outside what the function takes.")                                 \
  X(RDM_ERROR_NULL_HANDLE, "The handle is null.")                                                                  \
  X(RDM_ERROR_STALE_HANDLE, "The handle was released, or its encoder was cleared.")                                \
  X(RDM_ERROR_FOREIGN_HANDLE, "The value is a handle of another kind, or was never a handle of this process.")     \
  X(RDM_ERROR_INVALID_DEVICE, "The device index is negative or not below the device count.")                       \
  X(RDM_ERROR_NO_DEVICE, "The driver works and reports no device.")                                                \
  X(RDM_ERROR_NO_DRIVER, "The driver's library was not found or lacks a symbol.")                                  \
  X(RDM_ERROR_UNKNOWN_DRIVER, "The driver asked for does not exist or was not built in.")                          \
  X(RDM_ERROR_DRIVER_VERSION, "The driver's library is of a version that is not supported.")                       \
  X(RDM_ERROR_PERMISSION, "The user may not open the GPU's device nodes.")                                         \
  X(RDM_NOT_READY, "The work is still running.")                                                                   \
  X(RDM_ERROR_NOT_RECORDED, "The event was never recorded, or its last record failed.")                            \
  X(RDM_ERROR_TIMEOUT, "The deadline passed; the wait can be taken up again.")                                     \
  X(RDM_ERROR_WATCHDOG, "The wait outlasted RDM_WATCHDOG_SECS.")                                                   \
  X(RDM_ERROR_DEVICE_FAULT, "The device has faulted; it is lost for the rest of the process.")                     \
  X(RDM_ERROR_LAUNCH, "The driver refused a launch; the device stays usable.")                                     \
  X(RDM_ERROR_DRIVER, "The driver returned an error; see its code.")                                               \
  X(RDM_ERROR_OUT_OF_MEMORY, "Memory ran out.")                                                                    \
  X(RDM_ERROR_COMPILE, "The run-time compiler refused the source.")                                                \
  X(RDM_ERROR_KERNEL_NOT_FOUND, "The module has no kernel of that name.")                                          \
  X(RDM_ERROR_SHUTTING_DOWN, "The process is exiting.")                                                            \
  X(RDM_ERROR_FORKED, "This process was forked after its parent had loaded the driver; exec a new program in it.") \
  X(RDM_ERROR_IN_CALLBACK, "A function that waits was called from a completion handler.")                          \
  X(RDM_ERROR_ALREADY_CONFIGURED, "The driver is chosen already; configure before first use.")                     \
  X(RDM_ERROR_WRONG_DEVICE, "Two objects of different devices were used together.")                                \
  X(RDM_ERROR_UNSUPPORTED, "The driver or the build can not do this.")                                             \
  X(RDM_ERROR_RESOURCE, "A system resource other than memory ran out.")                                            \
  X(RDM_ERROR_CAPTURING, "A stream is being captured, and the driver does not let this happen meanwhile.")

const char *rdm_status_name(rdm_status status) {
  switch (status) {
#define X(constant, description) \
  case constant:                 \
    return #constant;
    STATUSES(X)
#undef X
  }
  return "RDM_ERROR_UNKNOWN";
}

const char *rdm_status_description(rdm_status status) {
  switch (status) {
#define X(constant, description) \
  case constant:                 \
    return description;
    STATUSES(X)
#undef X
  }
  return "The status is not one of this version of the library.";
}

rdm_error *rdm__thread_error(void) {
  return &last_error;
}

__attribute__((format(printf, 6, 0))) static rdm_status set_error(rdm_status status, int driver_code,
                                                                  const char *driver_name, const char *call,
                                                                  int device_index, const char *format,
                                                                  va_list arguments) {
  /* The arguments may point into the last error itself, so the new one is built aside. */
  rdm_error error = {
      .struct_size = sizeof error, .status = status, .driver_code = driver_code, .device_index = device_index};
  snprintf(error.driver_name, sizeof error.driver_name, "%s", driver_name);
  snprintf(error.call, sizeof error.call, "%s", call);
  vsnprintf(error.message, sizeof error.message, format, arguments);
  last_error = error;
  return status;
}

rdm_status rdm__fail(rdm_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  set_error(status, 0, "", "", -1, format, arguments);
  va_end(arguments);
  return status;
}

rdm_status rdm__fail_driver(rdm_status status, int driver_code, const char *driver_name, const char *call,
                            int device_index, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  set_error(status, driver_code, driver_name, call, device_index, format, arguments);
  va_end(arguments);
  return status;
}

rdm_status rdm__fail_with(const rdm_error *error) {
  if (error != &last_error) last_error = *error;
  return last_error.status;
}

rdm_status rdm__struct_copy_out(const char *what, const void *from, size_t size, size_t least, void *to) {
  if (to == NULL) return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "%s is null", what);
  uint32_t theirs = 0;
  memcpy(&theirs, to, sizeof theirs);
  if (theirs < least) {
    return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "%s->struct_size is %u; set it to the struct's size, %zu", what,
                     theirs, size);
  }
  memcpy(to, from, theirs < size ? theirs : size);
  memcpy(to, &theirs, sizeof theirs);
  return RDM_OK;
}

rdm_status rdm__error_copy_out(const rdm_error *error, rdm_error *out) {
  return rdm__struct_copy_out("out_error", error, sizeof *error, offsetof(rdm_error, driver_code), out);
}

rdm_status rdm_last_error(rdm_error *out_error) {
  /* Asking for the last error in a wrong way must not replace it. */
  if (out_error == NULL || out_error->struct_size < offsetof(rdm_error, driver_code)) {
    return RDM_ERROR_INVALID_ARGUMENT;
  }
  return rdm__error_copy_out(&last_error, out_error);
}

const char *rdm_last_error_message(void) {
  return last_error.message;
}
