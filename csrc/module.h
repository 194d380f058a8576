/*
 * Modules: kernels compiled at run time, one module for each (device, name, source, options).
 *
 * Invariant: a key has at most one build in flight. No lock is held while anything is compiled or loaded, but for the
 * compiler's own where it can do one thing at a time. A lookup that finds a finished module, or a kernel that was asked
 * for before, takes no lock and waits for nobody.
 */
#ifndef RDM_MODULE_H
#define RDM_MODULE_H

#include "device.h"
#include "kernel_table.h"

struct rdm__kernel {
  rdm__object object;
  rdm__device *device;
  void *native;
  /* -1 where the driver can not tell. */
  int argument_count;
  /* One for each argument, -1 where the driver can not tell; null where it can not even count them. */
  int *argument_sizes;
  char *name;
};

/* The kernel of a handle, which is never closed, so that it needs no pin. */
rdm_status rdm__kernel_from_handle(rdm_kernel handle, rdm__kernel **out_kernel);

/* For rdm_get_counters: modules loaded; and lookups that found one finished. */
void rdm__modules_count(rdm__handle_totals *out_totals);
uint64_t rdm__module_hits(void);

#endif
