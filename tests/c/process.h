/* Runs this program again as a child process with a time limit, and keeps what it wrote. */
#ifndef TEST_PROCESS_H
#define TEST_PROCESS_H

#include <stdbool.h>

typedef struct process_outcome {
  /* What the process returned, -1 where a signal ended it. */
  int exit_code;
  /* The signal that ended it, 0 where it exited. */
  int signal;
  /* It had not ended at the limit and was killed. */
  bool timed_out;
  double seconds;
  /* What it wrote, cut at these sizes. */
  char standard_output[16384];
  char standard_error[16384];
} process_outcome;

/*
 * Starts this program with two arguments and waits for its end, at most `limit_seconds`; then its whole process group
 * is killed. `environment` is null or a list of "NAME=value" ("NAME" alone: unset), with a null at the end.
 */
void process_run_self(const char *first_argument, const char *second_argument, const char *const *environment,
                      double limit_seconds, process_outcome *outcome);

#endif
