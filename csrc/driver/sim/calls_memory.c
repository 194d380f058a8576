/* Entry points: memory, and copies and fills of it. */
#include "driver/sim/call.h"
#include "driver/sim/calls.h"
#include "driver/sim/memory.h"
#include "driver/sim/stream.h"
#include "driver/sim/thread.h"
#include "driver/sim/transfer.h"

/* hipHostMalloc: portable, mapped, write-combined, NUMA user, and the coherence bits. */
enum { HOST_FLAGS = 0x1 | 0x2 | 0x4 | 0x20000000 | 0x40000000 };
#define HOST_FLAG_NON_COHERENT 0x80000000U

static int device_of(const void *pointer) {
  if (pointer == NULL) return rdm__sim_this_thread()->current_device;
  int device;
  return rdm__sim_memory_find(pointer, 1, &device) ? device : -1;
}

int rdm__sim_hip_memory_allocate(void **pointer, size_t size) {
  rdm__sim_call_scope scope;
  void *allocated = NULL;
  int current = rdm__sim_this_thread()->current_device;
  int result = rdm__sim_call_begin(&scope, RDM__CALL_memory_allocate, NULL, current);
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_memory_allocate(pointer, size, false);
  if (result == RDM_HIP_SUCCESS) allocated = *pointer;
  return rdm__sim_call_end_created(&scope, result, allocated);
}

int rdm__sim_hip_memory_free(void *pointer) {
  rdm__sim_call_scope scope;
  int result = rdm__sim_call_begin(&scope, RDM__CALL_memory_free, pointer, device_of(pointer));
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_memory_free(pointer, false);
  return rdm__sim_call_end(&scope, result);
}

int rdm__sim_hip_host_memory_allocate(void **pointer, size_t size, unsigned flags) {
  rdm__sim_call_scope scope;
  void *allocated = NULL;
  int current = rdm__sim_this_thread()->current_device;
  int result = rdm__sim_call_begin(&scope, RDM__CALL_host_memory_allocate, NULL, current);
  if (result == RDM_HIP_SUCCESS && (flags & ~((unsigned)HOST_FLAGS | HOST_FLAG_NON_COHERENT)) != 0) {
    result = RDM_HIP_INVALID_VALUE;
  }
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_memory_allocate(pointer, size, true);
  if (result == RDM_HIP_SUCCESS) allocated = *pointer;
  return rdm__sim_call_end_created(&scope, result, allocated);
}

int rdm__sim_hip_host_memory_free(void *pointer) {
  rdm__sim_call_scope scope;
  int result = rdm__sim_call_begin(&scope, RDM__CALL_host_memory_free, pointer, device_of(pointer));
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_memory_free(pointer, true);
  return rdm__sim_call_end(&scope, result);
}

int rdm__sim_hip_memory_copy_async(void *to, const void *from, size_t size, int kind, void *stream) {
  rdm__sim_call_scope scope;
  rdm__sim_stream *found = rdm__sim_stream_get(stream);
  int result = rdm__sim_call_begin(&scope, RDM__CALL_memory_copy_async, stream, rdm__sim_stream_device_index(found));
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_stream_check_submit(found, stream);
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_transfer_copy(to, from, size, kind, found);
  rdm__sim_stream_release(found);
  return rdm__sim_call_end(&scope, result);
}

int rdm__sim_hip_memory_set_async(void *to, int value, size_t size, void *stream) {
  rdm__sim_call_scope scope;
  rdm__sim_stream *found = rdm__sim_stream_get(stream);
  int result = rdm__sim_call_begin(&scope, RDM__CALL_memory_set_async, stream, rdm__sim_stream_device_index(found));
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_stream_check_submit(found, stream);
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_transfer_fill(to, value, size, found);
  rdm__sim_stream_release(found);
  return rdm__sim_call_end(&scope, result);
}
