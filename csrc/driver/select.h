/* Which driver the process uses: the one asked for by name, else the first real one that has a device. */
#ifndef RDM_DRIVER_SELECT_H
#define RDM_DRIVER_SELECT_H

#include "driver.h"

/* True for a name that this build knows; the list of such names, for messages, is rdm__driver_names(). */
bool rdm__driver_is_known(const char *name);
const char *rdm__driver_names(void);

/*
 * Opens the driver of this name, null: the first real one that has a device, else the first that opens. `sim` is
 * opened only by name. A driver that is open already is given again. `*out_device_count` is what it reports now.
 * The caller serializes the calls.
 */
rdm_status rdm__driver_select(const char *name, int sim_device_count, const rdm__driver **out_driver,
                              int32_t *out_device_count);

#endif
