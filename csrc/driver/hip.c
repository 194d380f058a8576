/* The driver `hip`: AMD's runtime and run-time compiler, found when it is opened. */
#include "driver.h"

#include "../status.h"

#ifdef RDM_DRIVER_HIP

#include "hip_compiler.h"
#include "hip_library.h"
#include "loader.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Made once and kept: queued callbacks and every caller's table point into it. */
typedef struct hip_state {
  rdm__driver table;
  rdm__hip_library library;
} hip_state;

static hip_state *state;

static const char *const call_names[RDM__CALL_COUNT] = {
#define X(field, hip_name, parameters) hip_name,
    RDM__DRIVER_CALLS(X)
#undef X
};

static const char *hip_call_name(rdm__call call) {
  if ((unsigned)call >= RDM__CALL_COUNT) return "unknown call";
  if (call == RDM__CALL_launch_host_function && state->library.hipLaunchHostFunc == NULL) return "hipStreamAddCallback";
  return call_names[call];
}

static const char *hip_error_name(int error) {
  const char *name = state->library.hipGetErrorName(error);
  return name != NULL ? name : "hipErrorUnknown";
}

static const char *hip_error_string(int error) {
  const char *text = state->library.hipGetErrorString(error);
  return text != NULL ? text : "unknown error";
}

/* HIP has no call that tells. */
static int hip_kernel_argument_count(void *function) {
  (void)function;
  return -1;
}

static int hip_kernel_argument_size(void *function, unsigned index) {
  (void)function;
  (void)index;
  return -1;
}

static void copy_text(char *out, size_t capacity, const char *text, size_t text_capacity) {
  size_t length = strnlen(text, text_capacity);
  if (length >= capacity) length = capacity - 1;
  memcpy(out, text, length);
  out[length] = '\0';
}

static int hip_get_device_properties(rdm__device_properties *properties, int device) {
  /* The runtime writes the whole of its own struct, which a later version may have made longer. */
  union {
    rdm__hip_properties_r0600 r0600;
    rdm__hip_properties_5 legacy;
    unsigned char room[8192];
  } raw;
  if (properties == NULL) return RDM_HIP_INVALID_VALUE;
  memset(&raw, 0, sizeof raw);
  if (state->library.hipGetDevicePropertiesR0600 != NULL) {
    int error = state->library.hipGetDevicePropertiesR0600(&raw.r0600, device);
    if (error != RDM_HIP_SUCCESS) return error;
    properties->total_memory_bytes = raw.r0600.total_global_memory;
    properties->multiprocessor_count = raw.r0600.multiprocessor_count;
    properties->warp_size = raw.r0600.warp_size;
    properties->max_threads_per_block = raw.r0600.max_threads_per_block;
    copy_text(properties->name, sizeof properties->name, raw.r0600.name, sizeof raw.r0600.name);
    copy_text(properties->architecture, sizeof properties->architecture, raw.r0600.gcn_arch_name,
              sizeof raw.r0600.gcn_arch_name);
    return RDM_HIP_SUCCESS;
  }
  int error = state->library.hipGetDeviceProperties(&raw.legacy, device);
  if (error != RDM_HIP_SUCCESS) return error;
  properties->total_memory_bytes = raw.legacy.total_global_memory;
  properties->multiprocessor_count = raw.legacy.multiprocessor_count;
  properties->warp_size = raw.legacy.warp_size;
  properties->max_threads_per_block = raw.legacy.max_threads_per_block;
  copy_text(properties->name, sizeof properties->name, raw.legacy.name, sizeof raw.legacy.name);
  copy_text(properties->architecture, sizeof properties->architecture, raw.legacy.gcn_arch_name,
            sizeof raw.legacy.gcn_arch_name);
  return RDM_HIP_SUCCESS;
}

/* What hipStreamAddCallback carries where there is no hipLaunchHostFunc. */
typedef struct host_call {
  rdm__host_function function;
  void *user_data;
} host_call;

static void run_host_call(void *stream, int status, void *user_data) {
  (void)stream;
  host_call call = *(host_call *)user_data;
  free(user_data);
  /* hipLaunchHostFunc calls nothing after an error; hipStreamAddCallback does. */
  if (status == RDM_HIP_SUCCESS) call.function(call.user_data);
}

static int hip_add_host_call(void *stream, rdm__host_function function, void *user_data) {
  if (function == NULL) return RDM_HIP_INVALID_VALUE;
  host_call *call = malloc(sizeof *call);
  if (call == NULL) return RDM_HIP_OUT_OF_MEMORY;
  *call = (host_call){.function = function, .user_data = user_data};
  int error = state->library.hipStreamAddCallback(stream, run_host_call, call, 0);
  if (error != RDM_HIP_SUCCESS) free(call);
  return error;
}

/* ---- For a runtime that captures no stream ---- */

static int no_begin_capture(void *stream, int mode) {
  (void)stream;
  (void)mode;
  return RDM_HIP_NOT_SUPPORTED;
}

static int no_end_capture(void *stream, void **graph) {
  (void)stream;
  (void)graph;
  return RDM_HIP_NOT_SUPPORTED;
}

static int is_never_capturing(void *stream, int *status) {
  (void)stream;
  if (status == NULL) return RDM_HIP_INVALID_VALUE;
  *status = RDM_HIP_CAPTURE_NONE;
  return RDM_HIP_SUCCESS;
}

/* Every mode is as good as any other. */
static int no_capture_mode(int *mode) {
  return mode == NULL ? RDM_HIP_INVALID_VALUE : RDM_HIP_SUCCESS;
}

static int no_graph_instantiate(void **executable, void *graph, unsigned long long flags) {
  (void)executable;
  (void)graph;
  (void)flags;
  return RDM_HIP_NOT_SUPPORTED;
}

static int no_graph_launch(void *executable, void *stream) {
  (void)executable;
  (void)stream;
  return RDM_HIP_NOT_SUPPORTED;
}

/* Of a graph, and of what is made of one. */
static int no_graph_destroy(void *graph) {
  (void)graph;
  return RDM_HIP_NOT_SUPPORTED;
}

static void fill_capture(rdm__driver *table, const rdm__hip_library *library) {
  bool captures = true;
#define X(name, result, parameters) captures = captures && library->name != NULL;
  RDM__HIP_CAPTURE(X)
#undef X
  table->stream_begin_capture = captures ? library->hipStreamBeginCapture : no_begin_capture;
  table->stream_end_capture = captures ? library->hipStreamEndCapture : no_end_capture;
  table->stream_is_capturing = captures ? library->hipStreamIsCapturing : is_never_capturing;
  table->thread_exchange_capture_mode = captures ? library->hipThreadExchangeStreamCaptureMode : no_capture_mode;
  table->graph_destroy = captures ? library->hipGraphDestroy : no_graph_destroy;
  table->graph_instantiate = captures ? library->hipGraphInstantiateWithFlags : no_graph_instantiate;
  table->graph_launch = captures ? library->hipGraphLaunch : no_graph_launch;
  table->graph_exec_destroy = captures ? library->hipGraphExecDestroy : no_graph_destroy;
}

static int hip_module_load_data(void **module, const void *image, size_t image_size) {
  (void)image_size;
  return state->library.hipModuleLoadData(module, image);
}

static int hip_launch_kernel(void *function, const unsigned grid[3], const unsigned block[3], unsigned shared_memory,
                             void *stream, void **arguments) {
  return state->library.hipModuleLaunchKernel(function, grid[0], grid[1], grid[2], block[0], block[1], block[2],
                                              shared_memory, stream, arguments, NULL);
}

static void fill_table(hip_state *made) {
  rdm__driver *table = &made->table;
  const rdm__hip_library *library = &made->library;
  table->init = library->hipInit;
  table->driver_get_version = library->hipDriverGetVersion;
  table->runtime_get_version = library->hipRuntimeGetVersion;
  table->get_device_count = library->hipGetDeviceCount;
  table->get_device = library->hipGetDevice;
  table->set_device = library->hipSetDevice;
  table->set_device_flags = library->hipSetDeviceFlags;
  table->get_device_properties = hip_get_device_properties;
  table->device_synchronize = library->hipDeviceSynchronize;
  table->memory_allocate = library->hipMalloc;
  table->memory_free = library->hipFree;
  table->host_memory_allocate = library->hipHostMalloc;
  table->host_memory_free = library->hipHostFree;
  table->memory_copy_async = library->hipMemcpyAsync;
  table->memory_set_async = library->hipMemsetAsync;
  table->stream_create = library->hipStreamCreateWithFlags;
  table->stream_destroy = library->hipStreamDestroy;
  table->stream_query = library->hipStreamQuery;
  table->stream_synchronize = library->hipStreamSynchronize;
  table->stream_wait_event = library->hipStreamWaitEvent;
  table->launch_host_function = library->hipLaunchHostFunc != NULL ? library->hipLaunchHostFunc : hip_add_host_call;
  fill_capture(table, library);
  table->event_create = library->hipEventCreateWithFlags;
  table->event_destroy = library->hipEventDestroy;
  table->event_record = library->hipEventRecord;
  table->event_query = library->hipEventQuery;
  table->event_synchronize = library->hipEventSynchronize;
  table->event_elapsed_time = library->hipEventElapsedTime;
  table->module_load_data = hip_module_load_data;
  table->module_unload = library->hipModuleUnload;
  table->module_get_function = library->hipModuleGetFunction;
  table->launch_kernel = hip_launch_kernel;
  table->peek_at_last_error = library->hipPeekAtLastError;
  table->get_last_error = library->hipGetLastError;
  rdm__hip_compiler_fill(table, library);
  table->error_name = hip_error_name;
  table->error_string = hip_error_string;
  table->call_name = hip_call_name;
  table->kernel_argument_count = hip_kernel_argument_count;
  table->kernel_argument_size = hip_kernel_argument_size;
  table->name = "hip";
  table->compiles_one_at_a_time = true;
  table->fault_is_process_wide = true;
  memcpy(table->runtime_path, library->runtime_path, sizeof table->runtime_path);
  memcpy(table->compiler_path, library->compiler_path, sizeof table->compiler_path);
}

static bool is_amd_node(const char *node) {
  const char *slash = strrchr(node, '/');
  char path[128];
  snprintf(path, sizeof path, "/sys/class/drm/%s/device/vendor", slash != NULL ? slash + 1 : node);
  FILE *file = fopen(path, "re");
  if (file == NULL) return false;
  unsigned vendor = 0;
  bool amd = fscanf(file, "%x", &vendor) == 1 && vendor == 0x1002;
  fclose(file);
  return amd;
}

/* Sets the last error where AMD's device nodes are there and closed to this process. */
static bool fail_denied_nodes(bool try_open) {
  char text[1024];
  bool denied = rdm__loader_node_denied("/dev/kfd", try_open, text, sizeof text);
  glob_t nodes;
  if (!denied && glob("/dev/dri/renderD*", 0, NULL, &nodes) == 0) {
    for (size_t i = 0; !denied && i < nodes.gl_pathc; i++) {
      if (is_amd_node(nodes.gl_pathv[i])) {
        denied = rdm__loader_node_denied(nodes.gl_pathv[i], try_open, text, sizeof text);
      }
    }
    globfree(&nodes);
  }
  if (denied) rdm__fail(RDM_ERROR_PERMISSION, "no permission on AMD's device nodes: %s", text);
  return denied;
}

/* The runtime's first call, and what it tells. */
static rdm_status initialize(const rdm__hip_library *library) {
  if (fail_denied_nodes(false)) return RDM_ERROR_PERMISSION;
  int error = library->hipInit(0);
  /* An error that our own call left pending on this thread is not for the caller to find. */
  if (error != RDM_HIP_SUCCESS && library->hipPeekAtLastError() == error) (void)library->hipGetLastError();
  /* Without a GPU, 5.2 says 101 here and 100 to the count. Both mean that there is none. */
  bool no_device = error == RDM_HIP_NO_DEVICE || error == RDM_HIP_INVALID_DEVICE;
  if (error != RDM_HIP_SUCCESS && fail_denied_nodes(true)) return RDM_ERROR_PERMISSION;
  int version = 0;
  if (library->hipRuntimeGetVersion(&version) == RDM_HIP_SUCCESS) {
    int major = version / 10000000;
    if (major < RDM__HIP_OLDEST_MAJOR || major > RDM__HIP_NEWEST_MAJOR) {
      return rdm__fail(RDM_ERROR_DRIVER_VERSION,
                       "AMD's HIP runtime %s says that its version is %d, of major %d, and %d to %d are supported; "
                       "install a ROCm of these versions or name its library in RDM_HIP_LIBRARY",
                       library->runtime_path, version, major, RDM__HIP_OLDEST_MAJOR, RDM__HIP_NEWEST_MAJOR);
    }
  } else {
    (void)library->hipGetLastError();
  }
  if (error == RDM_HIP_SUCCESS || no_device) return RDM_OK;
  const char *name = library->hipGetErrorName(error);
  const char *text = library->hipGetErrorString(error);
  rdm_status status = error == RDM_HIP_INSUFFICIENT_DRIVER ? RDM_ERROR_DRIVER_VERSION : RDM_ERROR_DRIVER;
  return rdm__fail_driver(status, error, name, "hipInit", -1,
                          "AMD's HIP runtime %s did not initialize: hipInit returned %d (%s: %s); see the kernel log "
                          "for amdgpu, and whether the kernel driver fits this ROCm",
                          library->runtime_path, error, name != NULL ? name : "", text != NULL ? text : "");
}

rdm_status rdm__hip_open(const rdm__driver **out_driver) {
  if (state != NULL) {
    *out_driver = &state->table;
    return RDM_OK;
  }
  hip_state *made = calloc(1, sizeof *made);
  if (made == NULL) return rdm__fail(RDM_ERROR_OUT_OF_MEMORY, "no memory for the driver hip");
  rdm_status status = rdm__hip_library_open(&made->library);
  /* Once it was called, the library stays loaded: its threads may run in it. */
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

rdm_status rdm__hip_open(const rdm__driver **out_driver) {
  (void)out_driver;
  return rdm__fail(RDM_ERROR_UNKNOWN_DRIVER, "the driver hip was not built in: build with the feature rocm");
}

#endif
