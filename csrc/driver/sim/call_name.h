/* The entry points' names. */
#ifndef RDM_SIM_CALL_NAME_H
#define RDM_SIM_CALL_NAME_H

#include "driver/driver.h"

/* HIP's name of an entry point. */
const char *rdm__sim_call_name(rdm__call call);

/* The entry point with this name, RDM__CALL_COUNT where there is none. */
rdm__call rdm__sim_call_by_name(const char *name);

#endif
