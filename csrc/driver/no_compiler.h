/* The entry points of a run-time compiler that was not found: each fails, and the error's text says what was tried. */
#ifndef RDM_NO_COMPILER_H
#define RDM_NO_COMPILER_H

#include "driver.h"

/* The number that they return, outside the range of hiprtc's and nvrtc's own. */
enum { RDM__RTC_NO_COMPILER = 1000 };

void rdm__no_compiler_fill(rdm__driver *driver);

#endif
