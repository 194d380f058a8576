/* The run-time compiler's programs. They need no device. */
#ifndef RDM_SIM_PROGRAM_H
#define RDM_SIM_PROGRAM_H

#include <stddef.h>

typedef struct rdm__sim_program rdm__sim_program;

/* The program of a handle with one more reference, NULL where the handle is not one. */
rdm__sim_program *rdm__sim_program_get(const void *handle);
/* NULL is fine. */
void rdm__sim_program_release(rdm__sim_program *program);

/* These return the compiler's error number; a null object stands for a handle that is none. */
int rdm__sim_program_create(void **out_program, const char *source, const char *name);
int rdm__sim_program_compile(rdm__sim_program *program, int option_count, const char *const *options);
int rdm__sim_program_destroy(const void *handle);

/* What a caller may read of a program: its log, or its code. */
typedef enum rdm__sim_output_kind { RDM__SIM_OUTPUT_LOG, RDM__SIM_OUTPUT_CODE } rdm__sim_output_kind;

/* Gives the size, and copies the bytes where there is a place for them. A log is there always, ended by its NUL. */
int rdm__sim_program_read(rdm__sim_program *program, rdm__sim_output_kind kind, size_t *out_size, char *out_bytes);

#endif
