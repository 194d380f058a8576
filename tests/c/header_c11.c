/* The header by itself, as C11: it needs nothing before it, may be included twice, and fixes what it promises. */
#include "rocm_device_map.h"
#include "rocm_device_map.h"

#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(rdm_status) == 4, "a status is of 32 bits");
_Static_assert(sizeof(rdm_device) == 8 && sizeof(rdm_stream) == 8 && sizeof(rdm_thread_local_stream) == 8 &&
                   sizeof(rdm_encoder) == 8 && sizeof(rdm_event) == 8 && sizeof(rdm_module) == 8 &&
                   sizeof(rdm_kernel) == 8,
               "a handle is of 64 bits");
_Static_assert(offsetof(rdm_config, struct_size) == 0 && offsetof(rdm_error, struct_size) == 0 &&
                   offsetof(rdm_driver_info, struct_size) == 0 && offsetof(rdm_device_info, struct_size) == 0 &&
                   offsetof(rdm_stream_info, struct_size) == 0 && offsetof(rdm_launch_config, struct_size) == 0 &&
                   offsetof(rdm_module_source, struct_size) == 0 && offsetof(rdm_sim_objects, struct_size) == 0,
               "structs that may grow begin with their size");
_Static_assert(RDM_VERSION == RDM_VERSION_MAJOR * 10000 + RDM_VERSION_MINOR * 100 + RDM_VERSION_PATCH, "one number");

int main(void) {
  int32_t count = 0;
  char version[32];
  snprintf(version, sizeof version, "%d.%d.%d", RDM_VERSION_MAJOR, RDM_VERSION_MINOR, RDM_VERSION_PATCH);
  if (rdm_version() != RDM_VERSION || strcmp(rdm_version_string(), version) != 0) return 1;
  if (rdm_device_count(&count) != RDM_OK || count != 2) return 1;
  return rdm_device_count(NULL) == RDM_ERROR_INVALID_ARGUMENT ? 0 : 1;
}
