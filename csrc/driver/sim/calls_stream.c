/* Entry points: streams, and the host functions in them. */
#include "driver/sim/call.h"
#include "driver/sim/calls.h"
#include "driver/sim/device.h"
#include "driver/sim/host_function.h"
#include "driver/sim/stream.h"
#include "driver/sim/stream_thread.h"
#include "driver/sim/thread.h"

static int create(void **out_stream, unsigned flags) {
  if (out_stream == NULL) return RDM_HIP_INVALID_VALUE;
  if ((flags & ~(unsigned)RDM_HIP_STREAM_NON_BLOCKING) != 0) return RDM_HIP_INVALID_VALUE;
  if (flags != RDM_HIP_STREAM_NON_BLOCKING) return RDM_HIP_NOT_SUPPORTED;
  rdm__sim_device *device;
  int result = rdm__sim_device_use_current(&device);
  if (result != RDM_HIP_SUCCESS) return result;
  void *handle = rdm__sim_stream_create(device, rdm__sim_stream_thread);
  if (handle == NULL) return RDM_HIP_OUT_OF_MEMORY;
  *out_stream = handle;
  return RDM_HIP_SUCCESS;
}

int rdm__sim_hip_stream_create(void **stream, unsigned flags) {
  rdm__sim_call_scope scope;
  void *handle = NULL;
  int current = rdm__sim_this_thread()->current_device;
  int result = rdm__sim_call_begin(&scope, RDM__CALL_stream_create, NULL, current);
  if (result == RDM_HIP_SUCCESS) result = create(stream, flags);
  if (result == RDM_HIP_SUCCESS) handle = *stream;
  return rdm__sim_call_end_created(&scope, result, handle);
}

int rdm__sim_hip_stream_destroy(void *stream) {
  rdm__sim_call_scope scope;
  rdm__sim_stream *found = rdm__sim_stream_get(stream);
  int result = rdm__sim_call_begin(&scope, RDM__CALL_stream_destroy, stream, rdm__sim_stream_device_index(found));
  rdm__sim_stream_release(found);
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_stream_close(stream);
  return rdm__sim_call_end(&scope, result);
}

/* Queries and waits take any current device, but no null and no dead stream. */
static int check_wait(rdm__sim_stream *stream, const void *handle) {
  if (handle == NULL) return RDM_HIP_NOT_SUPPORTED;
  return stream == NULL ? RDM_HIP_INVALID_HANDLE : rdm__sim_stream_check_not_captured(stream);
}

int rdm__sim_hip_stream_query(void *stream) {
  rdm__sim_call_scope scope;
  rdm__sim_stream *found = rdm__sim_stream_get(stream);
  int result = rdm__sim_call_begin(&scope, RDM__CALL_stream_query, stream, rdm__sim_stream_device_index(found));
  if (result == RDM_HIP_SUCCESS) result = check_wait(found, stream);
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_stream_query(found);
  rdm__sim_stream_release(found);
  return rdm__sim_call_end(&scope, result);
}

int rdm__sim_hip_stream_synchronize(void *stream) {
  rdm__sim_call_scope scope;
  rdm__sim_stream *found = rdm__sim_stream_get(stream);
  int result = rdm__sim_call_begin(&scope, RDM__CALL_stream_synchronize, stream, rdm__sim_stream_device_index(found));
  if (result == RDM_HIP_SUCCESS) result = check_wait(found, stream);
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_stream_wait(found);
  rdm__sim_stream_release(found);
  return rdm__sim_call_end(&scope, result);
}

int rdm__sim_hip_launch_host_function(void *stream, rdm__host_function function, void *user_data) {
  rdm__sim_call_scope scope;
  rdm__sim_stream *found = rdm__sim_stream_get(stream);
  int result = rdm__sim_call_begin(&scope, RDM__CALL_launch_host_function, stream, rdm__sim_stream_device_index(found));
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_stream_check_submit(found, stream);
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_host_function_submit(found, function, user_data);
  rdm__sim_stream_release(found);
  return rdm__sim_call_end(&scope, result);
}
