/* AMD's run-time compiler behind the table's rtc_ entries, with a guard against architectures that make it abort. */
#ifndef RDM_HIP_COMPILER_H
#define RDM_HIP_COMPILER_H

#include "driver.h"
#include "hip_library.h"

/* Fills the table's rtc_ entries. `library` must live as long as the process. */
void rdm__hip_compiler_fill(rdm__driver *table, const rdm__hip_library *library);

#endif
