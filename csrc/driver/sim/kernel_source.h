/*
 * Makes a kernel source that hiprtc takes into one that the system's compiler takes: a prelude before it, and behind
 * each kernel, on the line of its closing brace, the function that runs it. The source's own lines keep
 * their numbers.
 */
#ifndef RDM_SIM_KERNEL_SOURCE_H
#define RDM_SIM_KERNEL_SOURCE_H

#include <stdbool.h>

/* `cxx` says which language the result is for. The caller frees it. NULL where memory is short. */
char *rdm__sim_kernel_source(const char *source, const char *name, bool cxx);

#endif
