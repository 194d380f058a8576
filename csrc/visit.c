#include "visit.h"

#include "runtime.h"
#include "status.h"

rdm_status rdm__capture_relax(rdm__device *device, rdm__capture_guard *out_guard) {
  *out_guard = (rdm__capture_guard){.mode = RDM_HIP_CAPTURE_MODE_RELAXED};
  int error = device->driver->thread_exchange_capture_mode(&out_guard->mode);
  out_guard->is_relaxed = error == RDM_HIP_SUCCESS;
  if (error != RDM_HIP_SUCCESS) {
    rdm__device_note_failure(device, RDM__CALL_thread_exchange_capture_mode, error, "stepping aside from captures");
    rdm_status status = rdm__device_check(device);
    if (status != RDM_OK) return status;
  }
  return rdm__runtime_check();
}

void rdm__capture_restore(rdm__device *device, const rdm__capture_guard *guard) {
  if (!guard->is_relaxed || rdm__runtime_is_over()) return;
  int mode = guard->mode;
  int error = device->driver->thread_exchange_capture_mode(&mode);
  if (error == RDM_HIP_SUCCESS) return;
  rdm__device_note_failure(device, RDM__CALL_thread_exchange_capture_mode, error,
                           "going back to the thread's own mode");
}

bool rdm__stream_is_capturing(rdm__device *device, void *native) {
  int capture = RDM_HIP_CAPTURE_NONE;
  int error = device->driver->stream_is_capturing(native, &capture);
  if (error == RDM_HIP_SUCCESS) return capture != RDM_HIP_CAPTURE_NONE;
  /* What is wrong with the stream is told by the call that follows. */
  rdm__device_note_failure(device, RDM__CALL_stream_is_capturing, error, "asking whether a stream is captured");
  return false;
}

rdm_status rdm__visit_begin(rdm__device *device, rdm__capture_guard *out_guard) {
  rdm_status status = rdm__runtime_enter_driver();
  if (status != RDM_OK) return status;
  status = rdm__device_bind(device);
  if (status == RDM_OK) status = rdm__capture_relax(device, out_guard);
  if (status != RDM_OK) rdm__runtime_thread_left_driver();
  return status;
}

void rdm__visit_end(rdm__device *device, const rdm__capture_guard *guard) {
  rdm__capture_restore(device, guard);
  rdm__runtime_thread_left_driver();
}
