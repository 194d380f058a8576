/*
 * Device nodes that the user may not open: permission_test. The check of the nodes is replaced by one that finds them
 * closed (linked with --wrap), since whoever may do anything finds none closed. RDM_HIP_LIBRARY names a stand-in.
 */
#include "driver/driver.h"

#include <stdio.h>
#include <string.h>

bool __wrap_rdm__loader_node_denied(const char *path, bool try_open, char *out, size_t capacity);
bool __wrap_rdm__loader_node_denied(const char *path, bool try_open, char *out, size_t capacity) {
  (void)try_open;
  snprintf(out, capacity, "%s can not be opened", path);
  return true;
}

int main(void) {
  const rdm__driver *driver = NULL;
  for (int i = 0; i < 2; i++) {
    rdm_status status = rdm__hip_open(&driver);
    if (status != RDM_ERROR_PERMISSION || strstr(rdm_last_error_message(), "/dev/kfd") == NULL) {
      printf("permission: %s: %s\n", rdm_status_name(status), rdm_last_error_message());
      return 1;
    }
  }
  printf("permission: 1 passed, 0 failed\n");
  return 0;
}
