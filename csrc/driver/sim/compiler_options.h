/* Which of the run-time compiler's options the system's compiler takes. */
#ifndef RDM_SIM_COMPILER_OPTIONS_H
#define RDM_SIM_COMPILER_OPTIONS_H

#include <stdbool.h>

enum { RDM__SIM_MAX_OPTIONS = 256 };

typedef struct rdm__sim_options {
  /* What to pass on, in order; the texts are the caller's. */
  const char *passed[RDM__SIM_MAX_OPTIONS];
  int passed_count;
  /* Where an option is refused: which, and why. */
  char message[256];
} rdm__sim_options;

/* Options for another architecture are left out. False with a message where one is not known to be harmless. */
bool rdm__sim_options_check(int option_count, const char *const *options, bool cxx, rdm__sim_options *out_options);

#endif
