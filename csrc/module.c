#include "module.h"

#include "build_cache.h"
#include "compile.h"
#include "count.h"
#include "log.h"
#include "runtime.h"
#include "status.h"
#include "tally.h"
#include "visit.h"
#include "wait.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct module {
  rdm__object object;
  rdm__device *device;
  void *native;
  char *name;
  rdm_module handle;
  /* A lookup takes no lock. */
  rdm__kernel_table kernels;
  /* Held while the driver is asked for a kernel that is not in the table. */
  rdm__mutex kernels_lock;
} module;

static rdm__handle_table modules = RDM__HANDLE_TABLE(RDM__HANDLE_MODULE, module, NULL);
static rdm__handle_table kernels = RDM__HANDLE_TABLE(RDM__HANDLE_KERNEL, rdm__kernel, NULL);
static rdm__build_cache loaded = RDM__BUILD_CACHE_INIT;

/* How many lookups found a finished module. */
static rdm__tally hits;
static _Thread_local rdm__tally_cell *own_hits;

static void forget(void) {
  own_hits = NULL;
}

/* Where there is no memory for a cell the hit counts as a miss. */
static void count_hit(void) {
  if (own_hits == NULL) own_hits = rdm__tally_join(&hits, forget);
  if (own_hits == NULL) {
    rdm__count(RDM__COUNT_MODULE_MISSES, 1);
  } else {
    rdm__count_alone(&own_hits->count, 1);
  }
}

static rdm_status load_native(rdm__device *device, const char *name, const void *code, size_t code_size_bytes,
                              void **out_native) {
  rdm__capture_guard guard;
  rdm__compiler_enter(device->driver);
  rdm_status status = rdm__visit_begin(device, &guard);
  if (status == RDM_OK) {
    int error = device->driver->module_load_data(out_native, code, code_size_bytes);
    if (error != RDM_HIP_SUCCESS) {
      status = rdm__device_call_failed(device, RDM__CALL_module_load_data, error, "loading module %.400s", name);
    }
    rdm__visit_end(device, &guard);
  }
  rdm__compiler_leave(device->driver);
  return status;
}

static rdm_status load(rdm__device *device, const char *name, const void *code, size_t code_size_bytes,
                       module **out_module) {
  char *kept_name = strdup(name);
  module *made = kept_name == NULL ? NULL : (module *)rdm__handle_allocate(&modules);
  if (made == NULL) {
    free(kept_name);
    return rdm__fail(RDM_ERROR_OUT_OF_MEMORY, "no memory for module %.400s", name);
  }
  rdm_status status = load_native(device, name, code, code_size_bytes, &made->native);
  if (status != RDM_OK) {
    rdm__handle_discard(&modules, &made->object);
    free(kept_name);
    return status;
  }
  made->device = device;
  made->name = kept_name;
  if (made->kernels_lock.rank == 0) rdm__mutex_init(&made->kernels_lock, RDM__RANK_KERNELS);
  made->handle.bits = rdm__handle_open(&modules, &made->object);
  rdm__log(RDM_LOG_DEBUG, "device %d: module %.200s loaded, %zu bytes", device->index, name, code_size_bytes);
  *out_module = made;
  return RDM_OK;
}

static rdm_status build_module(void *context, const rdm_module_source *source, void **out_value) {
  rdm__device *device = context;
  const rdm__code *code = NULL;
  module *made = NULL;
  const rdm_error before = *rdm__thread_error();
  rdm_status status = rdm__compile(device->driver, device->properties.architecture, source, &code);
  if (status == RDM_OK) status = load(device, source->name, code->bytes, code->size_bytes, &made);
  bool load_failed = strcmp(rdm__thread_error()->call, device->driver->call_name(RDM__CALL_module_load_data)) == 0;
  if (status == RDM_ERROR_DRIVER && load_failed && code->is_from_disk) {
    /* Whole and undamaged, and yet not what the driver takes now: a driver or a compiler was exchanged under it. */
    rdm__log(RDM_LOG_WARNING, "the cached code of %.200s does not load (%s); it is compiled anew", source->name,
             rdm_last_error_message());
    status = rdm__compile_anew(device->driver, device->properties.architecture, source, &code);
    if (status == RDM_OK) status = load(device, source->name, code->bytes, code->size_bytes, &made);
    if (status == RDM_OK) *rdm__thread_error() = before;
  }
  if (status == RDM_OK) *out_value = made;
  return status;
}

/* What others build is waited for up to the limit: the code first, which threads of several devices share. */
static rdm_status get_within(rdm__device *device, const rdm_module_source *source, const rdm__wait_limit *limit,
                             void **out_value) {
  rdm_status status = RDM_OK;
  if (limit->deadline_ns != UINT64_MAX) {
    const rdm__code *code = NULL;
    status = rdm__compile_until(device->driver, device->properties.architecture, source, limit->deadline_ns, &code);
  }
  if (status == RDM_OK) {
    status = rdm__build_cache_get(&loaded, device->scope, source, limit->deadline_ns, build_module, device, out_value);
  }
  if (status != RDM_ERROR_TIMEOUT) return status;
  return rdm__wait_limit_reached(limit, "waiting for another thread's build of a module", device->index);
}

rdm_status rdm_module_get(rdm_device handle, const rdm_module_source *source, rdm_module *out_module) {
  return rdm_module_get_within(handle, source, RDM_WAIT_FOREVER, out_module);
}

rdm_status rdm_module_get_within(rdm_device handle, const rdm_module_source *source, uint64_t timeout_ns,
                                 rdm_module *out_module) {
  if (out_module == NULL) return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "out_module is null");
  rdm__device *device = NULL;
  rdm_status status = rdm__device_from_handle(handle, &device);
  if (status == RDM_OK) status = rdm__device_check(device);
  if (status == RDM_OK) status = rdm__source_check(source);
  if (status != RDM_OK) return status;
  void *value = rdm__build_cache_find(&loaded, device->scope, source);
  if (value != NULL) {
    count_hit();
  } else {
    rdm__count(RDM__COUNT_MODULE_MISSES, 1);
    rdm__wait_limit limit = rdm__wait_limit_from(timeout_ns);
    status = get_within(device, source, &limit, &value);
  }
  if (status == RDM_OK) *out_module = ((const module *)value)->handle;
  return status;
}

rdm_status rdm_module_load(rdm_device handle, const char *name, const void *code, size_t code_size_bytes,
                           rdm_module *out_module) {
  if (name == NULL || code == NULL || out_module == NULL) {
    return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "%s is null",
                     name == NULL ? "name" : (code == NULL ? "code" : "out_module"));
  }
  if (code_size_bytes == 0) return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "code_size_bytes is 0; it is 1 or more");
  rdm__device *device = NULL;
  module *made = NULL;
  rdm_status status = rdm__device_from_handle(handle, &device);
  if (status == RDM_OK) status = load(device, name, code, code_size_bytes, &made);
  if (status == RDM_OK) *out_module = made->handle;
  return status;
}

/* Asks the driver what the kernel takes. False where memory ran out. */
static bool read_arguments(rdm__kernel *kernel) {
  const rdm__driver *driver = kernel->device->driver;
  kernel->argument_sizes = NULL;
  kernel->argument_count = driver->kernel_argument_count(kernel->native);
  if (kernel->argument_count <= 0) return true;
  size_t count = (size_t)kernel->argument_count;
  kernel->argument_sizes = malloc(count * sizeof *kernel->argument_sizes);
  if (kernel->argument_sizes == NULL) return false;
  for (size_t i = 0; i < count; i++) {
    kernel->argument_sizes[i] = driver->kernel_argument_size(kernel->native, (unsigned)i);
  }
  return true;
}

/* A kernel that no thread knows yet. */
static rdm__kernel *make_kernel(rdm__device *device, const char *name, void *native) {
  char *kept_name = strdup(name);
  rdm__kernel *kernel = kept_name == NULL ? NULL : (rdm__kernel *)rdm__handle_allocate(&kernels);
  if (kernel == NULL) {
    free(kept_name);
    return NULL;
  }
  kernel->device = device;
  kernel->native = native;
  kernel->name = kept_name;
  if (read_arguments(kernel)) return kernel;
  rdm__handle_discard(&kernels, &kernel->object);
  free(kept_name);
  return NULL;
}

/* With kernels_lock held and the kernel not in the table. */
static rdm_status add_kernel(module *module, const char *name, rdm__kernel **out_kernel) {
  rdm__device *device = module->device;
  rdm__capture_guard guard;
  rdm_status status = rdm__visit_begin(device, &guard);
  if (status != RDM_OK) return status;
  void *native = NULL;
  rdm__kernel *kernel = NULL;
  int error = device->driver->module_get_function(&native, module->native, name);
  if (error != RDM_HIP_SUCCESS) {
    status = rdm__device_call_failed(device, RDM__CALL_module_get_function, error, "kernel %.400s of module %.400s",
                                     name, module->name);
  } else {
    kernel = rdm__kernel_table_reserve(&module->kernels) ? make_kernel(device, name, native) : NULL;
  }
  rdm__visit_end(device, &guard);
  if (status != RDM_OK) return status;
  if (kernel == NULL) {
    return rdm__fail(RDM_ERROR_OUT_OF_MEMORY, "no memory for kernel %.400s of module %.400s", name, module->name);
  }
  rdm__handle_open(&kernels, &kernel->object);
  rdm__kernel_table_add(&module->kernels, kernel);
  *out_kernel = kernel;
  return RDM_OK;
}

rdm_status rdm_module_get_kernel(rdm_module handle, const char *name, rdm_kernel *out_kernel) {
  if (name == NULL || out_kernel == NULL) {
    return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "%s is null", name == NULL ? "name" : "out_kernel");
  }
  rdm__object *object = NULL;
  rdm_status status = rdm__runtime_check();
  if (status == RDM_OK) status = rdm__handle_find(&modules, handle.bits, &object);
  if (status != RDM_OK) return status;
  module *module_of_kernel = (module *)object;
  status = rdm__device_check(module_of_kernel->device);
  rdm__kernel *kernel = rdm__kernel_table_find(&module_of_kernel->kernels, name);
  if (status == RDM_OK && kernel == NULL) {
    rdm__mutex_lock(&module_of_kernel->kernels_lock);
    kernel = rdm__kernel_table_find(&module_of_kernel->kernels, name);
    if (kernel == NULL) status = add_kernel(module_of_kernel, name, &kernel);
    rdm__mutex_unlock(&module_of_kernel->kernels_lock);
  }
  if (status == RDM_OK) out_kernel->bits = rdm__handle_of(&kernels, &kernel->object);
  return status;
}

rdm_status rdm__kernel_from_handle(rdm_kernel handle, rdm__kernel **out_kernel) {
  rdm__object *object = NULL;
  rdm_status status = rdm__handle_find(&kernels, handle.bits, &object);
  if (status == RDM_OK) *out_kernel = (rdm__kernel *)object;
  return status;
}

void rdm__modules_count(rdm__handle_totals *out_totals) {
  rdm__handle_count(&modules, out_totals);
}

uint64_t rdm__module_hits(void) {
  return rdm__tally_sum(&hits);
}
