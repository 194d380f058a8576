/* Linked in place of csrc/driver/select.c: whatever driver is asked for, it is the stub. */
#include "driver/select.h"
#include "stub_driver.h"

bool rdm__driver_is_known(const char *name) {
  (void)name;
  return true;
}

const char *rdm__driver_names(void) {
  return "stub";
}

rdm_status rdm__driver_select(const char *name, int sim_device_count, const rdm__driver **out_driver,
                              int32_t *out_device_count) {
  (void)name;
  (void)sim_device_count;
  *out_driver = rdm__stub_driver();
  *out_device_count = rdm__stub_device_count;
  return RDM_OK;
}
