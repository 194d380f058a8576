#include "kernel_table.h"

#include "hash.h"
#include "module.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_SLOTS = 16 };

struct rdm__kernel_slots {
  /* Smaller by half. */
  rdm__kernel_slots *previous;
  /* A power of two. */
  uint32_t size;
  /* Used with the caller's lock held. */
  uint32_t count;
  /* At most half of them are taken, so there is always a free one to stop at. */
  _Atomic(rdm__kernel *) at[];
};

/* A few names are compared sooner than one is hashed, so the first slots are filled and searched in order. */
static uint32_t first_slot(const rdm__kernel_slots *slots, const char *name) {
  return slots->size == FIRST_SLOTS ? 0 : (uint32_t)(rdm__hash_text(0, name) >> 32) & (slots->size - 1);
}

rdm__kernel *rdm__kernel_table_find(const rdm__kernel_table *table, const char *name) {
  rdm__kernel_slots *slots = atomic_load_explicit(&table->slots, memory_order_acquire);
  if (slots == NULL) return NULL;
  uint32_t slot = first_slot(slots, name);
  rdm__kernel *kernel;
  while ((kernel = atomic_load_explicit(&slots->at[slot], memory_order_acquire)) != NULL) {
    if (strcmp(kernel->name, name) == 0) return kernel;
    slot = (slot + 1) & (slots->size - 1);
  }
  return NULL;
}

static void put(rdm__kernel_slots *slots, rdm__kernel *kernel) {
  uint32_t slot = first_slot(slots, kernel->name);
  while (atomic_load_explicit(&slots->at[slot], memory_order_relaxed) != NULL) slot = (slot + 1) & (slots->size - 1);
  atomic_store_explicit(&slots->at[slot], kernel, memory_order_release);
  slots->count++;
}

bool rdm__kernel_table_reserve(rdm__kernel_table *table) {
  rdm__kernel_slots *slots = atomic_load_explicit(&table->slots, memory_order_relaxed);
  if (slots != NULL && slots->count < slots->size / 2) return true;
  uint32_t size = slots == NULL ? FIRST_SLOTS : slots->size * 2;
  rdm__kernel_slots *more = calloc(1, sizeof *more + size * sizeof more->at[0]);
  if (more == NULL) return false;
  more->previous = slots;
  more->size = size;
  for (uint32_t i = 0; slots != NULL && i < slots->size; i++) {
    rdm__kernel *kernel = atomic_load_explicit(&slots->at[i], memory_order_relaxed);
    if (kernel != NULL) put(more, kernel);
  }
  atomic_store_explicit(&table->slots, more, memory_order_release);
  return true;
}

void rdm__kernel_table_add(rdm__kernel_table *table, rdm__kernel *kernel) {
  put(atomic_load_explicit(&table->slots, memory_order_relaxed), kernel);
}
