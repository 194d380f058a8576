#include "device.h"

#include "count.h"
#include "driver_call.h"
#include "log.h"
#include "runtime.h"
#include "status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static rdm__handle_table devices = RDM__HANDLE_TABLE(RDM__HANDLE_DEVICE, rdm__device, NULL);

/*
 * Once for each device, before anything can create its first queue: set later, a wait on that queue may never wake. The
 * device works without it, so only a fault is a failure here.
 */
static rdm_status set_schedule_flag(const rdm__driver *driver, int32_t index) {
  rdm_status status = rdm__runtime_enter_driver();
  if (status != RDM_OK) return status;
  int error = driver->set_device_flags(RDM_HIP_DEVICE_SCHEDULE_BLOCKING_SYNC);
  rdm__runtime_thread_left_driver();
  if (error == RDM_HIP_SUCCESS) return RDM_OK;
  if (rdm__driver_error_is_fault(error)) {
    return rdm__driver_call_failed(driver, index, RDM__CALL_set_device_flags, error, "first use of the device");
  }
  rdm__driver_forget_error(driver);
  rdm__log(RDM_LOG_WARNING, "HIP device %d: %s failed: %s (%d); waits on this device may use more CPU", index,
           driver->call_name(RDM__CALL_set_device_flags), driver->error_name(error), error);
  return RDM_OK;
}

static void initialize(rdm__device *device, const rdm__driver *driver, int32_t index) {
  device->driver = driver;
  device->index = index;
  snprintf(device->scope, sizeof device->scope, "%d", index);
  rdm__mutex_init(&device->streams_lock, RDM__RANK_STREAMS);
  rdm__mutex_init(&device->threads_lock, RDM__RANK_STREAMS);
  rdm__mutex_init(&device->queue_pool.lock, RDM__RANK_LEAF);
  rdm__mutex_init(&device->gone_queues.lock, RDM__RANK_LEAF);
  rdm__mutex_init(&device->released_graphs.lock, RDM__RANK_LEAF);
  for (int i = 0; i < RDM__EVENT_KINDS; i++) rdm__mutex_init(&device->event_pools[i].lock, RDM__RANK_LEAF);
}

/* Each call is a visit of its own: the first use of a GPU takes long, and the exit may begin meanwhile. */
rdm_status rdm__device_construct(const rdm__driver *driver, int32_t index, bool *schedule_flag_is_set,
                                 rdm__device **out_device) {
  rdm_status status = rdm__runtime_enter_driver();
  if (status != RDM_OK) return status;
  int error = driver->set_device(index);
  rdm__runtime_thread_left_driver();
  if (error != RDM_HIP_SUCCESS) {
    return rdm__driver_call_failed(driver, index, RDM__CALL_set_device, error, "first use of the device");
  }
  if (!*schedule_flag_is_set) {
    status = set_schedule_flag(driver, index);
    if (status != RDM_OK) return status;
    *schedule_flag_is_set = true;
  }
  rdm__device_properties properties = {0};
  status = rdm__runtime_enter_driver();
  if (status != RDM_OK) return status;
  error = driver->get_device_properties(&properties, index);
  rdm__runtime_thread_left_driver();
  if (error != RDM_HIP_SUCCESS) {
    return rdm__driver_call_failed(driver, index, RDM__CALL_get_device_properties, error, "first use of the device");
  }
  rdm__device *device = (rdm__device *)rdm__handle_allocate(&devices);
  if (device == NULL) return RDM_ERROR_RESOURCE;
  initialize(device, driver, index);
  device->properties = properties;
  device->handle.bits = rdm__handle_open(&devices, &device->object);
  *out_device = device;
  return RDM_OK;
}

rdm_status rdm__device_from_handle(rdm_device handle, rdm__device **out_device) {
  rdm_status status = rdm__runtime_check();
  if (status != RDM_OK) return status;
  rdm__object *object = NULL;
  status = rdm__handle_find(&devices, handle.bits, &object);
  if (status != RDM_OK) return status;
  *out_device = (rdm__device *)object;
  return RDM_OK;
}

atomic_bool rdm__any_device_has_faulted;

/* The first fault of any device, where the driver's faults take the whole process with them. Never freed. */
static _Atomic(const rdm_error *) process_fault;

static const rdm_error *fault_of(const rdm__device *device) {
  const rdm_error *fault = atomic_load_explicit(&device->fault, memory_order_acquire);
  if (fault != NULL || !device->driver->fault_is_process_wide) return fault;
  return atomic_load_explicit(&process_fault, memory_order_acquire);
}

bool rdm__device_has_faulted_itself(const rdm__device *device) {
  return fault_of(device) != NULL;
}

rdm_status rdm__device_check_fault(const rdm__device *device) {
  const rdm_error *fault = fault_of(device);
  if (fault == NULL) return RDM_OK;
  return rdm__fail_driver(RDM_ERROR_DEVICE_FAULT, fault->driver_code, fault->driver_name, fault->call, device->index,
                          "device %d has faulted and is lost for the rest of the process; first cause: %s",
                          device->index, fault->message);
}

/* For a fault when there is no memory left to describe it. */
static const rdm_error undescribed_fault = {
    .struct_size = sizeof(rdm_error), .status = RDM_ERROR_DEVICE_FAULT, .device_index = -1, .message = "a queue fault"};

/* Makes the thread's last error the device's fault, unless it has one. */
static void latch_fault(rdm__device *device) {
  if (rdm__device_has_faulted(device)) return;
  rdm_error *described = malloc(sizeof *described);
  if (described != NULL) *described = *rdm__thread_error();
  const rdm_error *fault = described != NULL ? described : &undescribed_fault;
  _Atomic(const rdm_error *) *slot = device->driver->fault_is_process_wide ? &process_fault : &device->fault;
  const rdm_error *expected = NULL;
  /* First, so that who sees the fault has seen this. */
  atomic_store_explicit(&rdm__any_device_has_faulted, true, memory_order_release);
  if (!atomic_compare_exchange_strong_explicit(slot, &expected, fault, memory_order_acq_rel, memory_order_acquire)) {
    free(described);
    return;
  }
  rdm__count(RDM__COUNT_FAULTS, 1);
  rdm__log(RDM_LOG_DEBUG, "device %d has faulted: %s", device->index, fault->message);
}

rdm_status rdm__device_call_failed(rdm__device *device, rdm__call call, int error, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  rdm_status status = rdm__driver_call_failed_list(device->driver, device->index, call, error, format, arguments);
  va_end(arguments);
  if (status == RDM_ERROR_DEVICE_FAULT) latch_fault(device);
  return status;
}

void rdm__device_note_failure(rdm__device *device, rdm__call call, int error, const char *doing) {
  rdm_error before = *rdm__thread_error();
  rdm__device_call_failed(device, call, error, "%s", doing);
  *rdm__thread_error() = before;
}

rdm_status rdm__device_bind(rdm__device *device) {
  rdm_status status = rdm__runtime_check();
  if (status == RDM_OK) status = rdm__device_check(device);
  if (status != RDM_OK) return status;
  const rdm__driver *driver = device->driver;
  int current = -1;
  int error = driver->get_device(&current);
  if (error != RDM_HIP_SUCCESS) {
    return rdm__device_call_failed(device, RDM__CALL_get_device, error, "making the device current");
  }
  if (current == device->index) return rdm__runtime_check();
  status = rdm__runtime_check();
  if (status != RDM_OK) return status;
  error = driver->set_device(device->index);
  if (error == RDM_HIP_SUCCESS) return rdm__runtime_check();
  return rdm__device_call_failed(device, RDM__CALL_set_device, error, "making the device current");
}

rdm_status rdm_device_make_current(rdm_device handle) {
  rdm__device *device = NULL;
  rdm_status status = rdm__device_from_handle(handle, &device);
  return status == RDM_OK ? rdm__device_bind(device) : status;
}

rdm_status rdm_device_get_info(rdm_device handle, rdm_device_info *out_info) {
  rdm__device *device = NULL;
  rdm_status status = rdm__device_from_handle(handle, &device);
  if (status != RDM_OK) return status;
  const rdm__device_properties *properties = &device->properties;
  rdm_device_info info = {.struct_size = sizeof info,
                          .device_index = device->index,
                          .total_memory_bytes = properties->total_memory_bytes,
                          .multiprocessor_count = properties->multiprocessor_count,
                          .warp_size = properties->warp_size,
                          .max_threads_per_block = properties->max_threads_per_block,
                          .faulted = rdm__device_has_faulted(device)};
  memcpy(info.name, properties->name, sizeof info.name);
  memcpy(info.architecture, properties->architecture, sizeof info.architecture);
  return rdm__struct_copy_out("out_info", &info, sizeof info, offsetof(rdm_device_info, name), out_info);
}
