/*
 * Our own declarations of AMD's entry points, by name, result and parameters.
 *
 * hip.c makes function pointers of them with opaque types. tests/headers/ makes the same types of AMD's own, and then
 * compares each with AMD's prototype; for that it defines RDM__HIP_TYPES_GIVEN and declares the types itself.
 */
#ifndef RDM_HIP_PROTOTYPES_H
#define RDM_HIP_PROTOTYPES_H

#include <stddef.h>

#ifndef RDM__HIP_TYPES_GIVEN
#include "hip_layout.h"

typedef int rdm__hip_error;
typedef int rdm__hip_copy_kind;
typedef void *rdm__hip_stream;
typedef void *rdm__hip_event;
typedef void *rdm__hip_module;
typedef void *rdm__hip_function;
typedef int rdm__hip_capture_mode;
typedef int rdm__hip_capture_status;
typedef void *rdm__hip_graph;
typedef void *rdm__hip_graph_exec;
typedef int rdm__hiprtc_result;
typedef void *rdm__hiprtc_program;
#endif

typedef void (*rdm__hip_host_function)(void *user_data);
typedef void (*rdm__hip_stream_callback)(rdm__hip_stream stream, rdm__hip_error status, void *user_data);

/* X(name, result, parameters). Every library of the majors 5 to 7 has all of these. */
/* clang-format off */
#define RDM__HIP_REQUIRED(X) \
  X(hipInit, rdm__hip_error, (unsigned int flags)) \
  X(hipDriverGetVersion, rdm__hip_error, (int *version)) \
  X(hipRuntimeGetVersion, rdm__hip_error, (int *version)) \
  X(hipGetDeviceCount, rdm__hip_error, (int *count)) \
  X(hipGetDevice, rdm__hip_error, (int *device)) \
  X(hipSetDevice, rdm__hip_error, (int device)) \
  X(hipSetDeviceFlags, rdm__hip_error, (unsigned flags)) \
  X(hipDeviceSynchronize, rdm__hip_error, (void)) \
  X(hipMalloc, rdm__hip_error, (void **pointer, size_t size)) \
  X(hipFree, rdm__hip_error, (void *pointer)) \
  X(hipHostMalloc, rdm__hip_error, (void **pointer, size_t size, unsigned int flags)) \
  X(hipHostFree, rdm__hip_error, (void *pointer)) \
  X(hipMemcpyAsync, rdm__hip_error, (void *to, const void *from, size_t size, rdm__hip_copy_kind kind, \
                                     rdm__hip_stream stream)) \
  X(hipMemsetAsync, rdm__hip_error, (void *to, int value, size_t size, rdm__hip_stream stream)) \
  X(hipStreamCreateWithFlags, rdm__hip_error, (rdm__hip_stream *stream, unsigned int flags)) \
  X(hipStreamDestroy, rdm__hip_error, (rdm__hip_stream stream)) \
  X(hipStreamQuery, rdm__hip_error, (rdm__hip_stream stream)) \
  X(hipStreamSynchronize, rdm__hip_error, (rdm__hip_stream stream)) \
  X(hipStreamWaitEvent, rdm__hip_error, (rdm__hip_stream stream, rdm__hip_event event, unsigned int flags)) \
  X(hipEventCreateWithFlags, rdm__hip_error, (rdm__hip_event *event, unsigned flags)) \
  X(hipEventDestroy, rdm__hip_error, (rdm__hip_event event)) \
  X(hipEventRecord, rdm__hip_error, (rdm__hip_event event, rdm__hip_stream stream)) \
  X(hipEventQuery, rdm__hip_error, (rdm__hip_event event)) \
  X(hipEventSynchronize, rdm__hip_error, (rdm__hip_event event)) \
  X(hipEventElapsedTime, rdm__hip_error, (float *milliseconds, rdm__hip_event start, rdm__hip_event end)) \
  X(hipModuleLoadData, rdm__hip_error, (rdm__hip_module *module, const void *image)) \
  X(hipModuleUnload, rdm__hip_error, (rdm__hip_module module)) \
  X(hipModuleGetFunction, rdm__hip_error, (rdm__hip_function *function, rdm__hip_module module, const char *name)) \
  X(hipModuleLaunchKernel, rdm__hip_error, (rdm__hip_function function, unsigned int grid_x, unsigned int grid_y, \
                                            unsigned int grid_z, unsigned int block_x, unsigned int block_y, \
                                            unsigned int block_z, unsigned int shared_memory, \
                                            rdm__hip_stream stream, void **arguments, void **extra)) \
  X(hipPeekAtLastError, rdm__hip_error, (void)) \
  X(hipGetLastError, rdm__hip_error, (void)) \
  X(hipGetErrorName, const char *, (rdm__hip_error error)) \
  X(hipGetErrorString, const char *, (rdm__hip_error error))

/* Of each pair, in this order, one is needed. Headers of 5.2 declare hipLaunchHostFunc, which its library lacks. */
#define RDM__HIP_LAUNCH_HOST_FUNC(X) \
  X(hipLaunchHostFunc, rdm__hip_error, (rdm__hip_stream stream, rdm__hip_host_function function, void *user_data))
#define RDM__HIP_ADD_CALLBACK(X) \
  X(hipStreamAddCallback, rdm__hip_error, (rdm__hip_stream stream, rdm__hip_stream_callback callback, \
                                           void *user_data, unsigned int flags))
#define RDM__HIP_PROPERTIES_R0600(X) \
  X(hipGetDevicePropertiesR0600, rdm__hip_error, (rdm__hip_properties_r0600 *properties, int device))
#define RDM__HIP_PROPERTIES_5(X) \
  X(hipGetDeviceProperties, rdm__hip_error, (rdm__hip_properties_5 *properties, int device))

/* Where one is missing the runtime counts as one that captures no stream. */
#define RDM__HIP_CAPTURE(X) \
  X(hipStreamBeginCapture, rdm__hip_error, (rdm__hip_stream stream, rdm__hip_capture_mode mode)) \
  X(hipStreamEndCapture, rdm__hip_error, (rdm__hip_stream stream, rdm__hip_graph *graph)) \
  X(hipStreamIsCapturing, rdm__hip_error, (rdm__hip_stream stream, rdm__hip_capture_status *status)) \
  X(hipThreadExchangeStreamCaptureMode, rdm__hip_error, (rdm__hip_capture_mode *mode)) \
  X(hipGraphDestroy, rdm__hip_error, (rdm__hip_graph graph)) \
  X(hipGraphInstantiateWithFlags, rdm__hip_error, \
    (rdm__hip_graph_exec *executable, rdm__hip_graph graph, unsigned long long flags)) \
  X(hipGraphLaunch, rdm__hip_error, (rdm__hip_graph_exec executable, rdm__hip_stream stream)) \
  X(hipGraphExecDestroy, rdm__hip_error, (rdm__hip_graph_exec executable))

#define RDM__HIPRTC_REQUIRED(X) \
  X(hiprtcVersion, rdm__hiprtc_result, (int *major, int *minor)) \
  X(hiprtcGetErrorString, const char *, (rdm__hiprtc_result result)) \
  X(hiprtcCreateProgram, rdm__hiprtc_result, (rdm__hiprtc_program *program, const char *source, const char *name, \
                                              int header_count, const char **headers, const char **header_names)) \
  X(hiprtcCompileProgram, rdm__hiprtc_result, (rdm__hiprtc_program program, int option_count, \
                                               const char **options)) \
  X(hiprtcGetProgramLogSize, rdm__hiprtc_result, (rdm__hiprtc_program program, size_t *size)) \
  X(hiprtcGetProgramLog, rdm__hiprtc_result, (rdm__hiprtc_program program, char *log)) \
  X(hiprtcGetCodeSize, rdm__hiprtc_result, (rdm__hiprtc_program program, size_t *size)) \
  X(hiprtcGetCode, rdm__hiprtc_result, (rdm__hiprtc_program program, char *code)) \
  X(hiprtcDestroyProgram, rdm__hiprtc_result, (rdm__hiprtc_program *program))
/* clang-format on */

#endif
