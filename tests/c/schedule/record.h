/* What one schedule came to, in memory that the exploring process and the schedule's process share. */
#ifndef SCHEDULE_RECORD_H
#define SCHEDULE_RECORD_H

#include "engine.h"

typedef enum outcome { OUTCOME_RUNNING, OUTCOME_PASSED, OUTCOME_FAILED, OUTCOME_REDUNDANT } outcome;

typedef struct step {
  uint8_t thread;
  uint8_t kind;
  /* Masks: the threads that could go on here, and those of them that need not, as another schedule had them do so. */
  uint16_t enabled;
  uint16_t asleep;
  const void *object;
  const void *other_object;
  const char *name;
  uintptr_t frames[MOST_FRAMES];
} step;

/* A point at which more than one thread could go on. Option 0 is to let the running thread go on, where it can. */
typedef struct choice {
  uint8_t options;
  uint8_t chosen;
  /* Whether any option but the first takes the turn from a thread that could go on. */
  bool preempts;
} choice;

typedef struct schedule_record {
  outcome outcome;
  char message[4096];
  /* Where the failing thread was, and where the other party of a race was. */
  uintptr_t frames[MOST_FRAMES];
  uintptr_t other_frame;
  uint32_t step_count;
  uint32_t choice_count;
  choice choices[MOST_CHOICES];
  step steps[MOST_STEPS];
} schedule_record;

extern schedule_record *the_record;

#endif
