/* The simulated driver's table. */
#ifndef RDM_SIM_DRIVER_TABLE_H
#define RDM_SIM_DRIVER_TABLE_H

/* The compiler that was found when the driver was opened; empty for none. */
const char *rdm__sim_compiler_path(void);

#endif
