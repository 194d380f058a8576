#include "driver/sim/module.h"

#include "driver/sim/device.h"
#include "driver/sim/kernel_guard.h"
#include "driver/sim/object.h"
#include "driver/sim/state.h"
#include "driver/sim/thread.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct rdm__sim_module {
  rdm__sim_object object;
  void *library;
  /* Guards the list of kernels that were asked for. */
  pthread_mutex_t lock;
  struct named_function *functions;
  bool unloaded;
};

struct rdm__sim_function {
  rdm__sim_object object;
  rdm__sim_module *module;
  const rdm__sim_kernel *kernel;
};

/* A kernel has one handle for the life of its module. */
typedef struct named_function {
  struct named_function *next;
  void *handle;
  char name[];
} named_function;

static void destroy_module(rdm__sim_object *object) {
  rdm__sim_module *module = (rdm__sim_module *)object;
  while (module->functions != NULL) {
    named_function *next = module->functions->next;
    free(module->functions);
    module->functions = next;
  }
  if (module->library != NULL) dlclose(module->library);
  pthread_mutex_destroy(&module->lock);
  free(module);
}

rdm__sim_module *rdm__sim_module_get(const void *handle) {
  return rdm__sim_handle_get(handle, RDM__SIM_MODULE);
}

int rdm__sim_module_device_index(const rdm__sim_module *module) {
  return module == NULL ? -1 : module->object.device;
}

void rdm__sim_module_release(rdm__sim_module *module) {
  if (module != NULL) rdm__sim_object_release(&module->object);
}

static void destroy_function(rdm__sim_object *object) {
  rdm__sim_function *function = (rdm__sim_function *)object;
  rdm__sim_module_release(function->module);
  free(function);
}

rdm__sim_function *rdm__sim_function_get(const void *handle) {
  return rdm__sim_handle_get(handle, RDM__SIM_FUNCTION);
}

void rdm__sim_function_retain(rdm__sim_function *function) {
  rdm__sim_object_retain(&function->object);
}

void rdm__sim_function_release(rdm__sim_function *function) {
  if (function != NULL) rdm__sim_object_release(&function->object);
}

int rdm__sim_function_device_index(const rdm__sim_function *function) {
  return function == NULL ? -1 : function->object.device;
}

const rdm__sim_kernel *rdm__sim_function_kernel(const rdm__sim_function *function) {
  return function->kernel;
}

rdm__sim_index *rdm__sim_index_of_thread(void) {
  static _Thread_local rdm__sim_index index;
  return &index;
}

/* ---- Loading --------------------------------------------------------------------------------------------------- */

/* True where the image is whole and one of ours. Sets the size of the shared object in it. */
static bool check_image(const void *image, size_t image_size, size_t *out_size) {
  rdm__sim_code_trailer trailer;
  if (image_size < sizeof trailer) return false;
  size_t size = image_size - sizeof trailer;
  memcpy(&trailer, (const char *)image + size, sizeof trailer);
  if (memcmp(trailer.magic, RDM__SIM_CODE_MAGIC, sizeof trailer.magic) != 0 || trailer.size != size) return false;
  if (size < 4 || memcmp(image,
                         "\x7f"
                         "ELF",
                         4) != 0)
    return false;
  *out_size = size;
  return trailer.checksum == rdm__sim_checksum(image, size);
}

static bool write_all(int descriptor, const char *bytes, size_t size) {
  while (size > 0) {
    ssize_t written = write(descriptor, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes += written;
    size -= (size_t)written;
  }
  return true;
}

/*
 * The loader takes a path that it has seen before for the same library, and descriptor numbers come back. So the path
 * spells a number that does not: each of its bits is "/" or "/.", which name the same folder.
 */
static void unique_path(char *path, size_t size, int descriptor) {
  static atomic_uint loads;
  unsigned number = atomic_fetch_add_explicit(&loads, 1, memory_order_relaxed);
  size_t length = (size_t)snprintf(path, size, "/proc/self/fd");
  for (; number != 0; number >>= 1) {
    path[length++] = '/';
    if ((number & 1) != 0) path[length++] = '.';
  }
  snprintf(path + length, size - length, "/%d", descriptor);
}

static void *load_library(const void *image, size_t size) {
  int descriptor = memfd_create("rdm-sim-module", MFD_CLOEXEC);
  if (descriptor < 0) return NULL;
  void *library = NULL;
  if (write_all(descriptor, image, size)) {
    char path[128];
    unique_path(path, sizeof path, descriptor);
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  }
  close(descriptor);
  return library;
}

/* Checks that the library is one of ours, and gives it what it needs of the driver. */
static bool connect_library(void *library) {
  const int *abi = dlsym(library, RDM__SIM_ABI_SYMBOL);
  rdm__sim_index_function *index = dlsym(library, RDM__SIM_INDEX_SYMBOL);
  if (abi == NULL || *abi != RDM__SIM_KERNEL_ABI || index == NULL) return false;
  *index = rdm__sim_index_of_thread;
  return true;
}

static int load(void **out_module, const void *image, size_t image_size) {
  if (out_module == NULL || image == NULL) return RDM_HIP_INVALID_VALUE;
  rdm__sim_device *device;
  int result = rdm__sim_device_use_current(&device);
  if (result != RDM_HIP_SUCCESS) return result;
  size_t size;
  if (!check_image(image, image_size, &size)) return RDM_HIP_INVALID_IMAGE;
  rdm__sim_module *module = calloc(1, sizeof *module);
  if (module == NULL) return RDM_HIP_OUT_OF_MEMORY;
  rdm__sim_object_init(&module->object, RDM__SIM_MODULE, rdm__sim_device_index(device), destroy_module);
  pthread_mutex_init(&module->lock, NULL);
  rdm__sim_kernel_guard_install();
  module->library = load_library(image, size);
  if (module->library == NULL || !connect_library(module->library)) {
    rdm__sim_module_release(module);
    return RDM_HIP_INVALID_IMAGE;
  }
  void *handle = rdm__sim_handle_add(&module->object);
  if (handle == NULL) {
    rdm__sim_module_release(module);
    return RDM_HIP_OUT_OF_MEMORY;
  }
  *out_module = handle;
  return RDM_HIP_SUCCESS;
}

int rdm__sim_module_load(void **out_module, const void *image, size_t image_size) {
  rdm__sim_state_block *state = rdm__sim_state();
  int others = atomic_fetch_add_explicit(&state->in_compiler, 1, memory_order_acq_rel);
  int result = others > 0 && state->one_compile_at_a_time ? RDM_HIP_UNKNOWN : load(out_module, image, image_size);
  atomic_fetch_sub_explicit(&state->in_compiler, 1, memory_order_acq_rel);
  return result;
}

int rdm__sim_module_unload(const void *handle) {
  rdm__sim_module *module = rdm__sim_handle_remove(handle, RDM__SIM_MODULE);
  if (module == NULL) return RDM_HIP_INVALID_HANDLE;
  pthread_mutex_lock(&module->lock);
  module->unloaded = true;
  named_function *functions = module->functions;
  module->functions = NULL;
  pthread_mutex_unlock(&module->lock);
  while (functions != NULL) {
    named_function *next = functions->next;
    rdm__sim_function_release(rdm__sim_handle_remove(functions->handle, RDM__SIM_FUNCTION));
    free(functions);
    functions = next;
  }
  rdm__sim_module_release(module);
  return RDM_HIP_SUCCESS;
}

/* ---- Kernels --------------------------------------------------------------------------------------------------- */

/* Makes the function of a kernel and adds it to the module's list. Called with the module's lock held. */
static int add_function(rdm__sim_module *module, const char *name, void **out_handle) {
  char symbol[512];
  int length = snprintf(symbol, sizeof symbol, "%s%s", RDM__SIM_KERNEL_PREFIX, name);
  const rdm__sim_kernel *kernel = length < 0 || (size_t)length >= sizeof symbol ? NULL : dlsym(module->library, symbol);
  if (kernel == NULL) return RDM_HIP_NOT_FOUND;
  named_function *named = malloc(sizeof *named + strlen(name) + 1);
  rdm__sim_function *function = calloc(1, sizeof *function);
  if (named == NULL || function == NULL) {
    free(named);
    free(function);
    return RDM_HIP_OUT_OF_MEMORY;
  }
  rdm__sim_object_init(&function->object, RDM__SIM_FUNCTION, module->object.device, destroy_function);
  function->module = module;
  function->kernel = kernel;
  rdm__sim_object_retain(&module->object);
  named->handle = rdm__sim_handle_add(&function->object);
  if (named->handle == NULL) {
    free(named);
    rdm__sim_function_release(function);
    return RDM_HIP_OUT_OF_MEMORY;
  }
  strcpy(named->name, name);
  named->next = module->functions;
  module->functions = named;
  *out_handle = named->handle;
  return RDM_HIP_SUCCESS;
}

int rdm__sim_module_get_function(void **out_function, rdm__sim_module *module, const char *name) {
  if (out_function == NULL || name == NULL) return RDM_HIP_INVALID_VALUE;
  if (module == NULL) return RDM_HIP_INVALID_HANDLE;
  /* HIP refuses a module of another device than the current one. */
  if (module->object.device != rdm__sim_this_thread()->current_device) return RDM_HIP_INVALID_HANDLE;
  int result = RDM_HIP_SUCCESS;
  void *handle = NULL;
  pthread_mutex_lock(&module->lock);
  for (const named_function *named = module->functions; named != NULL && handle == NULL; named = named->next) {
    if (strcmp(named->name, name) == 0) handle = named->handle;
  }
  if (module->unloaded) {
    result = RDM_HIP_INVALID_HANDLE;
  } else if (handle == NULL) {
    result = add_function(module, name, &handle);
  }
  pthread_mutex_unlock(&module->lock);
  if (result == RDM_HIP_SUCCESS) *out_function = handle;
  return result;
}
