/*
 * What a thread resolved its thread-local streams to. Used by that thread alone, so it has no lock. A lookup costs the
 * same however many there are.
 */
#ifndef RDM_RESOLUTIONS_H
#define RDM_RESOLUTIONS_H

#include "handle.h"

#include <stdbool.h>

typedef struct rdm__resolution {
  rdm_thread_local_stream handle;
  /* What the handle named. Its memory is never given back, so it can be asked whether the handle is still open. */
  const rdm__object *object;
  rdm_stream stream;
} rdm__resolution;

/* All zero is an empty table. */
typedef struct rdm__resolutions {
  rdm__resolution *items;
  uint32_t count;
  uint32_t capacity;
  /* Twice as many as `capacity`, a power of two: an item's number + 1, 0: free. */
  uint32_t *slots;
} rdm__resolutions;

/* What the handle was resolved to; null where it was not. */
const rdm__resolution *rdm__resolutions_find(const rdm__resolutions *table, rdm_thread_local_stream handle);

/* Makes room for one more; false where memory ran out. */
bool rdm__resolutions_reserve(rdm__resolutions *table);

/* There has to be room, and the handle has to be new. */
void rdm__resolutions_add(rdm__resolutions *table, const rdm__resolution *item);

/* Drops every item for which `goes` is true. */
void rdm__resolutions_drop(rdm__resolutions *table, bool (*goes)(const rdm__resolution *item));

void rdm__resolutions_free(rdm__resolutions *table);

#endif
