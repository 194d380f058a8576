/*
 * The key of a compiled code on disk: everything that changes the code object, as one run of bytes. Each part is led by
 * its length, so that no two lists of parts give the same bytes.
 */
#ifndef RDM_CACHE_KEY_H
#define RDM_CACHE_KEY_H

#include "cache_entry.h"
#include "driver/driver.h"

/* False where there is none, and nothing of the source may be on disk: the compiler did not tell its version, or memory
 * ran out. The bytes are to be freed. */
bool rdm__cache_key_make(const rdm__driver *driver, const char *architecture, const rdm_module_source *source,
                         rdm__cache_key *out_key);

#endif
