/* What a schedule is of: a few threads that use the library, and what must hold however they interleave. */
#ifndef SCHEDULE_SCENARIO_H
#define SCHEDULE_SCENARIO_H

#include "engine.h"
#include "rocm_device_map.h"

#include <stddef.h>

enum {
  /* A wait may end by its timer, so that is no lost wakeup here. */
  SCENARIO_TIMERS_END_WAITS = 1,
  /* The driver has a thread that does what streams were given. */
  SCENARIO_HAS_GPU = 2,
  /* Too many schedules to try them all in a short run: a tenth of the others' limit. */
  SCENARIO_IS_LARGE = 4,
};

enum { MOST_BODIES = 4 };

typedef struct scenario {
  const char *name;
  /* Run once, before the threads, in the process that all schedules of the scenario are forked from. May be null. */
  void (*prepare)(void);
  void (*bodies[MOST_BODIES])(void);
  /* Run after the threads have ended. May be null. */
  void (*check)(void);
  unsigned flags;
} scenario;

extern const scenario device_scenarios[];
extern const scenario module_scenarios[];
extern const scenario stream_scenarios[];
extern const scenario event_scenarios[];
extern const scenario state_scenarios[];

#define EXPECT(condition)                                                                                            \
  do {                                                                                                               \
    if (!(condition))                                                                                                \
      schedule_fail("%s:%d: expected %s; last error: %s", __FILE__, __LINE__, #condition, rdm_last_error_message()); \
  } while (0)

#define EXPECT_STATUS(wanted, call)                                                             \
  do {                                                                                          \
    rdm_status given = (call);                                                                  \
    if (given != (wanted))                                                                      \
      schedule_fail("%s:%d: %s gave %s: %s", __FILE__, __LINE__, #call, rdm_status_name(given), \
                    rdm_last_error_message());                                                  \
  } while (0)

/* system.c: the hooks that the library registered for the end of a thread and of the process. */
void schedule_run_thread_end_hooks(void);
void schedule_run_exit_handlers(void);

/* How many blocks of a size the threads have allocated and not freed. */
void schedule_watch_blocks(size_t size);
int schedule_watched_blocks(void);

/* driver.c */
void schedule_start_gpu(void);

#endif
