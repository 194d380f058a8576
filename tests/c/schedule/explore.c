#include "explore.h"

#include "reduction.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* On a busy machine a schedule may take seconds; one that takes this long stands outside the scheduler. */
enum { HANG_S = 60 };

int __real_clock_gettime(clockid_t clock, struct timespec *out_time);

double explore_now_s(void) {
  struct timespec now;
  __real_clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void run_here(const scenario *scenario, const strategy *strategy) {
  alarm(HANG_S);
  strategy_begin(strategy);
  int count = 0;
  while (count < MOST_BODIES && scenario->bodies[count] != NULL) count++;
  schedule_run(scenario->bodies, count, scenario->flags);
  if (scenario->check != NULL) scenario->check();
  the_record->outcome = OUTCOME_PASSED;
  _exit(0);
}

void explore_one(const scenario *scenario, const strategy *strategy) {
  the_record->outcome = OUTCOME_RUNNING;
  the_record->message[0] = '\0';
  the_record->step_count = 0;
  the_record->choice_count = 0;
  the_record->other_frame = 0;
  memset(the_record->frames, 0, sizeof the_record->frames);
  pid_t child = fork();
  if (child == 0) run_here(scenario, strategy);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) {
    perror("fork");
    exit(2);
  }
  if (the_record->outcome != OUTCOME_RUNNING) return;
  the_record->outcome = OUTCOME_FAILED;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
    snprintf(the_record->message, sizeof the_record->message, "a thread stands still where the scheduler sees nothing");
  } else if (WIFSIGNALED(status)) {
    snprintf(the_record->message, sizeof the_record->message, "ended by signal %d (%s)", WTERMSIG(status),
             strsignal(WTERMSIG(status)));
  } else {
    snprintf(the_record->message, sizeof the_record->message, "the process exited with %d", WEXITSTATUS(status));
  }
}

bool explore_is_late(const exploration *wanted) {
  return wanted->end_s != 0 && explore_now_s() >= wanted->end_s;
}

/* The choices of the next schedule in order of depth: the latest choice that can be raised without too many
 * preemptions. False where there is none. */
static bool next_choices(uint8_t *choices, uint32_t *count, int bound) {
  uint32_t preemptions = 0;
  for (uint32_t i = 0; i < the_record->choice_count; i++) {
    choices[i] = the_record->choices[i].chosen;
    if (the_record->choices[i].preempts && choices[i] != 0) preemptions++;
  }
  for (uint32_t i = the_record->choice_count; i-- > 0;) {
    const choice *made = &the_record->choices[i];
    if (made->preempts && made->chosen != 0) preemptions--;
    uint32_t raised = (uint32_t)made->chosen + 1;
    if (raised >= made->options || preemptions + (made->preempts ? 1u : 0u) > (uint32_t)bound) continue;
    choices[i] = (uint8_t)raised;
    *count = i + 1;
    return true;
  }
  return false;
}

/* All schedules with at most `bound` preemptions. Gives how many; stops at the first that fails. */
static uint64_t explore_all(const scenario *scenario, const exploration *wanted, int bound, bool *out_complete) {
  static uint8_t choices[MOST_CHOICES];
  strategy fixed = {.kind = STRATEGY_FIXED, .choices = choices};
  uint64_t schedules = 0;
  *out_complete = false;
  do {
    explore_one(scenario, &fixed);
    schedules++;
    if (the_record->outcome == OUTCOME_FAILED || explore_is_late(wanted)) return schedules;
    if (schedules == wanted->most_bounded) return schedules;
  } while (next_choices(choices, &fixed.choice_count, bound));
  *out_complete = true;
  return schedules;
}

/* Schedule number i of a seed: of each three two are random, switching more or less often, and one goes by priorities.
 */
static strategy of_seed(uint64_t seed, uint64_t i, uint32_t steps) {
  uint64_t state = seed + i;
  static const uint32_t switches[] = {2, 5, 16};
  strategy made = {.kind = STRATEGY_RANDOM, .seed = strategy_random(&state), .one_in = switches[i / 3 % 3]};
  if (i % 3 == 2) {
    made.kind = STRATEGY_PRIORITIES;
    made.changes = 1 + (uint32_t)(i / 3 % 3);
    made.steps = steps;
  }
  return made;
}

explored explore(const scenario *scenario, const exploration *wanted) {
  explored result = {.is_exhaustive = false};
  if (wanted->most_full > 0) {
    result.schedules = reduction_explore(scenario, wanted, wanted->most_full, &result.is_exhaustive);
    result.has_failed = the_record->outcome == OUTCOME_FAILED;
    if (result.has_failed) snprintf(result.found_by, sizeof result.found_by, "all schedules");
    if (result.has_failed || result.is_exhaustive) return result;
  }
  uint64_t before = result.schedules;
  /* Fewest preemptions first, so that what fails fails in the simplest way. */
  for (int bound = 0; bound <= wanted->bound && !explore_is_late(wanted); bound++) {
    uint64_t schedules = before + explore_all(scenario, wanted, bound, &result.is_bounded);
    /* Each bound's schedules are among the next one's. */
    if (schedules > result.schedules) result.schedules = schedules;
    if (the_record->outcome != OUTCOME_FAILED) continue;
    result.has_failed = true;
    result.is_bounded = false;
    snprintf(result.found_by, sizeof result.found_by, "all schedules with %d preemptions", bound);
    return result;
  }
  strategy first = {.kind = STRATEGY_FIXED};
  explore_one(scenario, &first);
  uint32_t steps = the_record->step_count;
  for (uint64_t i = 0; i < wanted->random_schedules && !explore_is_late(wanted); i++) {
    strategy made = of_seed(wanted->seed, i, steps);
    explore_one(scenario, &made);
    result.schedules++;
    if (the_record->outcome != OUTCOME_FAILED) continue;
    result.has_failed = true;
    snprintf(result.found_by, sizeof result.found_by, "seed %llu, schedule %llu, %s", (unsigned long long)wanted->seed,
             (unsigned long long)i, made.kind == STRATEGY_RANDOM ? "random" : "by priorities");
    return result;
  }
  return result;
}
