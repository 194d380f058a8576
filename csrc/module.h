/*
 * Modules: kernels compiled at run time, one module for each (device, name, source, options).
 *
 * Invariant: a key has at most one build in flight. The cache's lock guards the table and is never held while
 * anything is compiled or loaded; a lookup that finds a finished module takes it shared and waits for nobody.
 */
#ifndef RDM_MODULE_H
#define RDM_MODULE_H

#include "device.h"

typedef struct rdm__kernel {
  rdm__object object;
  rdm__device *device;
  void *native;
  /* -1 where the driver can not tell. */
  int argument_count;
  char *name;
  struct rdm__kernel *next;
} rdm__kernel;

/* The kernel of a handle, which is never closed, so that it needs no unpinning. */
rdm_status rdm__kernel_from_handle(rdm_kernel handle, rdm__kernel **out_kernel);

#endif
