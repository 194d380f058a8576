/* The simulated driver's table. */
#ifndef RDM_SIM_DRIVER_TABLE_H
#define RDM_SIM_DRIVER_TABLE_H

#include "driver/driver.h"

/* Makes the state and fills the table, without initializing the runtime. NULL with the thread's last error set. */
const rdm__driver *rdm__sim_prepare(int device_count);

#endif
