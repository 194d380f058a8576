/*
 * Explores schedules of the real code: docs/schedules.md.
 *
 *   schedules [--full N] [--bound B] [--schedules N] [--seed S] [--seconds T] [SCENARIO...]
 *   schedules --replay SCENARIO CHOICES
 *   schedules --list
 *
 * Exits with 0 where no schedule failed, 1 where one did, 2 where it was called in a wrong way.
 */
#include "driver.h"
#include "report.h"

#include <malloc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const scenario *const groups[] = {device_scenarios, module_scenarios, event_scenarios, stream_scenarios,
                                         state_scenarios};
enum { GROUP_COUNT = sizeof groups / sizeof groups[0], MOST_SCENARIOS = 128 };

typedef struct options {
  exploration wanted;
  double seconds;
  const char *replay;
} options;

static explored *the_result;

static void *shared_memory(size_t size) {
  void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    perror("mmap");
    exit(2);
  }
  return memory;
}

static const scenario *find_scenario(const char *name) {
  for (int group = 0; group < GROUP_COUNT; group++) {
    for (const scenario *scenario = groups[group]; scenario->name != NULL; scenario++) {
      if (strcmp(scenario->name, name) == 0) return scenario;
    }
  }
  fprintf(stderr, "there is no scenario %s; --list names them\n", name);
  exit(2);
}

static int all_scenarios(const scenario **list) {
  int count = 0;
  for (int group = 0; group < GROUP_COUNT; group++) {
    for (const scenario *scenario = groups[group]; scenario->name != NULL; scenario++) list[count++] = scenario;
  }
  return count;
}

static void replay(const scenario *scenario, const char *text) {
  static uint8_t choices[MOST_CHOICES];
  strategy fixed = {.kind = STRATEGY_FIXED, .choices = choices};
  if (!report_parse_choices(text, choices, &fixed.choice_count)) {
    fprintf(stderr, "%s is no list of choices\n", text);
    exit(2);
  }
  explore_one(scenario, &fixed);
  *the_result = (explored){.schedules = 1, .has_failed = the_record->outcome == OUTCOME_FAILED};
  if (the_record->outcome == OUTCOME_FAILED) report_failure(scenario, "replay");
}

/* In a process of its own: what a scenario prepares, no other sees. */
static void run_scenario(const scenario *scenario, const options *options, int scenarios_left, double end_s) {
  *the_result = (explored){.has_failed = true};
  pid_t child = fork();
  if (child == 0) {
    if (scenario->prepare != NULL) scenario->prepare();
    if (options->replay != NULL) {
      replay(scenario, options->replay);
    } else {
      exploration wanted = options->wanted;
      wanted.most_bounded = wanted.most_full > 0 ? wanted.most_full : UINT64_MAX;
      if ((scenario->flags & SCENARIO_IS_LARGE) != 0) wanted.most_full /= 10;
      /* Most need less than their share of the time, so each may take more. */
      double left_s = end_s - explore_now_s();
      double share_s = scenarios_left > 3 ? 3 * left_s / scenarios_left : left_s / scenarios_left;
      if (end_s != 0) wanted.end_s = explore_now_s() + share_s;
      *the_result = explore(scenario, &wanted);
      if (the_result->has_failed) report_failure(scenario, the_result->found_by);
    }
    fflush(stdout);
    _exit(0);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
    printf("FAILED %s: it could not be prepared: %s\n", scenario->name, the_record->message);
  }
}

static const char *value_of(int count, char **arguments, int *i) {
  if (*i + 1 < count) return arguments[++*i];
  fprintf(stderr, "%s takes a value\n", arguments[*i]);
  exit(2);
}

static int read_arguments(int count, char **arguments, options *options, const scenario **list) {
  int listed = 0;
  for (int i = 1; i < count; i++) {
    const char *argument = arguments[i];
    if (strcmp(argument, "--full") == 0) {
      options->wanted.most_full = strtoull(value_of(count, arguments, &i), NULL, 10);
    } else if (strcmp(argument, "--bound") == 0) {
      options->wanted.bound = atoi(value_of(count, arguments, &i));
    } else if (strcmp(argument, "--schedules") == 0) {
      options->wanted.random_schedules = strtoull(value_of(count, arguments, &i), NULL, 10);
    } else if (strcmp(argument, "--seed") == 0) {
      options->wanted.seed = strtoull(value_of(count, arguments, &i), NULL, 10);
    } else if (strcmp(argument, "--seconds") == 0) {
      options->seconds = atof(value_of(count, arguments, &i));
    } else if (strcmp(argument, "--replay") == 0) {
      list[listed++] = find_scenario(value_of(count, arguments, &i));
      options->replay = value_of(count, arguments, &i);
    } else if (strcmp(argument, "--list") == 0) {
      listed = all_scenarios(list);
      for (int j = 0; j < listed; j++) puts(list[j]->name);
      exit(0);
    } else if (argument[0] == '-' || listed == MOST_SCENARIOS) {
      fprintf(stderr, "unknown argument %s\n", argument);
      exit(2);
    } else {
      list[listed++] = find_scenario(argument);
    }
  }
  return listed > 0 ? listed : all_scenarios(list);
}

/* One thread runs at a time, so they are all kept on one processor: a hand-over is then a switch and no more. */
static void stay_on_one_processor(void) {
  int here = sched_getcpu();
  if (here < 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET((size_t)here, &set);
  sched_setaffinity(0, sizeof set, &set);
}

int main(int count, char **arguments) {
  const scenario *list[MOST_SCENARIOS];
  options options = {.wanted = {.most_full = 2000, .bound = 1, .seed = 1, .random_schedules = 300}};
  int scenario_count = read_arguments(count, arguments, &options, list);
  mallopt(M_ARENA_MAX, 1);
  setenv("RDM_DRIVER", "sim", 1);
  setenv("RDM_CACHE_DIR", "", 1);
  /* A wait that spins has points without end; one that sleeps has the same states. */
  setenv("RDM_EVENT_BLOCKING", "1", 1);
  unsetenv("RDM_WATCHDOG_SECS");
  stay_on_one_processor();
  the_record = shared_memory(sizeof *the_record);
  the_result = shared_memory(sizeof *the_result);
  uint64_t schedules = 0;
  int exhaustive = 0, bounded = 0, failures = 0;
  double begin_s = explore_now_s();
  double end_s = options.seconds > 0 ? begin_s + options.seconds : 0;
  if (options.replay == NULL) printf("seed %llu\n", (unsigned long long)options.wanted.seed);
  for (int i = 0; i < scenario_count; i++) {
    double scenario_begin_s = explore_now_s();
    fflush(stdout);
    run_scenario(list[i], &options, scenario_count - i, end_s);
    schedules += the_result->schedules;
    exhaustive += the_result->is_exhaustive;
    bounded += the_result->is_bounded;
    failures += the_result->has_failed;
    printf("%-32s %8llu schedules%s, %.1f s\n", list[i]->name, (unsigned long long)the_result->schedules,
           the_result->is_exhaustive ? ", all there are"
           : the_result->is_bounded  ? ", among them all within the bound"
                                     : "",
           explore_now_s() - scenario_begin_s);
  }
  printf("schedules: %llu explored in %d scenarios, %d exhaustive, %d more up to %d preemptions, %d failures\n",
         (unsigned long long)schedules, scenario_count, exhaustive, bounded, options.wanted.bound, failures);
  fprintf(stderr, "%.0f schedules per second\n", (double)schedules / (explore_now_s() - begin_s));
  return failures == 0 ? 0 : 1;
}
