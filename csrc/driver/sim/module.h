/* Loaded modules and their kernels. */
#ifndef RDM_SIM_MODULE_H
#define RDM_SIM_MODULE_H

#include "driver/sim/kernel_abi.h"

typedef struct rdm__sim_function rdm__sim_function;

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
