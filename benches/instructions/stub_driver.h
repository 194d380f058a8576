/* A driver whose entry points do next to nothing, so that what is counted is the library's own work. */
#ifndef RDM_STUB_DRIVER_H
#define RDM_STUB_DRIVER_H

#include "driver/driver.h"

/* How many devices there are: set before the library's first call. */
extern int rdm__stub_device_count;

/* What asking for an event or a stream gives: RDM_HIP_SUCCESS at first. */
extern int rdm__stub_query_result;

const rdm__driver *rdm__stub_driver(void);

#endif
