/* Device memory and pinned host memory: the driver's own, on the right device, with clear errors. */
#include "count.h"
#include "device.h"
#include "runtime.h"
#include "status.h"
#include "stream_error.h"
#include "visit.h"

/* The device to allocate on, visited. */
static rdm_status begin(rdm_device handle, size_t size_bytes, void **out_pointer, rdm__device **out_device,
                        rdm__capture_guard *out_guard) {
  if (out_pointer == NULL) return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "out_pointer is null");
  if (size_bytes == 0) return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "size_bytes is 0; it is 1 or more");
  rdm_status status = rdm__device_from_handle(handle, out_device);
  return status == RDM_OK ? rdm__visit_begin(*out_device, out_guard) : status;
}

rdm_status rdm_memory_allocate(rdm_device handle, size_t size_bytes, void **out_pointer) {
  rdm__device *device = NULL;
  rdm__capture_guard guard;
  rdm_status status = begin(handle, size_bytes, out_pointer, &device, &guard);
  if (status != RDM_OK) return status;
  void *pointer = NULL;
  int error = device->driver->memory_allocate(&pointer, size_bytes);
  if (error == RDM_HIP_SUCCESS) {
    *out_pointer = pointer;
    rdm__count(RDM__COUNT_DEVICE_ALLOCATIONS, 1);
  } else {
    status = rdm__device_call_failed(device, RDM__CALL_memory_allocate, error, "allocating %zu bytes", size_bytes);
  }
  rdm__visit_end(device, &guard);
  return status;
}

rdm_status rdm_host_memory_allocate(rdm_device handle, size_t size_bytes, void **out_pointer) {
  rdm__device *device = NULL;
  rdm__capture_guard guard;
  rdm_status status = begin(handle, size_bytes, out_pointer, &device, &guard);
  if (status != RDM_OK) return status;
  void *pointer = NULL;
  int error = device->driver->host_memory_allocate(&pointer, size_bytes, 0);
  if (error == RDM_HIP_SUCCESS) {
    *out_pointer = pointer;
    rdm__count(RDM__COUNT_HOST_ALLOCATIONS, 1);
  } else {
    status = rdm__device_call_failed(device, RDM__CALL_host_memory_allocate, error,
                                     "allocating %zu bytes of host memory", size_bytes);
  }
  rdm__visit_end(device, &guard);
  return status;
}

/* What both kinds share: nothing is done for null, and on a device that is lost. */
static rdm_status release(rdm_device handle, void *pointer, rdm__call call) {
  rdm__device *device = NULL;
  rdm_status status = rdm__device_from_handle(handle, &device);
  if (status != RDM_OK || pointer == NULL || rdm__device_has_faulted(device)) return status;
  rdm__capture_guard guard;
  status = rdm__visit_begin(device, &guard);
  if (status != RDM_OK) return status;
  const rdm__driver *driver = device->driver;
  int error = call == RDM__CALL_memory_free ? driver->memory_free(pointer) : driver->host_memory_free(pointer);
  if (error != RDM_HIP_SUCCESS) status = rdm__device_call_failed(device, call, error, "freeing %p", pointer);
  rdm__visit_end(device, &guard);
  if (error == RDM_HIP_SUCCESS) {
    rdm__count(call == RDM__CALL_memory_free ? RDM__COUNT_DEVICE_FREES : RDM__COUNT_HOST_FREES, 1);
    return RDM_OK;
  }
  /* A destructor can not report it, and nobody else's call may; so it is kept where it can be asked for. */
  rdm__error_slot_record(rdm__unattributed_errors(), rdm__thread_error());
  return status;
}

rdm_status rdm_memory_free(rdm_device device, void *pointer) {
  if (rdm__runtime_is_over()) return rdm__runtime_release_check();
  return rdm__runtime_release_status(release(device, pointer, RDM__CALL_memory_free));
}

rdm_status rdm_host_memory_free(rdm_device device, void *pointer) {
  if (rdm__runtime_is_over()) return rdm__runtime_release_check();
  return rdm__runtime_release_status(release(device, pointer, RDM__CALL_host_memory_free));
}
