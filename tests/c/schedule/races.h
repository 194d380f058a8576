/*
 * Data races: each memory access of the product is compared with the earlier ones to the same bytes. Two that conflict,
 * of which one is plain, race unless what the threads did between them (locks, atomics by their memory orders, starts
 * of threads) puts one before the other; and that does not depend on which came first in this schedule.
 */
#ifndef SCHEDULE_RACES_H
#define SCHEDULE_RACES_H

#include "engine.h"

#include <stddef.h>

typedef enum access_kind { ACCESS_READ, ACCESS_WRITE, ACCESS_ATOMIC_READ, ACCESS_ATOMIC_WRITE } access_kind;

void races_access(const volatile void *address, size_t size, access_kind kind, uintptr_t where);
/* The block is freed: a write to all of it, after which any access fails the schedule. */
void races_freed(const void *address, size_t size, uintptr_t where);

/* What is kept for an atomic, a lock or a condition, by its address. */
typedef struct sync_object {
  const volatile void *address;
  /* What a release, a write unlock or an unlock let go; what read unlocks did. */
  vector_clock released;
  vector_clock read_released;
  /* The lock's owner + 1, and how many times each thread holds it shared. */
  uint32_t owner;
  uint32_t readers;
  uint8_t read_holds[MOST_THREADS];
  /* For a once: 1 while it runs, 2 after it. */
  uint8_t once_state;
} sync_object;

sync_object *races_object(const volatile void *address);

void clock_join(vector_clock *into, const vector_clock *from);

/* The calling thread gets what was released to the object; lets go what it has done. */
void races_acquire(const vector_clock *from);
void races_release(vector_clock *into);

#endif
