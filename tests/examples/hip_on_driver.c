/*
 * AMD's hip* functions, as examples/raw_hip.c calls them, on the driver that the process uses: `sim`, or `cuda` on a
 * machine with one. Compiled against AMD's own declarations, so that a wrong prototype does not compile.
 *
 * HIP_ON_DRIVER_DROPS=name:n makes the n-th call of that function do nothing and say hipSuccess, to see that its effect
 * is checked.
 */
#include <hip/hip_runtime_api.h>

#include "driver/driver.h"
#include "runtime.h"

#include <stdlib.h>
#include <string.h>

static const rdm__driver *the_driver(void) {
  const rdm__driver *driver = NULL;
  if (rdm__runtime_enter(&driver) != RDM_OK) abort();
  return driver;
}

/* The example calls from one thread. */
static int is_dropped(const char *name) {
  static long calls;
  const char *dropped = getenv("HIP_ON_DRIVER_DROPS");
  size_t length = strlen(name);
  if (dropped == NULL || strncmp(dropped, name, length) != 0 || dropped[length] != ':') return 0;
  return ++calls == strtol(dropped + length + 1, NULL, 10);
}

#define PASS(call) return is_dropped(__func__) ? hipSuccess : (hipError_t)the_driver()->call

hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned int flags) {
  PASS(stream_create((void **)stream, flags));
}

hipError_t hipStreamDestroy(hipStream_t stream) {
  PASS(stream_destroy(stream));
}

hipError_t hipStreamSynchronize(hipStream_t stream) {
  PASS(stream_synchronize(stream));
}

hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned int flags) {
  PASS(stream_wait_event(stream, event, flags));
}

typedef struct callback {
  hipStreamCallback_t function;
  hipStream_t stream;
  void *user_data;
} callback;

static void call_back(void *user_data) {
  callback *made = user_data;
  made->function(made->stream, hipSuccess, made->user_data);
  free(made);
}

hipError_t hipStreamAddCallback(hipStream_t stream, hipStreamCallback_t function, void *user_data, unsigned int flags) {
  (void)flags;
  callback *made = malloc(sizeof *made);
  if (made == NULL) abort();
  *made = (callback){function, stream, user_data};
  return (hipError_t)the_driver()->launch_host_function(stream, call_back, made);
}

hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned flags) {
  PASS(event_create((void **)event, flags));
}

hipError_t hipEventDestroy(hipEvent_t event) {
  PASS(event_destroy(event));
}

hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
  PASS(event_record(event, stream));
}

hipError_t hipMemcpyAsync(void *to, const void *from, size_t size, hipMemcpyKind kind, hipStream_t stream) {
  PASS(memory_copy_async(to, from, size, (int)kind, stream));
}

hipError_t hipMalloc(void **pointer, size_t size) {
  PASS(memory_allocate(pointer, size));
}

hipError_t hipFree(void *pointer) {
  PASS(memory_free(pointer));
}

hipError_t hipHostMalloc(void **pointer, size_t size, unsigned int flags) {
  PASS(host_memory_allocate(pointer, size, flags));
}

hipError_t hipHostFree(void *pointer) {
  PASS(host_memory_free(pointer));
}
