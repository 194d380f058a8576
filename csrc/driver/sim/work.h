/* What streams run, one item after the other. */
#ifndef RDM_SIM_WORK_H
#define RDM_SIM_WORK_H

#include <stdbool.h>

typedef struct rdm__sim_stream rdm__sim_stream;
typedef struct rdm__sim_work rdm__sim_work;

/* One item of work, the first member of what each kind of it needs. Made on the heap by its submitter. */
struct rdm__sim_work {
  rdm__sim_work *next;
  /* Runs on the stream's thread, with no lock held. Returns 0, or the fault that the work raised. */
  int (*run)(rdm__sim_work *work, rdm__sim_stream *stream);
  /* Called exactly once, after the run or in place of it, to free it. `fault` is 0 where it completed. */
  void (*finish)(rdm__sim_work *work, int fault);
  /* May be run again and again, so that a graph keeps it. What orders work is not: a graph runs in order. */
  bool repeats;
};

#endif
