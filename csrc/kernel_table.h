/*
 * A module's kernels by their name. They are added one at a time and never removed; a lookup takes no lock, and costs
 * the same however many there are.
 */
#ifndef RDM_KERNEL_TABLE_H
#define RDM_KERNEL_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct rdm__kernel rdm__kernel;

typedef struct rdm__kernel_slots rdm__kernel_slots;

/* All zero is an empty table. */
typedef struct rdm__kernel_table {
  /* Published whole, with release. Those that it took the place of are kept: somebody may be reading them. */
  _Atomic(rdm__kernel_slots *) slots;
} rdm__kernel_table;

/* The kernel of this name, null where there is none. */
rdm__kernel *rdm__kernel_table_find(const rdm__kernel_table *table, const char *name);

/* One at a time: the caller holds a lock. False where memory ran out. */
bool rdm__kernel_table_reserve(rdm__kernel_table *table);

/* The same; there has to be room, and the name has to be new. Publishes the kernel with release. */
void rdm__kernel_table_add(rdm__kernel_table *table, rdm__kernel *kernel);

#endif
