/* The HIP entry points: rdm__sim_hip_ and the name of the table's field. */
#ifndef RDM_SIM_CALLS_H
#define RDM_SIM_CALLS_H

#include "driver/driver.h"

#define X(field, hip_name, parameters) int rdm__sim_hip_##field parameters;
RDM__DRIVER_CALLS(X)
#undef X

#endif
