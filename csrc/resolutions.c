#include "resolutions.h"

#include "hash.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 4 };

static uint32_t slot_count(const rdm__resolutions *table) {
  return table->capacity * 2;
}

static uint32_t first_slot(const rdm__resolutions *table, rdm_thread_local_stream handle) {
  return (uint32_t)(rdm__hash_word(0, handle.bits) >> 32) & (slot_count(table) - 1);
}

/* At most half of the slots are taken, so there is always a free one to stop at. */
static void put_in_slot(rdm__resolutions *table, uint32_t number) {
  uint32_t slot = first_slot(table, table->items[number].handle);
  while (table->slots[slot] != 0) slot = (slot + 1) & (slot_count(table) - 1);
  table->slots[slot] = number + 1;
}

const rdm__resolution *rdm__resolutions_find(const rdm__resolutions *table, rdm_thread_local_stream handle) {
  if (table->count == 0) return NULL;
  uint32_t slot = first_slot(table, handle);
  while (table->slots[slot] != 0) {
    const rdm__resolution *item = &table->items[table->slots[slot] - 1];
    if (item->handle.bits == handle.bits) return item;
    slot = (slot + 1) & (slot_count(table) - 1);
  }
  return NULL;
}

static void fill_slots(rdm__resolutions *table) {
  memset(table->slots, 0, slot_count(table) * sizeof *table->slots);
  for (uint32_t i = 0; i < table->count; i++) put_in_slot(table, i);
}

bool rdm__resolutions_reserve(rdm__resolutions *table) {
  if (table->count < table->capacity) return true;
  uint32_t capacity = table->capacity == 0 ? FIRST_CAPACITY : table->capacity * 2;
  uint32_t *slots = calloc((size_t)capacity * 2, sizeof *slots);
  rdm__resolution *items = slots == NULL ? NULL : realloc(table->items, capacity * sizeof *items);
  if (items == NULL) {
    free(slots);
    return false;
  }
  free(table->slots);
  table->items = items;
  table->slots = slots;
  table->capacity = capacity;
  fill_slots(table);
  return true;
}

void rdm__resolutions_add(rdm__resolutions *table, const rdm__resolution *item) {
  table->items[table->count] = *item;
  put_in_slot(table, table->count++);
}

void rdm__resolutions_drop(rdm__resolutions *table, bool (*goes)(const rdm__resolution *item)) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < table->count; i++) {
    if (!goes(&table->items[i])) table->items[kept++] = table->items[i];
  }
  if (kept == table->count) return;
  table->count = kept;
  fill_slots(table);
}

void rdm__resolutions_free(rdm__resolutions *table) {
  free(table->items);
  free(table->slots);
  *table = (rdm__resolutions){0};
}
