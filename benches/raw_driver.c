#include "raw_driver.h"

#include "runtime.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t raw_lock = PTHREAD_MUTEX_INITIALIZER;
static rdm__bench_raw raw;
static bool raw_is_found;

/* ---- The simulated driver -------------------------------------------------------------------------------------- */

static const rdm__driver *simulated;
/* The image that is being loaded, whose size HIP's call does not take. Under raw_lock. */
static size_t image_size;

static int sim_module_load(void **module, const void *image) {
  return simulated->module_load_data(module, image, image_size);
}

static int sim_launch_kernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                             unsigned block_y, unsigned block_z, unsigned shared_memory, void *stream, void **arguments,
                             void **extra) {
  (void)extra;
  const unsigned grid[3] = {grid_x, grid_y, grid_z};
  const unsigned block[3] = {block_x, block_y, block_z};
  return simulated->launch_kernel(function, grid, block, shared_memory, stream, arguments);
}

static bool find_simulated(rdm__bench_state *state) {
  rdm_status status = rdm__runtime_enter(&simulated);
  rdm__bench_check(state, status, "looking for the simulated driver");
  if (status != RDM_OK) return false;
  raw = (rdm__bench_raw){
      .set_device = simulated->set_device,
      .stream_create = simulated->stream_create,
      .stream_destroy = simulated->stream_destroy,
      .stream_synchronize = simulated->stream_synchronize,
      .event_create = simulated->event_create,
      .event_destroy = simulated->event_destroy,
      .event_record = simulated->event_record,
      .event_query = simulated->event_query,
      .memory_allocate = simulated->memory_allocate,
      .memory_free = simulated->memory_free,
      .host_memory_allocate = simulated->host_memory_allocate,
      .host_memory_free = simulated->host_memory_free,
      .memory_copy_async = simulated->memory_copy_async,
      .module_load = sim_module_load,
      .module_get_function = simulated->module_get_function,
      .launch_kernel = sim_launch_kernel,
      .stream_begin_capture = simulated->stream_begin_capture,
      .stream_end_capture = simulated->stream_end_capture,
      .graph_instantiate = simulated->graph_instantiate,
      .graph_launch = simulated->graph_launch,
      .graph_destroy = simulated->graph_destroy,
      .graph_exec_destroy = simulated->graph_exec_destroy,
      .is_simulated = true,
  };
  return true;
}

/* ---- A real driver --------------------------------------------------------------------------------------------- */

typedef struct symbol {
  void *slot;
  const char *hip;
  const char *cuda;
  /* Where CUDA has it: in the driver's own library, or else in the runtime. */
  bool in_cuda_driver;
} symbol;

/* The runtime is loaded by now, so the loader gives that very library. */
static void *open_library(rdm__bench_state *state, const char *name) {
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) snprintf(state->error, sizeof state->error, "can not open the driver's library: %s", dlerror());
  return library;
}

static bool find_real(rdm__bench_state *state, const rdm_driver_info *info) {
  const symbol symbols[] = {
      {&raw.set_device, "hipSetDevice", "cudaSetDevice", false},
      {&raw.stream_create, "hipStreamCreateWithFlags", "cudaStreamCreateWithFlags", false},
      {&raw.stream_destroy, "hipStreamDestroy", "cudaStreamDestroy", false},
      {&raw.stream_synchronize, "hipStreamSynchronize", "cudaStreamSynchronize", false},
      {&raw.event_create, "hipEventCreateWithFlags", "cudaEventCreateWithFlags", false},
      {&raw.event_destroy, "hipEventDestroy", "cudaEventDestroy", false},
      {&raw.event_record, "hipEventRecord", "cudaEventRecord", false},
      {&raw.event_query, "hipEventQuery", "cudaEventQuery", false},
      {&raw.memory_allocate, "hipMalloc", "cudaMalloc", false},
      {&raw.memory_free, "hipFree", "cudaFree", false},
      {&raw.host_memory_allocate, "hipHostMalloc", "cudaHostAlloc", false},
      {&raw.host_memory_free, "hipHostFree", "cudaFreeHost", false},
      {&raw.memory_copy_async, "hipMemcpyAsync", "cudaMemcpyAsync", false},
      {&raw.module_load, "hipModuleLoadData", "cuModuleLoadData", true},
      {&raw.module_get_function, "hipModuleGetFunction", "cuModuleGetFunction", true},
      {&raw.launch_kernel, "hipModuleLaunchKernel", "cuLaunchKernel", true},
      {&raw.stream_begin_capture, "hipStreamBeginCapture", "cudaStreamBeginCapture", false},
      {&raw.stream_end_capture, "hipStreamEndCapture", "cudaStreamEndCapture", false},
      {&raw.graph_instantiate, "hipGraphInstantiateWithFlags", "cudaGraphInstantiateWithFlags", false},
      {&raw.graph_launch, "hipGraphLaunch", "cudaGraphLaunch", false},
      {&raw.graph_destroy, "hipGraphDestroy", "cudaGraphDestroy", false},
      {&raw.graph_exec_destroy, "hipGraphExecDestroy", "cudaGraphExecDestroy", false},
  };
  bool is_cuda = strcmp(info->name, "cuda") == 0;
  void *runtime = open_library(state, info->runtime_path);
  void *driver = is_cuda ? open_library(state, "libcuda.so.1") : runtime;
  if (runtime == NULL || driver == NULL) return false;
  for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
    const char *name = is_cuda ? symbols[i].cuda : symbols[i].hip;
    void *address = dlsym(symbols[i].in_cuda_driver ? driver : runtime, name);
    if (address == NULL) {
      snprintf(state->error, sizeof state->error, "the driver's library lacks %s", name);
      return false;
    }
    memcpy(symbols[i].slot, &address, sizeof address);
  }
  return true;
}

static bool find(rdm__bench_state *state) {
  rdm_driver_info info = {.struct_size = sizeof info};
  rdm_status status = rdm_get_driver_info(&info);
  rdm__bench_check(state, status, "looking for the driver");
  if (status != RDM_OK) return false;
  return strcmp(info.name, "sim") == 0 ? find_simulated(state) : find_real(state, &info);
}

const rdm__bench_raw *rdm__bench_raw_begin(rdm__bench_state *state) {
  /* The device is built by the library, as in every other design of the same run. */
  rdm_device device;
  rdm_status status = rdm_device_get(state->device_index, &device);
  rdm__bench_check(state, status, "building the device");
  if (status != RDM_OK) return NULL;
  pthread_mutex_lock(&raw_lock);
  if (!raw_is_found) raw_is_found = find(state);
  bool found = raw_is_found;
  pthread_mutex_unlock(&raw_lock);
  if (!found) return NULL;
  int error = raw.set_device(state->device_index);
  rdm__bench_check_raw(state, error, "making the device current");
  return error == RDM__RAW_SUCCESS ? &raw : NULL;
}

/* ---- Kernels --------------------------------------------------------------------------------------------------- */

typedef struct loaded {
  const char *source;
  int32_t device_index;
  void *module;
} loaded;

/* Under raw_lock. */
static loaded modules[16];
static size_t module_count;

static void *load(rdm__bench_state *state, const char *source) {
  for (size_t i = 0; i < module_count; i++) {
    if (modules[i].device_index == state->device_index && strcmp(modules[i].source, source) == 0) {
      return modules[i].module;
    }
  }
  rdm_device device;
  rdm_device_info info = {.struct_size = sizeof info};
  rdm_status status = rdm_device_get(state->device_index, &device);
  if (status == RDM_OK) status = rdm_device_get_info(device, &info);
  const rdm_module_source text = {.struct_size = sizeof text, .name = "rdm_bench", .source = source};
  const void *code = NULL;
  if (status == RDM_OK) status = rdm_code_get(info.architecture, &text, &code, &image_size);
  rdm__bench_check(state, status, "compiling a kernel");
  if (status != RDM_OK) return NULL;
  void *module = NULL;
  int error = raw.module_load(&module, code);
  rdm__bench_check_raw(state, error, "loading a kernel");
  if (error != RDM__RAW_SUCCESS || module_count == sizeof modules / sizeof modules[0]) return NULL;
  modules[module_count++] = (loaded){.source = source, .device_index = state->device_index, .module = module};
  return module;
}

void *rdm__bench_raw_kernel(rdm__bench_state *state, const char *source, const char *kernel) {
  pthread_mutex_lock(&raw_lock);
  void *module = load(state, source);
  void *function = NULL;
  if (module != NULL) {
    rdm__bench_check_raw(state, raw.module_get_function(&function, module, kernel), "finding a kernel");
  }
  pthread_mutex_unlock(&raw_lock);
  return function;
}
