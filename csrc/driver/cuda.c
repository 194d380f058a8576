/*
 * The driver `cuda`: HIP's calls over NVIDIA's libraries.
 *
 * Devices, streams, events and memory go to the runtime; modules and launches go to the driver's library, in the
 * primary context that the runtime makes and shares with it. Events stay with the runtime, though the driver's library
 * takes them, too, and in less time: it crashes on those of a context that other code has destroyed, where the runtime
 * gives an error. Error numbers of the two agree wherever both have one,
 * and agree with HIP's for what this table returns, so none is translated.
 */
#include "driver.h"

#include "../status.h"

#ifdef RDM_DRIVER_CUDA

#include "cuda_library.h"
#include "loader.h"
#include "no_compiler.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Numbers of enum cudaDeviceAttr. */
enum {
  ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
  ATTRIBUTE_WARP_SIZE = 10,
  ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  ATTRIBUTE_COMPUTE_MAJOR = 75,
  ATTRIBUTE_COMPUTE_MINOR = 76
};

/* The flags of hipHostMalloc that cudaHostAlloc has too; the others choose a coherence that CUDA always gives. */
enum { HOST_FLAGS = 7 };

typedef struct cuda_state {
  rdm__driver table;
  rdm__cuda_library library;
} cuda_state;

/* Made once and kept. */
static cuda_state *state;

static const char *cuda_call_name(rdm__call call) {
  static const char *const names[RDM__CALL_COUNT] = {
      [RDM__CALL_init] = "cuInit",
      [RDM__CALL_driver_get_version] = "cudaDriverGetVersion",
      [RDM__CALL_runtime_get_version] = "cudaRuntimeGetVersion",
      [RDM__CALL_get_device_count] = "cudaGetDeviceCount",
      [RDM__CALL_get_device] = "cudaGetDevice",
      [RDM__CALL_set_device] = "cudaSetDevice",
      [RDM__CALL_set_device_flags] = "cudaSetDeviceFlags",
      [RDM__CALL_get_device_properties] = "cudaDeviceGetAttribute",
      [RDM__CALL_device_synchronize] = "cudaDeviceSynchronize",
      [RDM__CALL_memory_allocate] = "cudaMalloc",
      [RDM__CALL_memory_free] = "cudaFree",
      [RDM__CALL_host_memory_allocate] = "cudaHostAlloc",
      [RDM__CALL_host_memory_free] = "cudaFreeHost",
      [RDM__CALL_memory_copy_async] = "cudaMemcpyAsync",
      [RDM__CALL_memory_set_async] = "cudaMemsetAsync",
      [RDM__CALL_stream_create] = "cudaStreamCreateWithFlags",
      [RDM__CALL_stream_destroy] = "cudaStreamDestroy",
      [RDM__CALL_stream_query] = "cudaStreamQuery",
      [RDM__CALL_stream_synchronize] = "cudaStreamSynchronize",
      [RDM__CALL_stream_wait_event] = "cudaStreamWaitEvent",
      [RDM__CALL_launch_host_function] = "cudaLaunchHostFunc",
      [RDM__CALL_stream_begin_capture] = "cudaStreamBeginCapture",
      [RDM__CALL_stream_end_capture] = "cudaStreamEndCapture",
      [RDM__CALL_stream_is_capturing] = "cudaStreamIsCapturing",
      [RDM__CALL_thread_exchange_capture_mode] = "cudaThreadExchangeStreamCaptureMode",
      [RDM__CALL_graph_destroy] = "cudaGraphDestroy",
      [RDM__CALL_graph_instantiate] = "cudaGraphInstantiateWithFlags",
      [RDM__CALL_graph_launch] = "cudaGraphLaunch",
      [RDM__CALL_graph_exec_destroy] = "cudaGraphExecDestroy",
      [RDM__CALL_event_create] = "cudaEventCreateWithFlags",
      [RDM__CALL_event_destroy] = "cudaEventDestroy",
      [RDM__CALL_event_record] = "cudaEventRecord",
      [RDM__CALL_event_query] = "cudaEventQuery",
      [RDM__CALL_event_synchronize] = "cudaEventSynchronize",
      [RDM__CALL_event_elapsed_time] = "cudaEventElapsedTime",
      [RDM__CALL_module_load_data] = "cuModuleLoadData",
      [RDM__CALL_module_unload] = "cuModuleUnload",
      [RDM__CALL_module_get_function] = "cuModuleGetFunction",
      [RDM__CALL_launch_kernel] = "cuLaunchKernel",
      [RDM__CALL_peek_at_last_error] = "cudaPeekAtLastError",
      [RDM__CALL_get_last_error] = "cudaGetLastError",
      [RDM__CALL_rtc_version] = "nvrtcVersion",
      [RDM__CALL_rtc_create_program] = "nvrtcCreateProgram",
      [RDM__CALL_rtc_compile_program] = "nvrtcCompileProgram",
      [RDM__CALL_rtc_get_log_size] = "nvrtcGetProgramLogSize",
      [RDM__CALL_rtc_get_log] = "nvrtcGetProgramLog",
      [RDM__CALL_rtc_get_code_size] = "nvrtcGetCUBINSize",
      [RDM__CALL_rtc_get_code] = "nvrtcGetCUBIN",
      [RDM__CALL_rtc_destroy_program] = "nvrtcDestroyProgram",
  };
  if ((unsigned)call >= RDM__CALL_COUNT || names[call] == NULL) return "unknown call";
  return names[call];
}

static const char *cuda_error_name(int error) {
  const char *name = state->library.cudaGetErrorName(error);
  return name != NULL ? name : "cudaErrorUnknown";
}

static const char *cuda_error_string(int error) {
  const char *text = state->library.cudaGetErrorString(error);
  return text != NULL ? text : "unknown error";
}

static const char *cuda_rtc_error_string(int error) {
  if (!state->library.has_compiler || error == RDM__RTC_NO_COMPILER) return state->library.compiler_text;
  const char *text = state->library.nvrtcGetErrorString(error);
  return text != NULL ? text : "unknown nvrtc error";
}

static int cuda_kernel_argument_count(void *function) {
  if (state->library.cuFuncGetParamInfo == NULL || function == NULL) return -1;
  /* No call tells the number in every version; the first index that is refused is it. A kernel has 4 KiB at least. */
  for (int index = 0; index < 32768; index++) {
    size_t offset = 0;
    size_t size = 0;
    int error = state->library.cuFuncGetParamInfo(function, (size_t)index, &offset, &size);
    if (error == RDM_HIP_INVALID_VALUE) return index;
    if (error != RDM_HIP_SUCCESS) return -1;
  }
  return -1;
}

static int cuda_kernel_argument_size(void *function, unsigned index) {
  size_t offset = 0;
  size_t size = 0;
  if (state->library.cuFuncGetParamInfo == NULL || function == NULL) return -1;
  return state->library.cuFuncGetParamInfo(function, index, &offset, &size) == RDM_HIP_SUCCESS ? (int)size : -1;
}

static int cuda_get_device_properties(rdm__device_properties *properties, int device) {
  const rdm__cuda_library *library = &state->library;
  if (properties == NULL) return RDM_HIP_INVALID_VALUE;
  int major = 0;
  int minor = 0;
  rdm__device_properties found = {.total_memory_bytes = 0};
  const struct {
    int attribute;
    int *value;
  } wanted[] = {{ATTRIBUTE_COMPUTE_MAJOR, &major},
                {ATTRIBUTE_COMPUTE_MINOR, &minor},
                {ATTRIBUTE_MULTIPROCESSOR_COUNT, &found.multiprocessor_count},
                {ATTRIBUTE_WARP_SIZE, &found.warp_size},
                {ATTRIBUTE_MAX_THREADS_PER_BLOCK, &found.max_threads_per_block}};
  for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
    int error = library->cudaDeviceGetAttribute(wanted[i].value, wanted[i].attribute, device);
    if (error != RDM_HIP_SUCCESS) return error;
  }
  /* The driver's calls make no context; the runtime's big struct differs from version to version. */
  int ordinal = 0;
  size_t bytes = 0;
  int error = library->cuDeviceGet(&ordinal, device);
  if (error == RDM_HIP_SUCCESS) error = library->cuDeviceGetName(found.name, (int)sizeof found.name, ordinal);
  if (error == RDM_HIP_SUCCESS) error = library->cuDeviceTotalMem_v2(&bytes, ordinal);
  if (error != RDM_HIP_SUCCESS) return error;
  found.name[sizeof found.name - 1] = '\0';
  found.total_memory_bytes = bytes;
  snprintf(found.architecture, sizeof found.architecture, "sm_%d%d", major, minor);
  *properties = found;
  return RDM_HIP_SUCCESS;
}

/* HIP's count is 0 where there is no device; CUDA leaves the number as it is. */
static int cuda_get_device_count(int *count) {
  int error = state->library.cudaGetDeviceCount(count);
  if (error != RDM_HIP_SUCCESS && count != NULL) *count = 0;
  return error;
}

/*
 * Other code may destroy a device's primary context and all that is in it. NVIDIA's libraries crash on a stream or a
 * kernel of a context that is gone, so its end has to be told before any of them is used. Each context has a number
 * that is never given again: the one that the library's first set-device made current is that of everything it has on
 * that device. 0: it has nothing there.
 */
enum { MOST_DEVICES = 128 };
static _Atomic unsigned long long first_context[MOST_DEVICES];

static bool is_watched(int device) {
  return state->library.cuCtxGetId != NULL && device >= 0 && device < MOST_DEVICES;
}

static bool is_in_use(int device) {
  return is_watched(device) && atomic_load_explicit(&first_context[device], memory_order_relaxed) != 0;
}

/* For a device in use: false for a context that came after the first, and for one that other code made beside it. */
static bool is_first_context(void *context, int device) {
  unsigned long long id = 0;
  if (state->library.cuCtxGetId(context, &id) != RDM_HIP_SUCCESS) return false;
  return id == atomic_load_explicit(&first_context[device], memory_order_relaxed);
}

/* The primary context is current afterwards, whatever was before. */
static int cuda_set_device(int device) {
  void *context = NULL;
  int error = state->library.cudaSetDevice(device);
  if (error != RDM_HIP_SUCCESS || !is_watched(device)) return error;
  if (state->library.cuCtxGetCurrent(&context) != RDM_HIP_SUCCESS || context == NULL) return RDM_HIP_SUCCESS;
  unsigned long long id = 0;
  unsigned long long first = 0;
  if (state->library.cuCtxGetId(context, &id) != RDM_HIP_SUCCESS) return RDM_HIP_CONTEXT_IS_DESTROYED;
  if (atomic_compare_exchange_strong_explicit(&first_context[device], &first, id, memory_order_relaxed,
                                              memory_order_relaxed)) {
    return RDM_HIP_SUCCESS;
  }
  return first == id ? RDM_HIP_SUCCESS : RDM_HIP_CONTEXT_IS_DESTROYED;
}

/*
 * The driver's library tells the current context in a third of the time that the runtime takes for the current device.
 * A context is of one device as long as it lives, and from CUDA 12 on the runtime makes the context current as the
 * device is set; so what a thread has once asked the runtime holds for that context. Its address may be another one's
 * later, which its number tells.
 *
 * No device, -1, is current where the context is not the one that the library uses: one that other code made beside the
 * primary context, or what came after that was destroyed. Which of the two is told as a device is set, and of that
 * device: the current one may be another than the caller is about to ask for, and lost without harm to that.
 */
static int cuda_get_device(int *device) {
  static _Thread_local void *known_context;
  static _Thread_local int known_device;
  void *context = NULL;
  if (device == NULL) return RDM_HIP_INVALID_VALUE;
  bool has_context = state->library.cuCtxGetCurrent(&context) == RDM_HIP_SUCCESS && context != NULL;
  if (!has_context || context != known_context) {
    int error = state->library.cudaGetDevice(device);
    if (error != RDM_HIP_SUCCESS) return error;
    known_context = context;
    known_device = *device;
  }
  *device = known_device;
  if (!is_in_use(known_device)) return RDM_HIP_SUCCESS;
  /* A thread without a context is on the runtime's device, whose context may be gone: it is made current to see. */
  bool good = has_context ? is_first_context(context, known_device) : cuda_set_device(known_device) == RDM_HIP_SUCCESS;
  if (!good) *device = -1;
  return RDM_HIP_SUCCESS;
}

static int cuda_host_memory_allocate(void **pointer, size_t size, unsigned flags) {
  return state->library.cudaHostAlloc(pointer, size, flags & HOST_FLAGS);
}

/*
 * A thread that has not named a device yet has no context for the driver's library, while HIP, and CUDA's runtime, use
 * its current device. So such a call lets the runtime make that device's context current, and is made again. Freeing
 * nothing would invalidate a global capture of another thread, so the thread's mode is relaxed meanwhile.
 */
static bool bind_context(int error) {
  if (error != RDM_HIP_INVALID_CONTEXT) return false;
  int mode = RDM_HIP_CAPTURE_MODE_RELAXED;
  bool relaxed = state->library.cudaThreadExchangeStreamCaptureMode(&mode) == RDM_HIP_SUCCESS;
  bool bound = state->library.cudaFree(NULL) == RDM_HIP_SUCCESS;
  if (relaxed) (void)state->library.cudaThreadExchangeStreamCaptureMode(&mode);
  return bound;
}

static int cuda_module_load_data(void **module, const void *image, size_t image_size) {
  (void)image_size;
  /* The driver's library reads through these without a look. */
  if (module == NULL || image == NULL) return RDM_HIP_INVALID_VALUE;
  int error = state->library.cuModuleLoadData(module, image);
  if (bind_context(error)) error = state->library.cuModuleLoadData(module, image);
  return error;
}

static int cuda_module_unload(void *module) {
  if (module == NULL) return RDM_HIP_INVALID_HANDLE;
  int error = state->library.cuModuleUnload(module);
  if (bind_context(error)) error = state->library.cuModuleUnload(module);
  return error;
}

static int cuda_module_get_function(void **function, void *module, const char *name) {
  if (function == NULL || name == NULL) return RDM_HIP_INVALID_VALUE;
  if (module == NULL) return RDM_HIP_INVALID_HANDLE;
  int error = state->library.cuModuleGetFunction(function, module, name);
  if (bind_context(error)) error = state->library.cuModuleGetFunction(function, module, name);
  return error;
}

static int cuda_launch_kernel(void *function, const unsigned grid[3], const unsigned block[3], unsigned shared_memory,
                              void *stream, void **arguments) {
  if (function == NULL) return RDM_HIP_INVALID_HANDLE;
  int error = state->library.cuLaunchKernel(function, grid[0], grid[1], grid[2], block[0], block[1], block[2],
                                            shared_memory, stream, arguments, NULL);
  if (bind_context(error)) {
    error = state->library.cuLaunchKernel(function, grid[0], grid[1], grid[2], block[0], block[1], block[2],
                                          shared_memory, stream, arguments, NULL);
  }
  return error;
}

static int cuda_rtc_create_program(void **program, const char *source, const char *name) {
  return state->library.nvrtcCreateProgram(program, source, name, 0, NULL, NULL);
}

/* Machine code where a real architecture was given, else PTX, which the driver compiles as it loads it. */
static int cuda_rtc_get_code_size(void *program, size_t *size) {
  int error = state->library.nvrtcGetCUBINSize(program, size);
  if (error == RDM_RTC_SUCCESS && *size == 0) error = state->library.nvrtcGetPTXSize(program, size);
  return error;
}

static int cuda_rtc_get_code(void *program, char *code) {
  size_t size = 0;
  int error = state->library.nvrtcGetCUBINSize(program, &size);
  if (error != RDM_RTC_SUCCESS) return error;
  return size > 0 ? state->library.nvrtcGetCUBIN(program, code) : state->library.nvrtcGetPTX(program, code);
}

static void fill_table(cuda_state *made) {
  rdm__driver *table = &made->table;
  const rdm__cuda_library *library = &made->library;
  table->init = library->cuInit;
  table->driver_get_version = library->cudaDriverGetVersion;
  table->runtime_get_version = library->cudaRuntimeGetVersion;
  table->get_device_count = cuda_get_device_count;
  table->get_device = cuda_get_device;
  table->set_device = cuda_set_device;
  table->set_device_flags = library->cudaSetDeviceFlags;
  table->get_device_properties = cuda_get_device_properties;
  table->device_synchronize = library->cudaDeviceSynchronize;
  table->memory_allocate = library->cudaMalloc;
  table->memory_free = library->cudaFree;
  table->host_memory_allocate = cuda_host_memory_allocate;
  table->host_memory_free = library->cudaFreeHost;
  table->memory_copy_async = library->cudaMemcpyAsync;
  table->memory_set_async = library->cudaMemsetAsync;
  table->stream_create = library->cudaStreamCreateWithFlags;
  table->stream_destroy = library->cudaStreamDestroy;
  table->stream_query = library->cudaStreamQuery;
  table->stream_synchronize = library->cudaStreamSynchronize;
  table->stream_wait_event = library->cudaStreamWaitEvent;
  table->launch_host_function = library->cudaLaunchHostFunc;
  table->stream_begin_capture = library->cudaStreamBeginCapture;
  table->stream_end_capture = library->cudaStreamEndCapture;
  table->stream_is_capturing = library->cudaStreamIsCapturing;
  table->thread_exchange_capture_mode = library->cudaThreadExchangeStreamCaptureMode;
  table->graph_destroy = library->cudaGraphDestroy;
  table->graph_instantiate = library->cudaGraphInstantiateWithFlags;
  table->graph_launch = library->cudaGraphLaunch;
  table->graph_exec_destroy = library->cudaGraphExecDestroy;
  table->event_create = library->cudaEventCreateWithFlags;
  table->event_destroy = library->cudaEventDestroy;
  table->event_record = library->cudaEventRecord;
  table->event_query = library->cudaEventQuery;
  table->event_synchronize = library->cudaEventSynchronize;
  table->event_elapsed_time = library->cudaEventElapsedTime;
  table->module_load_data = cuda_module_load_data;
  table->module_unload = cuda_module_unload;
  table->module_get_function = cuda_module_get_function;
  table->launch_kernel = cuda_launch_kernel;
  table->peek_at_last_error = library->cudaPeekAtLastError;
  table->get_last_error = library->cudaGetLastError;
  if (library->has_compiler) {
    table->rtc_version = library->nvrtcVersion;
    table->rtc_create_program = cuda_rtc_create_program;
    table->rtc_compile_program = library->nvrtcCompileProgram;
    table->rtc_get_log_size = library->nvrtcGetProgramLogSize;
    table->rtc_get_log = library->nvrtcGetProgramLog;
    table->rtc_get_code_size = cuda_rtc_get_code_size;
    table->rtc_get_code = cuda_rtc_get_code;
    table->rtc_destroy_program = library->nvrtcDestroyProgram;
  } else {
    rdm__no_compiler_fill(table);
  }
  table->error_name = cuda_error_name;
  table->error_string = cuda_error_string;
  table->rtc_error_string = cuda_rtc_error_string;
  table->call_name = cuda_call_name;
  table->kernel_argument_count = cuda_kernel_argument_count;
  table->kernel_argument_size = cuda_kernel_argument_size;
  table->name = "cuda";
  table->architecture_option = "--gpu-architecture=";
  table->compiles_one_at_a_time = false;
  table->fault_is_process_wide = false;
  memcpy(table->runtime_path, library->runtime_path, sizeof table->runtime_path);
  memcpy(table->compiler_path, library->compiler_path, sizeof table->compiler_path);
}

static bool fail_denied_nodes(bool try_open) {
  static const char *const nodes[] = {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia0"};
  for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
    char text[1024];
    if (!rdm__loader_node_denied(nodes[i], try_open, text, sizeof text)) continue;
    rdm__fail(RDM_ERROR_PERMISSION, "no permission on NVIDIA's device nodes: %s", text);
    return true;
  }
  return false;
}

/* The first call into the driver, and whether this runtime works with it. Makes no context on any device. */
static rdm_status initialize(const rdm__cuda_library *library) {
  int error = library->cuInit(0);
  const char *call = "cuInit";
  if (error == RDM_HIP_NO_DEVICE) return fail_denied_nodes(true) ? RDM_ERROR_PERMISSION : RDM_OK;
  int runtime = 0;
  int driver = 0;
  (void)library->cudaRuntimeGetVersion(&runtime);
  (void)library->cuDriverGetVersion(&driver);
  int major = runtime / 1000;
  if (major < RDM__CUDA_OLDEST_MAJOR || major > RDM__CUDA_NEWEST_MAJOR || major > driver / 1000) {
    return rdm__fail(RDM_ERROR_DRIVER_VERSION,
                     "the CUDA runtime %s is of version %d, and %d to %d are supported; NVIDIA's driver (%s) carries "
                     "up to %d; install a fitting CUDA, or update the driver",
                     library->runtime_path, runtime, RDM__CUDA_OLDEST_MAJOR, RDM__CUDA_NEWEST_MAJOR,
                     library->driver_path, driver);
  }
  if (error == RDM_HIP_SUCCESS) {
    int count = 0;
    call = "cudaGetDeviceCount";
    error = library->cudaGetDeviceCount(&count);
    if (error == RDM_HIP_SUCCESS) return RDM_OK;
    if (library->cudaPeekAtLastError() == error) (void)library->cudaGetLastError();
    if (error == RDM_HIP_NO_DEVICE) return RDM_OK;
  }
  if (fail_denied_nodes(true)) return RDM_ERROR_PERMISSION;
  const char *name = library->cudaGetErrorName(error);
  const char *text = library->cudaGetErrorString(error);
  rdm_status status = error == RDM_HIP_INSUFFICIENT_DRIVER ? RDM_ERROR_DRIVER_VERSION : RDM_ERROR_DRIVER;
  return rdm__fail_driver(status, error, name, call, -1,
                          "NVIDIA's driver (%s) with the runtime %s did not initialize: %s returned %d (%s: %s); see "
                          "what nvidia-smi says",
                          library->driver_path, library->runtime_path, call, error, name != NULL ? name : "",
                          text != NULL ? text : "");
}

rdm_status rdm__cuda_open(const rdm__driver **out_driver) {
  if (state != NULL) {
    *out_driver = &state->table;
    return RDM_OK;
  }
  cuda_state *made = calloc(1, sizeof *made);
  if (made == NULL) return rdm__fail(RDM_ERROR_OUT_OF_MEMORY, "no memory for the driver cuda");
  rdm_status status = rdm__cuda_library_open(&made->library);
  if (status == RDM_OK) status = initialize(&made->library);
  if (status != RDM_OK) {
    free(made);
    return status;
  }
  fill_table(made);
  state = made;
  *out_driver = &made->table;
  return RDM_OK;
}

#else

rdm_status rdm__cuda_open(const rdm__driver **out_driver) {
  (void)out_driver;
  return rdm__fail(RDM_ERROR_UNKNOWN_DRIVER, "the driver cuda was not built in: build with the feature cuda");
}

#endif
