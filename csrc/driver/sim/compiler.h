/* The system's compiler as the simulated driver's run-time compiler: it runs as a child process. */
#ifndef RDM_SIM_COMPILER_H
#define RDM_SIM_COMPILER_H

#include <stdbool.h>
#include <stddef.h>

/* Of the numbers that both real compilers use, the one for "internal error". */
enum { RDM__SIM_RTC_INTERNAL_ERROR = 11 };

/*
 * Finds the compiler: RDM_SIM_COMPILER, else the first there is of c++, g++, clang++, cc, gcc and clang. Writes its
 * path, or an empty text where there is none. Called once, before rdm__sim_compile.
 */
void rdm__sim_compiler_find(char *out_path, size_t size);

typedef struct rdm__sim_compilation {
  /* One of the run-time compiler's numbers. */
  int result;
  /* What the compiler printed. Both are the caller's to free; NULL where there is none. */
  char *log;
  char *code;
  size_t code_size;
} rdm__sim_compilation;

/* Compiles a kernel source with the compiler at `compiler_path` into a code object. */
rdm__sim_compilation rdm__sim_compile(const char *compiler_path, const char *source, const char *name, int option_count,
                                      const char *const *options);

#endif
