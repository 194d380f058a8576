/* Entry points: devices. */
#include "driver/sim/call.h"
#include "driver/sim/calls.h"
#include "driver/sim/device.h"
#include "driver/sim/device_streams.h"
#include "driver/sim/state.h"
#include "driver/sim/thread.h"

int rdm__sim_hip_get_device_count(int *count) {
  rdm__sim_call_scope scope;
  int result = rdm__sim_call_begin(&scope, RDM__CALL_get_device_count, NULL, -1);
  if (result == RDM_HIP_SUCCESS) {
    if (count == NULL) {
      result = RDM_HIP_INVALID_VALUE;
    } else {
      *count = rdm__sim_state()->device_count;
      if (*count == 0) result = RDM_HIP_NO_DEVICE;
    }
  }
  return rdm__sim_call_end(&scope, result);
}

int rdm__sim_hip_get_device(int *device) {
  rdm__sim_call_scope scope;
  int result = rdm__sim_call_begin(&scope, RDM__CALL_get_device, NULL, -1);
  if (result == RDM_HIP_SUCCESS) {
    if (device == NULL) {
      result = RDM_HIP_INVALID_VALUE;
    } else if (rdm__sim_state()->device_count == 0) {
      result = RDM_HIP_INVALID_DEVICE;
    } else {
      *device = rdm__sim_this_thread()->current_device;
    }
  }
  return rdm__sim_call_end(&scope, result);
}

int rdm__sim_hip_set_device(int device) {
  rdm__sim_call_scope scope;
  int result = rdm__sim_call_begin(&scope, RDM__CALL_set_device, NULL, device);
  if (result == RDM_HIP_SUCCESS) {
    if (rdm__sim_device_at(device) == NULL) {
      result = RDM_HIP_INVALID_DEVICE;
    } else {
      rdm__sim_this_thread()->current_device = device;
    }
  }
  return rdm__sim_call_end(&scope, result);
}

static int set_flags(unsigned flags) {
  rdm__sim_device *device = rdm__sim_device_at(rdm__sim_this_thread()->current_device);
  return device == NULL ? RDM_HIP_INVALID_DEVICE : rdm__sim_device_set_flags(device, flags);
}

int rdm__sim_hip_set_device_flags(unsigned flags) {
  rdm__sim_call_scope scope;
  int current = rdm__sim_this_thread()->current_device;
  int result = rdm__sim_call_begin(&scope, RDM__CALL_set_device_flags, NULL, current);
  if (result == RDM_HIP_SUCCESS) result = set_flags(flags);
  return rdm__sim_call_end(&scope, result);
}

static int get_properties(rdm__device_properties *properties, int device) {
  if (properties == NULL) return RDM_HIP_INVALID_VALUE;
  if (rdm__sim_device_at(device) == NULL) return RDM_HIP_INVALID_DEVICE;
  *properties = rdm__sim_device_properties();
  return RDM_HIP_SUCCESS;
}

int rdm__sim_hip_get_device_properties(rdm__device_properties *properties, int device) {
  rdm__sim_call_scope scope;
  int result = rdm__sim_call_begin(&scope, RDM__CALL_get_device_properties, NULL, device);
  if (result == RDM_HIP_SUCCESS) result = get_properties(properties, device);
  return rdm__sim_call_end(&scope, result);
}

int rdm__sim_hip_device_synchronize(void) {
  rdm__sim_call_scope scope;
  rdm__sim_device *device = NULL;
  int current = rdm__sim_this_thread()->current_device;
  int result = rdm__sim_call_begin(&scope, RDM__CALL_device_synchronize, NULL, current);
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_device_use_current(&device);
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_device_wait(device);
  return rdm__sim_call_end(&scope, result);
}
