#include "tally.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

enum { CACHE_LINE = 64 };

static void give_back(rdm__tally_cell *cell) {
  atomic_store_explicit(&cell->is_taken, false, memory_order_release);
  atomic_store_explicit(&cell->tally->given_back, cell, memory_order_release);
}

static void at_thread_end(rdm__thread_end_hook *hook) {
  /* The hook is the cell's first member. */
  rdm__tally_cell *cell = (rdm__tally_cell *)hook;
  cell->forget();
  give_back(cell);
}

/* With acquire: what the thread that had it before counted is there, and is gone on from. */
static bool take(rdm__tally_cell *cell) {
  return !atomic_load_explicit(&cell->is_taken, memory_order_relaxed) &&
         !atomic_exchange_explicit(&cell->is_taken, true, memory_order_acquire);
}

/* Null where none is free: until the first thread has ended that is known without a look at them. */
static rdm__tally_cell *take_any(rdm__tally *tally) {
  rdm__tally_cell *cell = atomic_load_explicit(&tally->given_back, memory_order_acquire);
  if (cell == NULL || take(cell)) return cell;
  cell = atomic_load_explicit(&tally->first, memory_order_acquire);
  while (cell != NULL && !take(cell)) cell = cell->next;
  return cell;
}

static rdm__tally_cell *make(rdm__tally *tally) {
  /* Twice its size makes room to begin at a whole line. */
  char *memory = calloc(2, CACHE_LINE);
  if (memory == NULL) return NULL;
  memory += (CACHE_LINE - (uintptr_t)memory % CACHE_LINE) % CACHE_LINE;
  rdm__tally_cell *cell = (rdm__tally_cell *)(void *)memory;
  cell->tally = tally;
  atomic_init(&cell->is_taken, true);
  cell->next = atomic_load_explicit(&tally->first, memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(&tally->first, &cell->next, cell, memory_order_release,
                                                memory_order_relaxed)) {
  }
  return cell;
}

rdm__tally_cell *rdm__tally_join(rdm__tally *tally, void (*forget)(void)) {
  _Static_assert(sizeof(rdm__tally_cell) <= CACHE_LINE, "a cell is one line");
  rdm__tally_cell *cell = take_any(tally);
  if (cell == NULL) cell = make(tally);
  if (cell == NULL) return NULL;
  cell->at_end.run = at_thread_end;
  cell->forget = forget;
  if (rdm__thread_end_add(&cell->at_end)) return cell;
  give_back(cell);
  return NULL;
}

uint64_t rdm__tally_sum(rdm__tally *tally) {
  uint64_t sum = 0;
  const rdm__tally_cell *cell = atomic_load_explicit(&tally->first, memory_order_acquire);
  for (; cell != NULL; cell = cell->next) sum += rdm__counted_alone(&cell->count);
  return sum;
}
