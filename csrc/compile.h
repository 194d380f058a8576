/* Run-time compilation: a source and an architecture to a code object. */
#ifndef RDM_COMPILE_H
#define RDM_COMPILE_H

#include "driver/driver.h"

typedef struct rdm__code {
  char *bytes;
  size_t size_bytes;
  bool is_from_disk;
} rdm__code;

/*
 * The code of a source for an architecture, compiled once for each of (architecture, name, source, options) and kept.
 * On failure the last error has the tail of the compiler's log. Called with no lock held.
 */
rdm_status rdm__compile(const rdm__driver *driver, const char *architecture, const rdm_module_source *source,
                        const rdm__code **out_code);

/* The same, with another thread's compile of it waited for until then: RDM_ERROR_TIMEOUT. Its own has no bound. */
rdm_status rdm__compile_until(const rdm__driver *driver, const char *architecture, const rdm_module_source *source,
                              uint64_t deadline_ns, const rdm__code **out_code);

/*
 * The same, compiled in this process and stored over what the disk has: for code from the disk that the driver could
 * not load.
 */
rdm_status rdm__compile_anew(const rdm__driver *driver, const char *architecture, const rdm_module_source *source,
                             const rdm__code **out_code);

/* RDM_OK for a source that is whole; else an error that names what is missing. */
rdm_status rdm__source_check(const rdm_module_source *source);

/* Held around a compile or a load where the driver can not do two at once; nothing for the others. */
void rdm__compiler_enter(const rdm__driver *driver);
void rdm__compiler_leave(const rdm__driver *driver);

#endif
