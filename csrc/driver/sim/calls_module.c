/* Entry points: modules, and launches of their kernels. */
#include "driver/sim/call.h"
#include "driver/sim/calls.h"
#include "driver/sim/launch.h"
#include "driver/sim/module.h"
#include "driver/sim/stream.h"
#include "driver/sim/thread.h"

int rdm__sim_hip_module_load_data(void **module, const void *image, size_t image_size) {
  rdm__sim_call_scope scope;
  void *handle = NULL;
  int current = rdm__sim_this_thread()->current_device;
  int result = rdm__sim_call_begin(&scope, RDM__CALL_module_load_data, NULL, current);
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_module_load(module, image, image_size);
  if (result == RDM_HIP_SUCCESS) handle = *module;
  return rdm__sim_call_end_created(&scope, result, handle);
}

static int module_device(const void *handle) {
  rdm__sim_module *module = rdm__sim_module_get(handle);
  int device = rdm__sim_module_device_index(module);
  rdm__sim_module_release(module);
  return device;
}

int rdm__sim_hip_module_unload(void *module) {
  rdm__sim_call_scope scope;
  int result = rdm__sim_call_begin(&scope, RDM__CALL_module_unload, module, module_device(module));
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_module_unload(module);
  return rdm__sim_call_end(&scope, result);
}

int rdm__sim_hip_module_get_function(void **function, void *module, const char *name) {
  rdm__sim_call_scope scope;
  rdm__sim_module *found = rdm__sim_module_get(module);
  int device = rdm__sim_module_device_index(found);
  int result = rdm__sim_call_begin(&scope, RDM__CALL_module_get_function, module, device);
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_module_get_function(function, found, name);
  rdm__sim_module_release(found);
  return rdm__sim_call_end(&scope, result);
}

int rdm__sim_hip_launch_kernel(void *function, const unsigned grid[3], const unsigned block[3], unsigned shared_memory,
                               void *stream, void **arguments) {
  rdm__sim_call_scope scope;
  rdm__sim_function *found = rdm__sim_function_get(function);
  rdm__sim_stream *found_stream = rdm__sim_stream_get(stream);
  int result = rdm__sim_call_begin(&scope, RDM__CALL_launch_kernel, function, rdm__sim_function_device_index(found));
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_stream_check_submit(found_stream, stream);
  if (result == RDM_HIP_SUCCESS) {
    result = rdm__sim_launch_submit(found, grid, block, shared_memory, found_stream, arguments);
  }
  rdm__sim_stream_release(found_stream);
  rdm__sim_function_release(found);
  return rdm__sim_call_end(&scope, result);
}
