/* The functions of the header that steer the simulated driver. */
#include "driver/sim/call_log.h"
#include "driver/sim/call_name.h"
#include "driver/sim/device.h"
#include "driver/sim/device_streams.h"
#include "driver/sim/injection.h"
#include "driver/sim/memory.h"
#include "driver/sim/object.h"
#include "driver/sim/state.h"
#include "runtime.h"
#include "status.h"

#include <string.h>

/* Loads the driver, and refuses every one but `sim`. */
static rdm_status enter(const char *function) {
  const rdm__driver *driver;
  rdm_status status = rdm__runtime_enter(&driver);
  if (status != RDM_OK) return status;
  if (strcmp(driver->name, "sim") == 0) return RDM_OK;
  return rdm__fail(RDM_ERROR_UNSUPPORTED, "%s works with the driver sim alone; this process uses %s", function,
                   driver->name);
}

/* The entry point with a name, RDM__CALL_COUNT for null. */
static rdm_status find_call(const char *function, const char *entry_point, rdm__call *out_call) {
  *out_call = RDM__CALL_COUNT;
  if (entry_point == NULL) return RDM_OK;
  *out_call = rdm__sim_call_by_name(entry_point);
  if (*out_call != RDM__CALL_COUNT) return RDM_OK;
  return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "%s: the driver has no entry point named \"%s\"", function, entry_point);
}

static rdm_status find_device(const char *function, int32_t device_index, rdm__sim_device **out_device) {
  *out_device = rdm__sim_device_at(device_index);
  if (*out_device != NULL) return RDM_OK;
  return rdm__fail(RDM_ERROR_INVALID_DEVICE, "%s: device index %d is out of range; the device count is %d", function,
                   (int)device_index, (int)rdm__runtime_device_count());
}

rdm_status rdm_sim_read_calls(uint64_t first, rdm_sim_call *out_calls, size_t capacity, size_t *out_count) {
  rdm_status status = enter("rdm_sim_read_calls");
  if (status != RDM_OK) return status;
  if (out_count == NULL || (out_calls == NULL && capacity > 0)) {
    return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "rdm_sim_read_calls: %s is null",
                     out_count == NULL ? "out_count" : "out_calls");
  }
  *out_count = rdm__sim_call_log_read(first, out_calls, capacity);
  return RDM_OK;
}

rdm_status rdm_sim_call_count(const char *entry_point, uint64_t *out_count) {
  rdm_status status = enter("rdm_sim_call_count");
  if (status != RDM_OK) return status;
  if (out_count == NULL) return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "rdm_sim_call_count: out_count is null");
  rdm__call call;
  status = find_call("rdm_sim_call_count", entry_point, &call);
  if (status == RDM_OK) *out_count = rdm__sim_call_log_count(call);
  return status;
}

rdm_status rdm_sim_inject(const char *entry_point, uint64_t nth, uint64_t times, int32_t error, uint64_t stall_ns) {
  rdm_status status = enter("rdm_sim_inject");
  if (status != RDM_OK) return status;
  rdm__call call;
  status = find_call("rdm_sim_inject", entry_point, &call);
  if (status != RDM_OK) return status;
  if (nth == 0) return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "rdm_sim_inject: nth is 0; the next call is number 1");
  if (!rdm__sim_injections_add(rdm__sim_state()->injections, call, nth, times, error, stall_ns)) {
    return rdm__fail(RDM_ERROR_OUT_OF_MEMORY, "rdm_sim_inject: out of memory");
  }
  return RDM_OK;
}

rdm_status rdm_sim_clear_injections(uint64_t *out_fired) {
  rdm_status status = enter("rdm_sim_clear_injections");
  if (status != RDM_OK) return status;
  uint64_t fired = rdm__sim_injections_clear(rdm__sim_state()->injections);
  if (out_fired != NULL) *out_fired = fired;
  return RDM_OK;
}

rdm_status rdm_sim_hold(int32_t device_index, int32_t hold) {
  rdm_status status = enter("rdm_sim_hold");
  if (status != RDM_OK) return status;
  if (hold != 0 && hold != 1) {
    return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "rdm_sim_hold: hold is %d; it is 0 or 1", (int)hold);
  }
  rdm__sim_device *device;
  status = find_device("rdm_sim_hold", device_index, &device);
  if (status == RDM_OK) rdm__sim_device_set_held(device, hold == 1);
  return status;
}

rdm_status rdm_sim_fault(int32_t device_index, int32_t error) {
  rdm_status status = enter("rdm_sim_fault");
  if (status != RDM_OK) return status;
  rdm__sim_device *device;
  status = find_device("rdm_sim_fault", device_index, &device);
  if (status != RDM_OK) return status;
  if (!rdm__driver_error_is_fault(error)) {
    return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "rdm_sim_fault: error %d is not one that a device does not survive",
                     (int)error);
  }
  rdm__sim_device_set_fault(device, error);
  return RDM_OK;
}

rdm_status rdm_sim_count_objects(rdm_sim_objects *out_objects) {
  rdm_status status = enter("rdm_sim_count_objects");
  if (status != RDM_OK) return status;
  rdm_sim_objects objects = {
      .streams = rdm__sim_handle_count(RDM__SIM_STREAM),
      .events = rdm__sim_handle_count(RDM__SIM_EVENT),
      .modules = rdm__sim_handle_count(RDM__SIM_MODULE),
      .programs = rdm__sim_handle_count(RDM__SIM_PROGRAM),
      .device_allocations = rdm__sim_memory_device_allocation_count(),
      .host_allocations = rdm__sim_memory_host_allocation_count(),
      .graphs = rdm__sim_handle_count(RDM__SIM_GRAPH) + rdm__sim_handle_count(RDM__SIM_GRAPH_EXEC),
  };
  if (out_objects == NULL || out_objects->struct_size < sizeof(uint32_t)) {
    return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "rdm_sim_count_objects: out_objects is null or its struct_size is %u",
                     out_objects == NULL ? 0U : (unsigned)out_objects->struct_size);
  }
  uint32_t size = out_objects->struct_size;
  objects.struct_size = size;
  memcpy(out_objects, &objects, size < sizeof objects ? size : sizeof objects);
  return RDM_OK;
}
