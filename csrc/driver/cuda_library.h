/* NVIDIA's libraries: the runtime, the driver's own and the run-time compiler; and the entry points in them. */
#ifndef RDM_CUDA_LIBRARY_H
#define RDM_CUDA_LIBRARY_H

#include "rocm_device_map.h"

#include <stdbool.h>
#include <stddef.h>

enum { RDM__CUDA_OLDEST_MAJOR = 12, RDM__CUDA_NEWEST_MAJOR = 13 };

/* X(name, result, parameters) with opaque types; results are numbers of cudaError_t, CUresult and nvrtcResult. */
/* clang-format off */
#define RDM__CUDART_CALLS(X) \
  X(cudaRuntimeGetVersion, int, (int *version)) \
  X(cudaDriverGetVersion, int, (int *version)) \
  X(cudaGetDeviceCount, int, (int *count)) \
  X(cudaGetDevice, int, (int *device)) \
  X(cudaSetDevice, int, (int device)) \
  X(cudaSetDeviceFlags, int, (unsigned flags)) \
  X(cudaDeviceGetAttribute, int, (int *value, int attribute, int device)) \
  X(cudaDeviceSynchronize, int, (void)) \
  X(cudaMalloc, int, (void **pointer, size_t size)) \
  X(cudaFree, int, (void *pointer)) \
  X(cudaHostAlloc, int, (void **pointer, size_t size, unsigned flags)) \
  X(cudaFreeHost, int, (void *pointer)) \
  X(cudaMemcpyAsync, int, (void *to, const void *from, size_t size, int kind, void *stream)) \
  X(cudaMemsetAsync, int, (void *to, int value, size_t size, void *stream)) \
  X(cudaStreamCreateWithFlags, int, (void **stream, unsigned flags)) \
  X(cudaStreamDestroy, int, (void *stream)) \
  X(cudaStreamQuery, int, (void *stream)) \
  X(cudaStreamSynchronize, int, (void *stream)) \
  X(cudaStreamWaitEvent, int, (void *stream, void *event, unsigned flags)) \
  X(cudaLaunchHostFunc, int, (void *stream, void (*function)(void *), void *user_data)) \
  X(cudaStreamBeginCapture, int, (void *stream, int mode)) \
  X(cudaStreamEndCapture, int, (void *stream, void **graph)) \
  X(cudaStreamIsCapturing, int, (void *stream, int *status)) \
  X(cudaThreadExchangeStreamCaptureMode, int, (int *mode)) \
  X(cudaGraphDestroy, int, (void *graph)) \
  X(cudaGraphInstantiateWithFlags, int, (void **executable, void *graph, unsigned long long flags)) \
  X(cudaGraphLaunch, int, (void *executable, void *stream)) \
  X(cudaGraphExecDestroy, int, (void *executable)) \
  X(cudaEventCreateWithFlags, int, (void **event, unsigned flags)) \
  X(cudaEventDestroy, int, (void *event)) \
  X(cudaEventRecord, int, (void *event, void *stream)) \
  X(cudaEventQuery, int, (void *event)) \
  X(cudaEventSynchronize, int, (void *event)) \
  X(cudaEventElapsedTime, int, (float *milliseconds, void *start, void *end)) \
  X(cudaPeekAtLastError, int, (void)) \
  X(cudaGetLastError, int, (void)) \
  X(cudaGetErrorName, const char *, (int error)) \
  X(cudaGetErrorString, const char *, (int error))

#define RDM__CUDA_DRIVER_CALLS(X) \
  X(cuInit, int, (unsigned flags)) \
  X(cuDriverGetVersion, int, (int *version)) \
  X(cuDeviceGet, int, (int *device, int ordinal)) \
  X(cuDeviceGetName, int, (char *name, int length, int device)) \
  X(cuDeviceTotalMem_v2, int, (size_t *bytes, int device)) \
  X(cuCtxGetCurrent, int, (void **context)) \
  X(cuModuleLoadData, int, (void **module, const void *image)) \
  X(cuModuleUnload, int, (void *module)) \
  X(cuModuleGetFunction, int, (void **function, void *module, const char *name)) \
  X(cuLaunchKernel, int, (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, \
                          unsigned block_y, unsigned block_z, unsigned shared_memory, void *stream, \
                          void **arguments, void **extra))

/* From CUDA 12.0 and 12.4 on. */
#define RDM__CUDA_DRIVER_OPTIONAL(X) \
  X(cuCtxGetId, int, (void *context, unsigned long long *id)) \
  X(cuFuncGetParamInfo, int, (void *function, size_t index, size_t *offset, size_t *size))

#define RDM__NVRTC_CALLS(X) \
  X(nvrtcVersion, int, (int *major, int *minor)) \
  X(nvrtcGetErrorString, const char *, (int result)) \
  X(nvrtcCreateProgram, int, (void **program, const char *source, const char *name, int header_count, \
                              const char *const *headers, const char *const *header_names)) \
  X(nvrtcCompileProgram, int, (void *program, int option_count, const char *const *options)) \
  X(nvrtcGetProgramLogSize, int, (void *program, size_t *size)) \
  X(nvrtcGetProgramLog, int, (void *program, char *log)) \
  X(nvrtcGetCUBINSize, int, (void *program, size_t *size)) \
  X(nvrtcGetCUBIN, int, (void *program, char *code)) \
  X(nvrtcGetPTXSize, int, (void *program, size_t *size)) \
  X(nvrtcGetPTX, int, (void *program, char *code)) \
  X(nvrtcDestroyProgram, int, (void **program))
/* clang-format on */

typedef struct rdm__cuda_library {
#define X(name, result, parameters) result(*name) parameters;
  RDM__CUDART_CALLS(X)
  RDM__CUDA_DRIVER_CALLS(X)
  RDM__CUDA_DRIVER_OPTIONAL(X)
  RDM__NVRTC_CALLS(X)
#undef X
  bool has_compiler;
  char driver_path[512];
  char runtime_path[512];
  char compiler_path[512];
  /* Why there is no compiler. */
  char compiler_text[1536];
} rdm__cuda_library;

/*
 * Finds and opens the driver's library, a runtime that it can carry and the compiler of that runtime's major. Makes no
 * call but for versions, which need no initialization. A missing compiler is no failure. On failure the
 * thread's last error is set.
 */
rdm_status rdm__cuda_library_open(rdm__cuda_library *library);

#endif
