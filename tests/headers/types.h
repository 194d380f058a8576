/* Our prototypes made of AMD's own types, so that they can be compared with AMD's declarations exactly. */
#ifndef RDM_TESTS_HEADERS_TYPES_H
#define RDM_TESTS_HEADERS_TYPES_H

#include <hip/hip_runtime_api.h>
#include <hip/hiprtc.h>

#include "driver/driver.h"
#include "driver/hip_layout.h"

#define RDM__HIP_TYPES_GIVEN
typedef hipError_t rdm__hip_error;
typedef hipMemcpyKind rdm__hip_copy_kind;
typedef hipStream_t rdm__hip_stream;
typedef hipEvent_t rdm__hip_event;
typedef hipModule_t rdm__hip_module;
typedef hipFunction_t rdm__hip_function;
typedef hipStreamCaptureMode rdm__hip_capture_mode;
typedef hipStreamCaptureStatus rdm__hip_capture_status;
typedef hipGraph_t rdm__hip_graph;
typedef hipGraphExec_t rdm__hip_graph_exec;
typedef hiprtcResult rdm__hiprtc_result;
typedef hiprtcProgram rdm__hiprtc_program;

#include "driver/hip_prototypes.h"

#define SAME_TYPE(what, a, b) _Static_assert(__builtin_types_compatible_p(a, b), "AMD declares otherwise: " what)
#define SAME_NUMBER(ours, theirs) _Static_assert((long)(ours) == (long)(theirs), #ours " is not " #theirs)

#endif
