/* AMD's libraries: which files they are, and the entry points in them. */
#ifndef RDM_HIP_LIBRARY_H
#define RDM_HIP_LIBRARY_H

#include "hip_prototypes.h"
#include "rocm_device_map.h"

#include <stdbool.h>

enum { RDM__HIP_OLDEST_MAJOR = 5, RDM__HIP_NEWEST_MAJOR = 7 };

typedef struct rdm__hip_library {
#define X(name, result, parameters) result(*name) parameters;
  RDM__HIP_REQUIRED(X)
  RDM__HIP_LAUNCH_HOST_FUNC(X)
  RDM__HIP_ADD_CALLBACK(X)
  RDM__HIP_PROPERTIES_R0600(X)
  RDM__HIP_PROPERTIES_5(X)
  RDM__HIP_CAPTURE(X)
  RDM__HIPRTC_REQUIRED(X)
#undef X
  bool has_compiler;
  char runtime_path[512];
  char compiler_path[512];
  /* Why there is no compiler. */
  char compiler_text[1536];
} rdm__hip_library;

/*
 * Finds and opens the runtime and the compiler of the same major, and looks everything up. Makes no call into them.
 * A missing compiler is no failure. On failure nothing stays open and the thread's last error is set.
 */
rdm_status rdm__hip_library_open(rdm__hip_library *library);

#endif
