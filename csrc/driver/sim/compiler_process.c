#include "driver/sim/compiler_process.h"

#include "driver/sim/compiler_files.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* The environment with LC_ALL replaced. The caller frees the array alone. */
static char **child_environment(char *language) {
  size_t count = 0;
  while (environ[count] != NULL) count++;
  char **variables = malloc((count + 2) * sizeof *variables);
  if (variables == NULL) return NULL;
  size_t kept = 0;
  for (size_t index = 0; index < count; index++) {
    if (strncmp(environ[index], "LC_ALL=", 7) != 0) variables[kept++] = environ[index];
  }
  variables[kept++] = language;
  variables[kept] = NULL;
  return variables;
}

/* The calling thread may be a worker with every signal blocked; the compiler must be one that can be ended. */
static int set_attributes(posix_spawnattr_t *attributes) {
  sigset_t none;
  sigset_t defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  sigaddset(&defaults, SIGCHLD);
  int error = posix_spawnattr_setsigmask(attributes, &none);
  if (error == 0) error = posix_spawnattr_setsigdefault(attributes, &defaults);
  if (error == 0) error = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  return error;
}

static int set_files(posix_spawn_file_actions_t *actions, const rdm__sim_compiler_files *files) {
  int error = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDONLY, 0);
  if (error == 0) error = posix_spawn_file_actions_adddup2(actions, files->log, 1);
  if (error == 0) error = posix_spawn_file_actions_adddup2(actions, files->log, 2);
  if (error == 0 && files->source >= 0) {
    error = posix_spawn_file_actions_adddup2(actions, files->source, RDM__SIM_CHILD_SOURCE);
    if (error == 0) error = posix_spawn_file_actions_adddup2(actions, files->code, RDM__SIM_CHILD_CODE);
  }
#if defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 34)
  /* The compiler may outlive the process, and must not keep a pipe of its open. */
  int first = files->source >= 0 ? RDM__SIM_CHILD_CODE + 1 : 3;
  if (error == 0) error = posix_spawn_file_actions_addclosefrom_np(actions, first);
#endif
#endif
  return error;
}

static int spawn(const char *const *arguments, const rdm__sim_compiler_files *files, char **variables,
                 pid_t *out_child) {
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t actions;
  int error = posix_spawnattr_init(&attributes);
  if (error != 0) return error;
  error = posix_spawn_file_actions_init(&actions);
  if (error != 0) {
    posix_spawnattr_destroy(&attributes);
    return error;
  }
  error = set_attributes(&attributes);
  if (error == 0) error = set_files(&actions, files);
  if (error == 0) {
    /* The child gets a copy; posix_spawn takes no const for reasons of its age alone. */
    error = posix_spawn(out_child, arguments[0], &actions, &attributes, (char *const *)(uintptr_t)arguments, variables);
  }
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return error;
}

int rdm__sim_run_process(const char *const *arguments, const rdm__sim_compiler_files *files, int *out_exit_code) {
  char language[] = "LC_ALL=C";
  char **variables = child_environment(language);
  if (variables == NULL) return ENOMEM;
  pid_t child;
  int error = spawn(arguments, files, variables, &child);
  free(variables);
  if (error != 0) return error;
  int status = 0;
  pid_t ended;
  do {
    ended = waitpid(child, &status, 0);
  } while (ended < 0 && errno == EINTR);
  /* Where the process ignores its children's ends there is no status; the code file then says how it went. */
  if (ended < 0) status = 0;
  *out_exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return 0;
}
