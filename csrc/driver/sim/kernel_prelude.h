/* What stands before every kernel source. */
#ifndef RDM_SIM_KERNEL_PRELUDE_H
#define RDM_SIM_KERNEL_PRELUDE_H

/* In parts, ended by a null pointer. */
extern const char *const rdm__sim_kernel_prelude[];

#endif
