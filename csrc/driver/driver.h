/*
 * The driver: the one table of HIP entry points that everything above calls.
 *
 * Each entry point has HIP's meaning, HIP's error numbers and HIP's rules on the current device. Three files fill the
 * table: hip.c, cuda.c and sim/. A table never changes once it is open, so reading it takes no lock.
 */
#ifndef RDM_DRIVER_H
#define RDM_DRIVER_H

#include "rocm_device_map.h"

#include <stdbool.h>

/* HIP's numbers, which CUDA shares for these. */
enum {
  RDM_HIP_SUCCESS = 0,
  RDM_HIP_INVALID_VALUE = 1,
  RDM_HIP_OUT_OF_MEMORY = 2,
  RDM_HIP_NOT_INITIALIZED = 3,
  RDM_HIP_DEINITIALIZED = 4,
  RDM_HIP_INVALID_CONFIGURATION = 9,
  RDM_HIP_INSUFFICIENT_DRIVER = 35,
  RDM_HIP_NO_DEVICE = 100,
  RDM_HIP_INVALID_DEVICE = 101,
  RDM_HIP_INVALID_IMAGE = 200,
  RDM_HIP_INVALID_CONTEXT = 201,
  RDM_HIP_NO_BINARY_FOR_GPU = 209,
  RDM_HIP_INVALID_SOURCE = 300,
  RDM_HIP_INVALID_HANDLE = 400,
  RDM_HIP_NOT_FOUND = 500,
  RDM_HIP_NOT_READY = 600,
  RDM_HIP_ILLEGAL_ADDRESS = 700,
  RDM_HIP_LAUNCH_OUT_OF_RESOURCES = 701,
  RDM_HIP_LAUNCH_TIME_OUT = 702,
  RDM_HIP_SET_ON_ACTIVE_PROCESS = 708,
  RDM_HIP_CONTEXT_IS_DESTROYED = 709,
  RDM_HIP_ASSERT = 710,
  RDM_HIP_LAUNCH_FAILURE = 719,
  RDM_HIP_NOT_PERMITTED = 800,
  RDM_HIP_NOT_SUPPORTED = 801,
  /* 900 to 908 are about stream capture. */
  RDM_HIP_CAPTURE_UNSUPPORTED = 900,
  RDM_HIP_CAPTURE_INVALIDATED = 901,
  RDM_HIP_CAPTURE_UNMATCHED = 903,
  RDM_HIP_CAPTURED_EVENT = 907,
  RDM_HIP_CAPTURE_WRONG_THREAD = 908,
  RDM_HIP_UNKNOWN = 999,
};

/* hiprtc's and nvrtc's numbers, which agree. */
enum {
  RDM_RTC_SUCCESS = 0,
  RDM_RTC_OUT_OF_MEMORY = 1,
  RDM_RTC_PROGRAM_CREATION_FAILURE = 2,
  RDM_RTC_INVALID_INPUT = 3,
  RDM_RTC_INVALID_PROGRAM = 4,
  RDM_RTC_INVALID_OPTION = 5,
  RDM_RTC_COMPILATION = 6,
};

enum { RDM_HIP_DEVICE_SCHEDULE_BLOCKING_SYNC = 4 };
enum { RDM_HIP_STREAM_NON_BLOCKING = 1 };
enum { RDM_HIP_EVENT_BLOCKING_SYNC = 1, RDM_HIP_EVENT_DISABLE_TIMING = 2 };
enum { RDM_HIP_CAPTURE_MODE_GLOBAL = 0, RDM_HIP_CAPTURE_MODE_THREAD_LOCAL = 1, RDM_HIP_CAPTURE_MODE_RELAXED = 2 };
enum { RDM_HIP_CAPTURE_NONE = 0, RDM_HIP_CAPTURE_ACTIVE = 1, RDM_HIP_CAPTURE_IS_INVALID = 2 };

typedef struct rdm__device_properties {
  uint64_t total_memory_bytes;
  int multiprocessor_count;
  int warp_size;
  int max_threads_per_block;
  char name[256];
  /* What the run-time compiler takes: "gfx90a:sramecc+:xnack-", "sm_90", "sim". */
  char architecture[256];
} rdm__device_properties;

typedef void (*rdm__host_function)(void *user_data);

/*
 * X(field, HIP's name, parameters). Every one returns HIP's error number, or hiprtc's for those whose field begins
 * with rtc_. Signatures are HIP's with opaque types, but for two: get_device_properties fills our own struct, and
 * module_load_data is told the image's size, which HIP finds in the image.
 */
/* clang-format off */
#define RDM__DRIVER_CALLS(X) \
  X(init, "hipInit", (unsigned flags)) \
  X(driver_get_version, "hipDriverGetVersion", (int *version)) \
  X(runtime_get_version, "hipRuntimeGetVersion", (int *version)) \
  X(get_device_count, "hipGetDeviceCount", (int *count)) \
  X(get_device, "hipGetDevice", (int *device)) \
  X(set_device, "hipSetDevice", (int device)) \
  X(set_device_flags, "hipSetDeviceFlags", (unsigned flags)) \
  X(get_device_properties, "hipGetDeviceProperties", (rdm__device_properties *properties, int device)) \
  X(device_synchronize, "hipDeviceSynchronize", (void)) \
  X(memory_allocate, "hipMalloc", (void **pointer, size_t size)) \
  X(memory_free, "hipFree", (void *pointer)) \
  X(host_memory_allocate, "hipHostMalloc", (void **pointer, size_t size, unsigned flags)) \
  X(host_memory_free, "hipHostFree", (void *pointer)) \
  X(memory_copy_async, "hipMemcpyAsync", (void *to, const void *from, size_t size, int kind, void *stream)) \
  X(memory_set_async, "hipMemsetAsync", (void *to, int value, size_t size, void *stream)) \
  X(stream_create, "hipStreamCreateWithFlags", (void **stream, unsigned flags)) \
  X(stream_destroy, "hipStreamDestroy", (void *stream)) \
  X(stream_query, "hipStreamQuery", (void *stream)) \
  X(stream_synchronize, "hipStreamSynchronize", (void *stream)) \
  X(stream_wait_event, "hipStreamWaitEvent", (void *stream, void *event, unsigned flags)) \
  X(launch_host_function, "hipLaunchHostFunc", (void *stream, rdm__host_function function, void *user_data)) \
  X(stream_begin_capture, "hipStreamBeginCapture", (void *stream, int mode)) \
  X(stream_end_capture, "hipStreamEndCapture", (void *stream, void **graph)) \
  X(stream_is_capturing, "hipStreamIsCapturing", (void *stream, int *status)) \
  X(thread_exchange_capture_mode, "hipThreadExchangeStreamCaptureMode", (int *mode)) \
  X(graph_destroy, "hipGraphDestroy", (void *graph)) \
  X(graph_instantiate, "hipGraphInstantiateWithFlags", (void **executable, void *graph, unsigned long long flags)) \
  X(graph_launch, "hipGraphLaunch", (void *executable, void *stream)) \
  X(graph_exec_destroy, "hipGraphExecDestroy", (void *executable)) \
  X(event_create, "hipEventCreateWithFlags", (void **event, unsigned flags)) \
  X(event_destroy, "hipEventDestroy", (void *event)) \
  X(event_record, "hipEventRecord", (void *event, void *stream)) \
  X(event_query, "hipEventQuery", (void *event)) \
  X(event_synchronize, "hipEventSynchronize", (void *event)) \
  X(event_elapsed_time, "hipEventElapsedTime", (float *milliseconds, void *start, void *end)) \
  X(module_load_data, "hipModuleLoadData", (void **module, const void *image, size_t image_size)) \
  X(module_unload, "hipModuleUnload", (void *module)) \
  X(module_get_function, "hipModuleGetFunction", (void **function, void *module, const char *name)) \
  X(launch_kernel, "hipModuleLaunchKernel", (void *function, const unsigned grid[3], const unsigned block[3], \
                                             unsigned shared_memory, void *stream, void **arguments)) \
  X(peek_at_last_error, "hipPeekAtLastError", (void)) \
  X(get_last_error, "hipGetLastError", (void)) \
  X(rtc_version, "hiprtcVersion", (int *major, int *minor)) \
  X(rtc_create_program, "hiprtcCreateProgram", (void **program, const char *source, const char *name)) \
  X(rtc_compile_program, "hiprtcCompileProgram", (void *program, int option_count, const char *const *options)) \
  X(rtc_get_log_size, "hiprtcGetProgramLogSize", (void *program, size_t *size)) \
  X(rtc_get_log, "hiprtcGetProgramLog", (void *program, char *log)) \
  X(rtc_get_code_size, "hiprtcGetCodeSize", (void *program, size_t *size)) \
  X(rtc_get_code, "hiprtcGetCode", (void *program, char *code)) \
  X(rtc_destroy_program, "hiprtcDestroyProgram", (void **program))
/* clang-format on */

/* One enumerator for each entry point, in the order of the list: RDM__CALL_event_record. */
typedef enum rdm__call {
#define X(field, hip_name, parameters) RDM__CALL_##field,
  RDM__DRIVER_CALLS(X)
#undef X
      RDM__CALL_COUNT
} rdm__call;

typedef struct rdm__driver {
#define X(field, hip_name, parameters) int(*field) parameters;
  RDM__DRIVER_CALLS(X)
#undef X

  /* Texts for an error number; never null; make no call into the runtime that can fail. */
  const char *(*error_name)(int error);
  const char *(*error_string)(int error);
  const char *(*rtc_error_string)(int error);
  /* The entry point's name in this driver ("cudaEventRecord"), for messages. */
  const char *(*call_name)(rdm__call call);
  /* How many arguments a kernel takes, -1 where the driver can not tell. Makes no call that is logged or can fail. */
  int (*kernel_argument_count)(void *function);
  /* The size in bytes of the argument with this index, counted from 0; the same otherwise. */
  int (*kernel_argument_size)(void *function, unsigned index);

  const char *name;
  /* What stands before the architecture in the compiler's options. */
  const char *architecture_option;
  /* The compiler is not safe or not parallel inside a process: one compile or load at a time. */
  bool compiles_one_at_a_time;
  /* A queue fault takes every device of the process with it, not only its own. */
  bool fault_is_process_wide;
  char runtime_path[512];
  char compiler_path[512];
  /* What of the compiler its version and its file do not tell: part of the key of cached code. */
  char compiler_identity[64];
} rdm__driver;

/*
 * Open a driver: find its library, fill the table, and initialize the runtime, once. Called under the runtime's lock,
 * by one thread of the process, before any other call. On failure they set the thread's last error, leave nothing
 * behind, and may be called again. The table they give lives as long as the process.
 */
rdm_status rdm__hip_open(const rdm__driver **out_driver);
rdm_status rdm__cuda_open(const rdm__driver **out_driver);
rdm_status rdm__sim_open(int device_count, const rdm__driver **out_driver);

/* True for the errors after which the device, and every stream on it, is lost. */
bool rdm__driver_error_is_fault(int error);

#endif
