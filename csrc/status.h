/* The calling thread's last error, and how every failure is reported. A lower layer: calls nothing of the library. */
#ifndef RDM_STATUS_H
#define RDM_STATUS_H

#include "rocm_device_map.h"

#include <stddef.h>

/* Sets the thread's last error to `status` with a formatted message and no driver code, and returns `status`. */
__attribute__((format(printf, 2, 3))) rdm_status rdm__fail(rdm_status status, const char *format, ...);

/* The same for a driver call that failed: `driver_code`, its name and `call` are kept beside the message. */
__attribute__((format(printf, 6, 7))) rdm_status rdm__fail_driver(rdm_status status, int driver_code,
                                                                  const char *driver_name, const char *call,
                                                                  int device_index, const char *format, ...);

/* Makes `error` the thread's last error and returns its status. */
rdm_status rdm__fail_with(const rdm_error *error);

/* The thread's last error, for code that adds to it or keeps it. Never null. */
rdm_error *rdm__thread_error(void);

/* Structs of the ABI carry their size, since a caller built against another version has a smaller or larger one. */

/*
 * Copies as much of `from` (of `size` bytes) as the caller's struct_size, the first member of `to`, allows, and keeps
 * that member. Fails, naming `what`, where `to` is null or its struct_size is below `least`.
 */
rdm_status rdm__struct_copy_out(const char *what, const void *from, size_t size, size_t least, void *to);

/* Copies at most out->struct_size bytes of `error`, keeping out->struct_size. Fails on null and on too small. */
rdm_status rdm__error_copy_out(const rdm_error *error, rdm_error *out);

#endif
