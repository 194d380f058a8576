/*
 * Where the compiler reads the source and writes the code. In memory, so that nothing is left behind even where the
 * process ends during a compile; or in a folder of its own, for a linker that can write to a named file alone.
 */
#ifndef RDM_SIM_COMPILER_FILES_H
#define RDM_SIM_COMPILER_FILES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct rdm__sim_compiler_files {
  /* What the compiler is told. */
  char source_path[PATH_MAX + 16];
  char code_path[PATH_MAX + 16];
  /* Descriptors, -1 for none. In memory the child finds the source and the code under the two numbers below. */
  int source;
  int code;
  int log;
  /* Empty in memory. */
  char folder[PATH_MAX];
} rdm__sim_compiler_files;

enum { RDM__SIM_CHILD_SOURCE = 3, RDM__SIM_CHILD_CODE = 4 };

/* Writes the source, too. Returns 0, or an errno and nothing to close. */
int rdm__sim_compiler_files_open(rdm__sim_compiler_files *files, const char *text, bool cxx, bool in_memory);
void rdm__sim_compiler_files_close(rdm__sim_compiler_files *files);

/* What the compiler printed. NULL where memory is short. */
char *rdm__sim_compiler_files_log(const rdm__sim_compiler_files *files);

/* The code, with `room` bytes left free behind it. NULL where there is none. */
char *rdm__sim_compiler_files_code(const rdm__sim_compiler_files *files, size_t room, size_t *out_size);

#endif
