#ifdef RDM_DRIVER_HIP

#include "hip_library.h"

#include "../status.h"
#include "loader.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char driver_name[] = "hip";

/* The newest first, and the plain name last: it may name any version, also one that is not supported. */
static const char *const runtime_sonames[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                              "libamdhip64.so", NULL};

/* Why a runtime was not taken, and the worst of it so far: a file of the wrong version tells more than none. */
typedef enum verdict { TAKEN, NO_LIBRARY, NO_SYMBOL, WRONG_VERSION } verdict;

static verdict resolve_runtime(void *handle, rdm__hip_library *library, const char **out_missing) {
  const rdm__loader_symbol symbols[] = {
#define X(name, result, parameters) {#name, &library->name, true},
      RDM__HIP_REQUIRED(X)
#undef X
#define X(name, result, parameters) {#name, &library->name, false},
          RDM__HIP_LAUNCH_HOST_FUNC(X) RDM__HIP_ADD_CALLBACK(X) RDM__HIP_PROPERTIES_R0600(X) RDM__HIP_PROPERTIES_5(X)
              RDM__HIP_CAPTURE(X)
#undef X
  };
  if (!rdm__loader_resolve(handle, symbols, sizeof symbols / sizeof symbols[0], out_missing)) return NO_SYMBOL;
  if (library->hipLaunchHostFunc == NULL && library->hipStreamAddCallback == NULL) {
    *out_missing = "hipLaunchHostFunc";
    return NO_SYMBOL;
  }
  if (library->hipGetDevicePropertiesR0600 == NULL && library->hipGetDeviceProperties == NULL) {
    *out_missing = "hipGetDevicePropertiesR0600";
    return NO_SYMBOL;
  }
  return TAKEN;
}

/* Takes an open library or closes it, with the reason in the report. */
static verdict judge_runtime(void *handle, rdm__hip_library *library) {
  int major = rdm__loader_major(handle);
  if (major >= 0 && (major < RDM__HIP_OLDEST_MAJOR || major > RDM__HIP_NEWEST_MAJOR)) {
    rdm__loader_path(handle, false, library->runtime_path, sizeof library->runtime_path);
    rdm__loader_reject(driver_name, handle, "%s is of major version %d, and %d to %d are supported",
                       library->runtime_path, major, RDM__HIP_OLDEST_MAJOR, RDM__HIP_NEWEST_MAJOR);
    return WRONG_VERSION;
  }
  const char *missing = NULL;
  verdict found = resolve_runtime(handle, library, &missing);
  rdm__loader_path(handle, false, library->runtime_path, sizeof library->runtime_path);
  if (found == NO_SYMBOL) {
    rdm__loader_reject(driver_name, handle, "%s lacks the symbol %s", library->runtime_path, missing);
  }
  return found;
}

/* Tries the names in a folder, null: the names alone. */
static void *search_runtime(const char *folder, rdm__hip_library *library, verdict *worst) {
  if (folder != NULL && access(folder, X_OK) != 0) {
    char name[PATH_MAX];
    snprintf(name, sizeof name, "%s/%s", folder, runtime_sonames[3]);
    rdm__loader_note(driver_name, name, "there is no folder %s", folder);
    return NULL;
  }
  for (size_t i = 0; runtime_sonames[i] != NULL; i++) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s%s%s", folder != NULL ? folder : "", folder != NULL ? "/" : "", runtime_sonames[i]);
    void *handle = rdm__loader_open(driver_name, path);
    if (handle == NULL) continue;
    verdict found = judge_runtime(handle, library);
    if (found == TAKEN) return handle;
    if (found > *worst) *worst = found;
  }
  return NULL;
}

static rdm_status fail_search(verdict worst, const char *where) {
  char tried[1500];
  rdm__loader_list(driver_name, "libamdhip64", tried, sizeof tried);
  if (worst == WRONG_VERSION) {
    return rdm__fail(RDM_ERROR_DRIVER_VERSION,
                     "AMD's HIP runtime %s is of a version that is not supported (%d to %d are); install a ROCm of "
                     "these versions or name its library in RDM_HIP_LIBRARY; tried: %s",
                     where, RDM__HIP_OLDEST_MAJOR, RDM__HIP_NEWEST_MAJOR, tried);
  }
  if (worst == NO_SYMBOL) {
    return rdm__fail(RDM_ERROR_NO_DRIVER,
                     "AMD's HIP runtime %s lacks an entry point; reinstall ROCm, or name a complete libamdhip64 in "
                     "RDM_HIP_LIBRARY; tried: %s",
                     where, tried);
  }
  return rdm__fail(RDM_ERROR_NO_DRIVER,
                   "AMD's HIP runtime %s was not found or could not be loaded; install ROCm, or set ROCM_PATH to its "
                   "folder or RDM_HIP_LIBRARY to the file; tried: %s",
                   where, tried);
}

static rdm_status find_runtime(rdm__hip_library *library, void **out_handle) {
  verdict worst = NO_LIBRARY;
  void *handle = NULL;
  const char *explicit_path = rdm__loader_variable("RDM_HIP_LIBRARY");
  /* Two HIP runtimes in one process do not work, so one that is there is taken or nothing is, whatever
   * RDM_HIP_LIBRARY names. */
  handle = rdm__loader_find_loaded(driver_name, "libamdhip64", runtime_sonames);
  if (handle != NULL) {
    worst = judge_runtime(handle, library);
    if (explicit_path != NULL) {
      rdm__loader_note(driver_name, explicit_path,
                       "not opened: the process has a HIP runtime loaded already, which wins");
    }
    if (worst != TAKEN) return fail_search(worst, "that this process has loaded");
    *out_handle = handle;
    return RDM_OK;
  }
  if (explicit_path != NULL) {
    handle = rdm__loader_open(driver_name, explicit_path);
    worst = handle != NULL ? judge_runtime(handle, library) : NO_LIBRARY;
    if (worst == TAKEN) {
      *out_handle = handle;
      return RDM_OK;
    }
    /* Its file name is free, so the report is told by all of its words. */
    char tried[1024];
    rdm__loader_list(driver_name, "", tried, sizeof tried);
    return rdm__fail(worst == WRONG_VERSION ? RDM_ERROR_DRIVER_VERSION : RDM_ERROR_NO_DRIVER,
                     "RDM_HIP_LIBRARY names a library that can not be used: %s; correct it, or unset it to search the "
                     "usual places",
                     tried);
  }
  const char *rocm_path = rdm__loader_variable("ROCM_PATH");
  if (rocm_path != NULL) {
    char folder[PATH_MAX - 32];
    snprintf(folder, sizeof folder, "%s/lib", rocm_path);
    handle = search_runtime(folder, library, &worst);
  }
  if (handle == NULL) handle = search_runtime(NULL, library, &worst);
  if (handle == NULL) handle = search_runtime("/opt/rocm/lib", library, &worst);
  if (handle == NULL) return fail_search(worst, "(libamdhip64)");
  *out_handle = handle;
  return RDM_OK;
}

static bool resolve_compiler(void *handle, rdm__hip_library *library, const char **out_missing) {
  const rdm__loader_symbol symbols[] = {
#define X(name, result, parameters) {#name, &library->name, true},
      RDM__HIPRTC_REQUIRED(X)
#undef X
  };
  return rdm__loader_resolve(handle, symbols, sizeof symbols / sizeof symbols[0], out_missing);
}

/* Takes a compiler only where its own soname has the runtime's major. */
static bool take_compiler(void *handle, int major, rdm__hip_library *library) {
  if (handle == NULL) return false;
  char path[sizeof library->compiler_path];
  rdm__loader_path(handle, false, path, sizeof path);
  int own_major = rdm__loader_major(handle);
  if (own_major != major) {
    rdm__loader_reject(driver_name, handle, "%s is of major version %d, and the runtime of %d", path, own_major, major);
    return false;
  }
  const char *missing = NULL;
  if (!resolve_compiler(handle, library, &missing)) {
    rdm__loader_reject(driver_name, handle, "%s lacks the symbol %s", path, missing);
    return false;
  }
  memcpy(library->compiler_path, path, sizeof path);
  return true;
}

/* Tries both names beside the runtime's file. */
static bool search_compiler(void *runtime, bool as_named, const char *soname, int major, rdm__hip_library *library) {
  char path[PATH_MAX];
  rdm__loader_path(runtime, as_named, path, sizeof path);
  char *slash = strrchr(path, '/');
  if (slash == NULL) return false;
  const char *const names[] = {soname, "libhiprtc.so"};
  for (size_t i = 0; i < 2; i++) {
    int left = (int)(sizeof path - (size_t)(slash + 1 - path));
    if (snprintf(slash + 1, (size_t)left, "%s", names[i]) >= left) return false;
    if (take_compiler(rdm__loader_open(driver_name, path), major, library)) return true;
  }
  return false;
}

/* Until HIP 5 the compiler is a part of the runtime's library, and HIP 6 still has a copy there. */
static bool use_runtime_as_compiler(void *runtime, rdm__hip_library *library) {
  const char *missing = NULL;
  if (!resolve_compiler(runtime, library, &missing)) {
    rdm__loader_note(driver_name, library->runtime_path, "has no hiprtc: it lacks the symbol %s", missing);
    return false;
  }
  memcpy(library->compiler_path, library->runtime_path, sizeof library->compiler_path);
  return true;
}

static void find_compiler(void *runtime, rdm__hip_library *library) {
  int major = rdm__loader_major(runtime);
  library->has_compiler = true;
  if (major <= 5 && use_runtime_as_compiler(runtime, library)) return;
  if (major >= 0) {
    char soname[64];
    snprintf(soname, sizeof soname, "libhiprtc.so.%d", major);
    const char *const sonames[] = {soname, NULL};
    void *loaded = rdm__loader_find_loaded(driver_name, "libhiprtc.so", sonames);
    if (take_compiler(loaded, major, library)) return;
    if (search_compiler(runtime, true, soname, major, library)) return;
    char named[PATH_MAX];
    char resolved[PATH_MAX];
    rdm__loader_path(runtime, true, named, sizeof named);
    rdm__loader_path(runtime, false, resolved, sizeof resolved);
    if (strcmp(named, resolved) != 0 && search_compiler(runtime, false, soname, major, library)) return;
    if (take_compiler(rdm__loader_open(driver_name, soname), major, library)) return;
    if (major > 5 && use_runtime_as_compiler(runtime, library)) return;
  }
  library->has_compiler = false;
  char tried[800];
  rdm__loader_list(driver_name, "libhiprtc", tried, sizeof tried);
  snprintf(library->compiler_text, sizeof library->compiler_text,
           "no hiprtc of the version of %s was found, so nothing can be compiled at run time; install it beside the "
           "runtime; tried: %s",
           library->runtime_path, tried);
}

rdm_status rdm__hip_library_open(rdm__hip_library *library) {
  memset(library, 0, sizeof *library);
  rdm__loader_begin(driver_name);
  void *runtime = NULL;
  rdm_status status = find_runtime(library, &runtime);
  if (status != RDM_OK) return status;
  find_compiler(runtime, library);
  return RDM_OK;
}

#else

/* ISO C wants a declaration in every file. */
typedef int rdm__hip_library_is_not_built_in;

#endif
