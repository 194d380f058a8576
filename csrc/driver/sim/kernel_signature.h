/* A kernel's name and parameters, read from its source, and the function that runs a row of its threads. */
#ifndef RDM_SIM_KERNEL_SIGNATURE_H
#define RDM_SIM_KERNEL_SIGNATURE_H

#include "driver/sim/text.h"

/* A kernel may have up to 4 KiB of arguments, so no more than this many. */
enum { RDM__SIM_MAX_ARGUMENTS = 256, RDM__SIM_MAX_NAME = 256 };

typedef struct rdm__sim_signature {
  char name[RDM__SIM_MAX_NAME];
  /* Between the parentheses, in the source. */
  const char *parameters;
  const char *parameters_end;
} rdm__sim_signature;

/* Reads what follows `__global__`. Returns where the body's brace is, NULL where no body follows. */
const char *rdm__sim_signature_read(const char *after_global, rdm__sim_signature *out_signature);

/* Writes the running function and its table entry, on one line. */
void rdm__sim_signature_write(const rdm__sim_signature *signature, rdm__sim_text *out);

#endif
