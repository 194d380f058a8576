/* What threads count for themselves, without a lock and without an atomic step: a tally has a cell for each thread. */
#ifndef RDM_TALLY_H
#define RDM_TALLY_H

#include "count.h"
#include "thread_end.h"

typedef struct rdm__tally rdm__tally;

/* A thread's part of a tally, in a cache line of its own. It outlives the thread and goes on with the next one that
 * needs one: so the sum of all cells loses nothing as threads end, and never goes down. */
typedef struct rdm__tally_cell {
  rdm__thread_end_hook at_end;
  /* Written by the thread that has the cell. */
  _Atomic uint64_t count;
  rdm__tally *tally;
  void (*forget)(void);
  /* Never changes once the cell is in the list. */
  struct rdm__tally_cell *next;
  atomic_bool is_taken;
} rdm__tally_cell;

/* Statically zero to begin with. Cells are only ever added. */
struct rdm__tally {
  _Atomic(rdm__tally_cell *) first;
  /* One that was given back lately: a server that starts a thread for each request finds it here. */
  _Atomic(rdm__tally_cell *) given_back;
};

/*
 * A cell for the calling thread, until it ends: then `forget` is called on it, after which it must count in the cell no
 * more, and may ask for one anew. Null, with nothing changed, where there is no memory.
 */
rdm__tally_cell *rdm__tally_join(rdm__tally *tally, void (*forget)(void));

/* The sum of what all threads counted, those that have ended too. */
uint64_t rdm__tally_sum(rdm__tally *tally);

#endif
