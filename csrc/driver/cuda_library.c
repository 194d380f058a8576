#ifdef RDM_DRIVER_CUDA

#include "cuda_library.h"

#include "../status.h"
#include "loader.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char driver_name[] = "cuda";

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* ---- libcuda --------------------------------------------------------------------------------------------------- */

static rdm_status find_driver(rdm__cuda_library *library, int *out_major) {
  static const char *const sonames[] = {"libcuda.so.1", NULL};
  const rdm__loader_symbol symbols[] = {
#define X(name, result, parameters) {#name, &library->name, true},
      RDM__CUDA_DRIVER_CALLS(X)
#undef X
#define X(name, result, parameters) {#name, &library->name, false},
          RDM__CUDA_DRIVER_OPTIONAL(X)
#undef X
  };
  char tried[1024];
  void *handle = rdm__loader_find_loaded(driver_name, "libcuda.so", sonames);
  if (handle == NULL) handle = rdm__loader_open(driver_name, sonames[0]);
  if (handle == NULL) {
    rdm__loader_list(driver_name, "libcuda.so", tried, sizeof tried);
    return rdm__fail(RDM_ERROR_NO_DRIVER,
                     "NVIDIA's driver library libcuda.so.1 was not found or could not be loaded; it comes with "
                     "NVIDIA's kernel driver (in a container, with the NVIDIA container toolkit); tried: %s",
                     tried);
  }
  rdm__loader_path(handle, false, library->driver_path, sizeof library->driver_path);
  const char *missing = NULL;
  if (!rdm__loader_resolve(handle, symbols, COUNT_OF(symbols), &missing)) {
    rdm__loader_reject(driver_name, handle, "%s lacks the symbol %s", library->driver_path, missing);
    return rdm__fail(RDM_ERROR_NO_DRIVER, "NVIDIA's driver library %s lacks the symbol %s; update NVIDIA's driver",
                     library->driver_path, missing);
  }
  int version = 0;
  if (library->cuDriverGetVersion(&version) != 0) version = 0;
  *out_major = version / 1000;
  if (*out_major < RDM__CUDA_OLDEST_MAJOR) {
    rdm__loader_reject(driver_name, handle, "%s carries CUDA up to %d.%d", library->driver_path, version / 1000,
                       version % 1000 / 10);
    return rdm__fail(RDM_ERROR_DRIVER_VERSION,
                     "NVIDIA's driver (%s) carries CUDA up to %d.%d, and %d or later is needed; update NVIDIA's driver",
                     library->driver_path, version / 1000, version % 1000 / 10, RDM__CUDA_OLDEST_MAJOR);
  }
  return RDM_OK;
}

/* ---- libcudart ------------------------------------------------------------------------------------------------- */

typedef enum verdict { TAKEN, NO_LIBRARY, NO_SYMBOL, WRONG_VERSION } verdict;

typedef struct runtime_search {
  rdm__cuda_library *library;
  int driver_major;
  verdict worst;
} runtime_search;

static bool take_runtime(void *handle, runtime_search *search) {
  rdm__cuda_library *library = search->library;
  const rdm__loader_symbol symbols[] = {
#define X(name, result, parameters) {#name, &library->name, true},
      RDM__CUDART_CALLS(X)
#undef X
  };
  if (handle == NULL) return false;
  rdm__loader_path(handle, false, library->runtime_path, sizeof library->runtime_path);
  int major = rdm__loader_major(handle);
  /* A plain name and an explicit path may be any version. A runtime older than the driver works, never a newer one. */
  bool supported = major < 0 || (major >= RDM__CUDA_OLDEST_MAJOR && major <= RDM__CUDA_NEWEST_MAJOR);
  if (!supported || major > search->driver_major) {
    if (search->worst < WRONG_VERSION) search->worst = WRONG_VERSION;
    rdm__loader_reject(
        driver_name, handle, "%s is of major version %d, and %d to %d are supported, with this driver %d",
        library->runtime_path, major, RDM__CUDA_OLDEST_MAJOR, RDM__CUDA_NEWEST_MAJOR, search->driver_major);
    return false;
  }
  const char *missing = NULL;
  if (!rdm__loader_resolve(handle, symbols, COUNT_OF(symbols), &missing)) {
    if (search->worst < NO_SYMBOL) search->worst = NO_SYMBOL;
    rdm__loader_reject(driver_name, handle, "%s lacks the symbol %s", library->runtime_path, missing);
    return false;
  }
  return true;
}

static const char *const runtime_sonames[] = {"libcudart.so.13", "libcudart.so.12", NULL};

/* Tries the names in a folder, null: the names alone. */
static void *search_runtime(const char *folder, runtime_search *search) {
  if (folder != NULL && access(folder, X_OK) != 0) {
    char name[PATH_MAX];
    snprintf(name, sizeof name, "%s/libcudart.so", folder);
    rdm__loader_note(driver_name, name, "there is no folder %s", folder);
    return NULL;
  }
  for (size_t i = 0; runtime_sonames[i] != NULL; i++) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s%s%s", folder != NULL ? folder : "", folder != NULL ? "/" : "", runtime_sonames[i]);
    void *handle = rdm__loader_open(driver_name, path);
    if (take_runtime(handle, search)) return handle;
  }
  return NULL;
}

static void *search_variable(const char *variable, const char *subfolder, runtime_search *search) {
  const char *value = rdm__loader_variable(variable);
  if (value == NULL) return NULL;
  char folder[PATH_MAX - 32];
  snprintf(folder, sizeof folder, "%s/%s", value, subfolder);
  return search_runtime(folder, search);
}

static rdm_status fail_runtime(const runtime_search *search, const char *what, const char *remedy) {
  char tried[1300];
  /* An explicit file's name is free, so the list is of everything but libcuda, which was found. */
  rdm__loader_list(driver_name, rdm__loader_variable("RDM_CUDART_LIBRARY") != NULL ? "" : "libcudart", tried,
                   sizeof tried);
  return rdm__fail(search->worst == WRONG_VERSION ? RDM_ERROR_DRIVER_VERSION : RDM_ERROR_NO_DRIVER,
                   "%s: %s; %s; tried: %s", what,
                   search->worst == WRONG_VERSION ? "its version is not supported or is newer than the driver's"
                   : search->worst == NO_SYMBOL   ? "it lacks an entry point"
                                                  : "it was not found or could not be loaded",
                   remedy, tried);
}

static rdm_status find_runtime(runtime_search *search, void **out_handle) {
  const char *explicit_path = rdm__loader_variable("RDM_CUDART_LIBRARY");
  void *handle = rdm__loader_find_loaded(driver_name, "libcudart.so", runtime_sonames);
  if (handle != NULL) {
    if (explicit_path != NULL) {
      rdm__loader_note(driver_name, explicit_path,
                       "not opened: the process has a CUDA runtime loaded already, which wins");
    }
    *out_handle = handle;
    if (take_runtime(handle, search)) return RDM_OK;
    return fail_runtime(search, "the CUDA runtime that this process has loaded can not be used",
                        "run with CUDA 12 or 13 and a driver that carries it");
  }
  if (explicit_path != NULL) {
    *out_handle = rdm__loader_open(driver_name, explicit_path);
    if (take_runtime(*out_handle, search)) return RDM_OK;
    return fail_runtime(search, "RDM_CUDART_LIBRARY names a library that can not be used",
                        "correct it, or unset it to search the usual places");
  }
  handle = search_variable("CUDA_HOME", "lib64", search);
  if (handle == NULL) handle = search_variable("CUDA_PATH", "lib64", search);
  if (handle == NULL) handle = search_runtime(NULL, search);
  if (handle == NULL) handle = search_runtime("/usr/local/cuda/lib64", search);
  *out_handle = handle;
  if (handle != NULL) return RDM_OK;
  return fail_runtime(search, "the CUDA runtime (libcudart)",
                      "install CUDA 12 or 13, or set CUDA_HOME to its folder or RDM_CUDART_LIBRARY to the file");
}

/* ---- nvrtc ----------------------------------------------------------------------------------------------------- */

static bool take_compiler(void *handle, int major, rdm__cuda_library *library) {
  const rdm__loader_symbol symbols[] = {
#define X(name, result, parameters) {#name, &library->name, true},
      RDM__NVRTC_CALLS(X)
#undef X
  };
  if (handle == NULL) return false;
  char path[sizeof library->compiler_path];
  rdm__loader_path(handle, false, path, sizeof path);
  int own_major = rdm__loader_major(handle);
  if (own_major != major) {
    rdm__loader_reject(driver_name, handle, "%s is of major version %d, and the runtime of %d", path, own_major, major);
    return false;
  }
  const char *missing = NULL;
  if (!rdm__loader_resolve(handle, symbols, COUNT_OF(symbols), &missing)) {
    rdm__loader_reject(driver_name, handle, "%s lacks the symbol %s", path, missing);
    return false;
  }
  memcpy(library->compiler_path, path, sizeof path);
  return true;
}

/* `folder` is where the name is looked for, in front of `subfolder`. */
static bool search_compiler(const char *folder, const char *subfolder, int major, rdm__cuda_library *library) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s%slibnvrtc.so.%d", folder, subfolder, major);
  return take_compiler(rdm__loader_open(driver_name, path), major, library);
}

static bool search_beside(void *runtime, bool as_named, const char *subfolder, int major, rdm__cuda_library *library) {
  char folder[PATH_MAX - 128];
  rdm__loader_path(runtime, as_named, folder, sizeof folder);
  char *slash = strrchr(folder, '/');
  if (slash == NULL) return false;
  slash[1] = '\0';
  return search_compiler(folder, subfolder, major, library);
}

static bool find_compiler_of(void *runtime, int major, rdm__cuda_library *library) {
  char soname[32];
  snprintf(soname, sizeof soname, "libnvrtc.so.%d", major);
  const char *const sonames[] = {soname, NULL};
  if (take_compiler(rdm__loader_find_loaded(driver_name, "libnvrtc.so", sonames), major, library)) return true;
  if (search_beside(runtime, true, "", major, library) || search_beside(runtime, false, "", major, library))
    return true;
  /* The layout of NVIDIA's Python packages of CUDA 12: a folder for each library. */
  if (search_beside(runtime, true, "../../cuda_nvrtc/lib/", major, library)) return true;
  const char *const variables[] = {"CUDA_HOME", "CUDA_PATH"};
  for (size_t i = 0; i < COUNT_OF(variables); i++) {
    const char *value = rdm__loader_variable(variables[i]);
    if (value != NULL && search_compiler(value, "/lib64/", major, library)) return true;
  }
  return search_compiler("", "", major, library) || search_compiler("/usr/local/cuda/lib64/", "", major, library);
}

/*
 * nvrtc opens a library of built-in functions by its file name alone. NVIDIA's Python packages keep it beside nvrtc,
 * where the loader does not look; once it is loaded from there, nvrtc finds it.
 */
static void load_builtins(rdm__cuda_library *library) {
  int major = 0;
  int minor = 0;
  char path[PATH_MAX];
  if (library->nvrtcVersion(&major, &minor) != 0) return;
  snprintf(path, sizeof path, "%s", library->compiler_path);
  char *slash = strrchr(path, '/');
  if (slash == NULL) return;
  size_t left = sizeof path - (size_t)(slash + 1 - path);
  if (snprintf(slash + 1, left, "libnvrtc-builtins.so.%d.%d", major, minor) >= (int)left) return;
  if (access(path, R_OK) == 0) (void)rdm__loader_open(driver_name, path);
}

static void find_compiler(void *runtime, rdm__cuda_library *library) {
  int major = rdm__loader_major(runtime);
  if (major < 0) {
    int version = 0;
    major = library->cudaRuntimeGetVersion(&version) == 0 ? version / 1000 : -1;
  }
  library->has_compiler = find_compiler_of(runtime, major, library);
  if (library->has_compiler) {
    load_builtins(library);
    return;
  }
  char tried[800];
  rdm__loader_list(driver_name, "libnvrtc", tried, sizeof tried);
  snprintf(library->compiler_text, sizeof library->compiler_text,
           "no nvrtc of the version of %s (libnvrtc.so.%d) was found, so nothing can be compiled at run time; install "
           "it beside the runtime; tried: %s",
           library->runtime_path, major, tried);
}

rdm_status rdm__cuda_library_open(rdm__cuda_library *library) {
  memset(library, 0, sizeof *library);
  rdm__loader_begin(driver_name);
  runtime_search search = {.library = library, .driver_major = 0, .worst = NO_LIBRARY};
  rdm_status status = find_driver(library, &search.driver_major);
  if (status != RDM_OK) return status;
  void *runtime = NULL;
  status = find_runtime(&search, &runtime);
  if (status != RDM_OK) return status;
  find_compiler(runtime, library);
  return RDM_OK;
}

#else

/* ISO C wants a declaration in every file. */
typedef int rdm__cuda_library_is_not_built_in;

#endif
