/* Running the compiler as a child process. */
#ifndef RDM_SIM_COMPILER_PROCESS_H
#define RDM_SIM_COMPILER_PROCESS_H

struct rdm__sim_compiler_files;

/*
 * Runs a program with the process's environment, but English messages, until it ends. Its output goes to the files'
 * log. Returns 0 and its exit code, or an errno where it did not run.
 */
int rdm__sim_run_process(const char *const *arguments, const struct rdm__sim_compiler_files *files, int *out_exit_code);

#endif
