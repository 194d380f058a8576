/*
 * Loaded modules and their kernels. A code object is a shared object with a trailer, loaded from anonymous memory, once
 * for each module.
 */
#ifndef RDM_SIM_MODULE_H
#define RDM_SIM_MODULE_H

#include "driver/sim/kernel_abi.h"

typedef struct rdm__sim_module rdm__sim_module;
typedef struct rdm__sim_function rdm__sim_function;

/* The module of a handle with one more reference, NULL where the handle is not one. */
rdm__sim_module *rdm__sim_module_get(const void *handle);
/* NULL is fine. */
void rdm__sim_module_release(rdm__sim_module *module);

/* -1 for NULL. */
int rdm__sim_module_device_index(const rdm__sim_module *module);

/*
 * Loads a code object on the calling thread's current device. Where the driver stands for one whose compiler takes one
 * thread at a time, a second one is told so.
 */
int rdm__sim_module_load(void **out_module, const void *image, size_t image_size);

/* Ends the handles of the module and of its kernels; the code goes once the last launch of it is over. */
int rdm__sim_module_unload(const void *handle);

/* The handle of a kernel, which it has for the life of its module. */
int rdm__sim_module_get_function(void **out_function, rdm__sim_module *module, const char *name);

/* The kernel of a handle with one more reference, NULL where the handle is not one. */
rdm__sim_function *rdm__sim_function_get(const void *handle);
void rdm__sim_function_retain(rdm__sim_function *function);
/* NULL is fine. */
void rdm__sim_function_release(rdm__sim_function *function);

/* -1 for NULL. */
int rdm__sim_function_device_index(const rdm__sim_function *function);

/* What the loaded code says of the kernel. Valid while the function is referenced. */
const rdm__sim_kernel *rdm__sim_function_kernel(const rdm__sim_function *function);

/* The calling thread's index, which the kernels that it runs read. */
rdm__sim_index *rdm__sim_index_of_thread(void);

#endif
