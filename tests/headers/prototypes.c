/* Each entry point that the driver `hip` looks up, against AMD's declaration of it. Compiled, never run. */
#include "types.h"

#define CHECK(name, result, parameters) SAME_TYPE(#name, __typeof__(&name), result(*) parameters);

RDM__HIP_REQUIRED(CHECK)
RDM__HIP_LAUNCH_HOST_FUNC(CHECK)
RDM__HIP_ADD_CALLBACK(CHECK)
RDM__HIP_CAPTURE(CHECK)
RDM__HIPRTC_REQUIRED(CHECK)

/*
 * What the header calls hipDeviceProp_t is the layout of R0600 from 6 on, and the older one before. The call for the
 * other layout is not declared, so that one has nothing to be compared with.
 */
#if HIP_VERSION_MAJOR >= 6
#define rdm__hip_properties_r0600 hipDeviceProp_t
RDM__HIP_PROPERTIES_R0600(CHECK)
#undef rdm__hip_properties_r0600
#else
#define rdm__hip_properties_5 hipDeviceProp_t
RDM__HIP_PROPERTIES_5(CHECK)
#undef rdm__hip_properties_5
#endif

SAME_TYPE("hipHostFn_t", hipHostFn_t, rdm__hip_host_function);
SAME_TYPE("hipHostFn_t", hipHostFn_t, rdm__host_function);
SAME_TYPE("hipStreamCallback_t", hipStreamCallback_t, rdm__hip_stream_callback);

/*
 * hip.c passes handles as void pointers, and errors, results and kinds as int. So a handle must be a pointer, and an
 * enumeration have an int's size.
 */
#define IS_POINTER(type) \
  _Static_assert(__builtin_classify_type((type)0) == __builtin_classify_type((void *)0), #type " is no pointer")
#define IS_ENUMERATION(type)                                                                                    \
  _Static_assert(sizeof(type) == sizeof(int) && __builtin_classify_type((type)0) == __builtin_classify_type(0), \
                 #type " is no int")

IS_POINTER(hipStream_t);
IS_POINTER(hipEvent_t);
IS_POINTER(hipModule_t);
IS_POINTER(hipFunction_t);
IS_POINTER(hiprtcProgram);
IS_POINTER(hipGraph_t);
IS_ENUMERATION(hipError_t);
IS_ENUMERATION(hipMemcpyKind);
IS_ENUMERATION(hiprtcResult);
IS_ENUMERATION(hipStreamCaptureMode);
IS_ENUMERATION(hipStreamCaptureStatus);
