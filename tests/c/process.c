#include "process.h"
#include "self.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void stop(const char *what) {
  perror(what);
  exit(2);
}

static void apply_environment(const char *const *environment) {
  for (; environment != NULL && *environment != NULL; environment++) {
    char entry[512];
    snprintf(entry, sizeof entry, "%s", *environment);
    char *equals = strchr(entry, '=');
    if (equals == NULL) {
      unsetenv(entry);
    } else {
      *equals = '\0';
      setenv(entry, equals + 1, 1);
    }
  }
}

static void run_child(const char *first, const char *second, const char *const *environment, int output, int error) {
  setpgid(0, 0);
  /* A harness that is killed takes its tests with it. */
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  apply_environment(environment);
  dup2(output, STDOUT_FILENO);
  dup2(error, STDERR_FILENO);
  char *arguments[] = {(char *)"test", (char *)(uintptr_t)first, (char *)(uintptr_t)second, NULL};
  char path[4096];
  if (self_path(path, sizeof path)) execv(path, arguments);
  _exit(127);
}

static void read_all(FILE *file, char *text, size_t size) {
  rewind(file);
  size_t length = fread(text, 1, size - 1, file);
  text[length] = '\0';
  fclose(file);
}

void process_run_self(const char *first_argument, const char *second_argument, const char *const *environment,
                      double limit_seconds, process_outcome *outcome) {
  memset(outcome, 0, sizeof *outcome);
  FILE *output = tmpfile();
  FILE *error = tmpfile();
  if (output == NULL || error == NULL) stop("tmpfile");
  fflush(NULL);
  double start = seconds_now();
  pid_t child = fork();
  if (child < 0) stop("fork");
  if (child == 0) run_child(first_argument, second_argument, environment, fileno(output), fileno(error));
  setpgid(child, child);
  int status = 0;
  for (;;) {
    pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) break;
    if (ended < 0 && errno != EINTR) stop("waitpid");
    if (!outcome->timed_out && seconds_now() - start > limit_seconds) {
      outcome->timed_out = true;
      kill(-child, SIGKILL);
    }
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
  }
  outcome->seconds = seconds_now() - start;
  outcome->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  outcome->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  read_all(output, outcome->standard_output, sizeof outcome->standard_output);
  read_all(error, outcome->standard_error, sizeof outcome->standard_error);
}
