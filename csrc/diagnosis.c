/* The public functions that say what is there and what was tried. They build no device and choose no driver. */
#include "driver/loader.h"
#include "driver/select.h"
#include "driver_call.h"
#include "runtime.h"
#include "status.h"

#include <glob.h>
#include <grp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Attempts -------------------------------------------------------------------------------------------------- */

/* The attempts of all drivers, to be freed. Another thread may add some meanwhile; they are not among these. */
static rdm__loader_attempt *copy_attempts(size_t *out_count) {
  size_t capacity = rdm__loader_report(NULL, 0);
  rdm__loader_attempt *attempts = calloc(capacity + 1, sizeof *attempts);
  if (attempts == NULL) return NULL;
  size_t count = rdm__loader_report(attempts, capacity);
  *out_count = count < capacity ? count : capacity;
  return attempts;
}

rdm_status rdm_driver_attempts(const char *driver, rdm_attempt_handler handler, void *user_data) {
  rdm_status status = rdm__runtime_check();
  if (status != RDM_OK) return status;
  if (driver == NULL || handler == NULL) {
    return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "%s is null", driver == NULL ? "driver" : "handler");
  }
  if (!rdm__driver_is_known(driver)) {
    return rdm__fail(RDM_ERROR_UNKNOWN_DRIVER, "there is no driver \"%s\"; this build has: %s", driver,
                     rdm__driver_names());
  }
  size_t count = 0;
  rdm__loader_attempt *attempts = copy_attempts(&count);
  if (attempts == NULL) return rdm__fail(RDM_ERROR_OUT_OF_MEMORY, "no memory for the attempts at libraries");
  for (size_t i = 0; i < count; i++) {
    if (strcmp(attempts[i].driver, driver) != 0) continue;
    handler(attempts[i].name, attempts[i].result, attempts[i].used ? 1 : 0, user_data);
  }
  free(attempts);
  return RDM_OK;
}

/* ---- A device -------------------------------------------------------------------------------------------------- */

/* `sim` where the process uses it: to open it for a look would fix how many GPUs it simulates. */
static rdm_status sim_in_use(const rdm__driver **out_driver) {
  const rdm__driver *driver = NULL;
  /* A count above 0 is that of a driver that is loaded, so entering loads none. */
  if (rdm__runtime_device_count() > 0) {
    rdm_status status = rdm__runtime_enter(&driver);
    if (status != RDM_OK) return status;
  }
  if (driver == NULL || strcmp(driver->name, "sim") != 0) {
    return rdm__fail(RDM_ERROR_UNSUPPORTED,
                     "the devices of sim can be looked at only where the process uses it; name it to rdm_configure");
  }
  *out_driver = driver;
  return RDM_OK;
}

static rdm_status open_for_a_look(const char *name, const rdm__driver **out_driver, int32_t *out_count) {
  rdm_status status = rdm_probe_driver(name, out_count);
  if (status != RDM_OK) return status;
  if (strcmp(name, "sim") == 0) return sim_in_use(out_driver);
  /* It is open since the call above, and what is open never changes: this finds it and needs no lock. */
  return rdm__driver_select(name, 0, out_driver, out_count);
}

rdm_status rdm_probe_device(const char *name, int32_t index, rdm_device_info *out_info) {
  const rdm__driver *driver = NULL;
  int32_t count = 0;
  rdm_status status = open_for_a_look(name, &driver, &count);
  if (status != RDM_OK) return status;
  if (count == 0) {
    return rdm__fail(RDM_ERROR_NO_DEVICE, "device index %d: the driver %s reports no device", index, driver->name);
  }
  if (index < 0 || index >= count) {
    return rdm__fail(RDM_ERROR_INVALID_DEVICE,
                     "device index %d is out of range: the driver %s has %d device%s (valid: 0 to %d)", index,
                     driver->name, count, count == 1 ? "" : "s", count - 1);
  }
  rdm__device_properties properties = {0};
  status = rdm__runtime_enter_driver();
  if (status != RDM_OK) return status;
  int error = driver->get_device_properties(&properties, index);
  rdm__runtime_thread_left_driver();
  if (error != RDM_HIP_SUCCESS) {
    return rdm__driver_call_failed(driver, index, RDM__CALL_get_device_properties, error, "looking at the device");
  }
  rdm_device_info info = {.struct_size = sizeof info,
                          .device_index = index,
                          .total_memory_bytes = properties.total_memory_bytes,
                          .multiprocessor_count = properties.multiprocessor_count,
                          .warp_size = properties.warp_size,
                          .max_threads_per_block = properties.max_threads_per_block};
  memcpy(info.name, properties.name, sizeof info.name);
  memcpy(info.architecture, properties.architecture, sizeof info.architecture);
  return rdm__struct_copy_out("out_info", &info, sizeof info, offsetof(rdm_device_info, name), out_info);
}

/* ---- Device nodes ---------------------------------------------------------------------------------------------- */

static void name_group(gid_t number, char *out, size_t capacity) {
  char buffer[4096];
  struct group entry;
  struct group *group = NULL;
  if (getgrgid_r(number, &entry, buffer, sizeof buffer, &group) != 0) group = NULL;
  if (group != NULL) {
    snprintf(out, capacity, "%s", group->gr_name);
  } else {
    snprintf(out, capacity, "%u", (unsigned)number);
  }
}

static void give_node(const char *driver, const char *path, rdm_device_node_handler handler, void *user_data) {
  rdm_device_node node = {.struct_size = sizeof node};
  struct stat status;
  snprintf(node.driver, sizeof node.driver, "%s", driver);
  snprintf(node.path, sizeof node.path, "%s", path);
  if (stat(path, &status) == 0) {
    node.exists = 1;
    node.mode = (uint32_t)(status.st_mode & 07777);
    node.owner_id = (uint32_t)status.st_uid;
    node.group_id = (uint32_t)status.st_gid;
    name_group(status.st_gid, node.group, sizeof node.group);
    node.accessible = rdm__loader_node_denied(path, false, node.problem, sizeof node.problem) ? 0 : 1;
  }
  handler(&node, user_data);
}

static bool is_amd_node(const char *path) {
  static const unsigned amd = 0x1002;
  const char *slash = strrchr(path, '/');
  char vendor_path[256];
  snprintf(vendor_path, sizeof vendor_path, "/sys/class/drm/%.64s/device/vendor", slash != NULL ? slash + 1 : path);
  FILE *file = fopen(vendor_path, "re");
  if (file == NULL) return false;
  unsigned vendor = 0;
  bool is_amd = fscanf(file, "%x", &vendor) == 1 && vendor == amd;
  fclose(file);
  return is_amd;
}

static void give_matches(const char *driver, const char *pattern, bool (*wanted)(const char *path),
                         rdm_device_node_handler handler, void *user_data) {
  glob_t nodes;
  if (glob(pattern, 0, NULL, &nodes) != 0) return;
  for (size_t i = 0; i < nodes.gl_pathc; i++) {
    if (wanted == NULL || wanted(nodes.gl_pathv[i])) give_node(driver, nodes.gl_pathv[i], handler, user_data);
  }
  globfree(&nodes);
}

rdm_status rdm_device_nodes(rdm_device_node_handler handler, void *user_data) {
  rdm_status status = rdm__runtime_check();
  if (status != RDM_OK) return status;
  if (handler == NULL) return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "handler is null");
  if (rdm__driver_is_known("hip")) {
    give_node("hip", "/dev/kfd", handler, user_data);
    give_matches("hip", "/dev/dri/renderD*", is_amd_node, handler, user_data);
  }
  if (rdm__driver_is_known("cuda")) {
    give_node("cuda", "/dev/nvidiactl", handler, user_data);
    give_node("cuda", "/dev/nvidia-uvm", handler, user_data);
    give_matches("cuda", "/dev/nvidia[0-9]*", NULL, handler, user_data);
  }
  return RDM_OK;
}
