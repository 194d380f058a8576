#include "races.h"

#include "record.h"

#include <stdlib.h>

enum { GRANULE = 8, CELL_BITS = 17, OBJECT_BITS = 14, ACCESSES = 8 };

typedef struct noted_access {
  uint32_t clock;
  uint32_t where;
  uint8_t thread;
  uint8_t mask;
  uint8_t kind;
} noted_access;

/* Eight bytes of memory and who used them. */
typedef struct cell {
  uintptr_t granule;
  uint32_t freed_where;
  uint8_t freed_mask;
  uint8_t next_evicted;
  noted_access accesses[ACCESSES];
} cell;

static cell cells[1u << CELL_BITS];
static sync_object objects[1u << OBJECT_BITS];

/* Neighbours in memory stay neighbours here: a schedule's process is new, and each page that it touches costs. */
enum { NEIGHBOURS = 32 };

static uint32_t hash_of(uintptr_t value, int bits) {
  return (uint32_t)((uint64_t)value * UINT64_C(0x9e3779b97f4a7c15) >> (64 - bits));
}

static cell *cell_of(uintptr_t granule) {
  uintptr_t number = granule / GRANULE;
  uint32_t place = hash_of(number / NEIGHBOURS, CELL_BITS - 5) * NEIGHBOURS + (uint32_t)(number % NEIGHBOURS);
  for (uint32_t i = 0; i < 1u << CELL_BITS; i++) {
    cell *candidate = &cells[(place + i) & ((1u << CELL_BITS) - 1)];
    if (candidate->granule == granule) return candidate;
    if (candidate->granule != 0) continue;
    candidate->granule = granule;
    return candidate;
  }
  schedule_fail("the schedule uses more memory than is watched");
}

sync_object *races_object(const volatile void *address) {
  uint32_t place = hash_of((uintptr_t)address, OBJECT_BITS);
  for (uint32_t i = 0; i < 1u << OBJECT_BITS; i++) {
    sync_object *candidate = &objects[(place + i) & ((1u << OBJECT_BITS) - 1)];
    if (candidate->address == address) return candidate;
    if (candidate->address != NULL) continue;
    candidate->address = address;
    return candidate;
  }
  abort();
}

void clock_join(vector_clock *into, const vector_clock *from) {
  for (int i = 0; i < MOST_THREADS; i++) {
    if (from->of[i] > into->of[i]) into->of[i] = from->of[i];
  }
}

void races_acquire(const vector_clock *from) {
  if (schedule_self != NULL) clock_join(&schedule_self->now, from);
}

void races_release(vector_clock *into) {
  schedule_thread *self = schedule_self;
  if (self == NULL) return;
  clock_join(into, &self->now);
  self->now.of[self->number]++;
}

static bool is_write(uint8_t kind) {
  return kind == ACCESS_WRITE || kind == ACCESS_ATOMIC_WRITE;
}

static bool is_atomic(uint8_t kind) {
  return kind == ACCESS_ATOMIC_READ || kind == ACCESS_ATOMIC_WRITE;
}

static const char *text_of(uint8_t kind) {
  static const char *const texts[] = {"read", "write", "atomic read", "atomic write"};
  return texts[kind];
}

static void check(const cell *cell, const schedule_thread *self, uint8_t mask, access_kind kind, uintptr_t where) {
  if ((cell->freed_mask & mask) != 0) {
    the_record->other_frame = cell->freed_where;
    schedule_fail("use of freed memory: %s of %p by thread %u at @%#zx; it was freed at @%#zx", text_of((uint8_t)kind),
                  (void *)cell->granule, self->number, (size_t)where, (size_t)cell->freed_where);
  }
  for (int i = 0; i < ACCESSES; i++) {
    const noted_access *other = &cell->accesses[i];
    if (other->clock == 0 || (other->mask & mask) == 0 || other->thread == self->number) continue;
    if (!is_write(other->kind) && !is_write((uint8_t)kind)) continue;
    if (is_atomic(other->kind) && is_atomic((uint8_t)kind)) continue;
    if (other->clock <= self->now.of[other->thread]) continue;
    the_record->other_frame = other->where;
    schedule_fail("data race: %s of %p by thread %u at @%#zx and %s by thread %u at @%#zx, neither before the other",
                  text_of((uint8_t)kind), (void *)cell->granule, self->number, (size_t)where, text_of(other->kind),
                  (unsigned)other->thread, (size_t)other->where);
  }
}

/* In the place of an earlier one like it, else of one that came before this, else of any. */
static noted_access *place_for(cell *cell, const schedule_thread *self, uint8_t mask, access_kind kind) {
  noted_access *free_place = NULL;
  for (int i = 0; i < ACCESSES; i++) {
    noted_access *place = &cell->accesses[i];
    if (place->clock == 0) {
      if (free_place == NULL) free_place = place;
    } else if (place->thread == self->number && place->kind == kind && (place->mask & ~mask) == 0) {
      return place;
    }
  }
  if (free_place != NULL) return free_place;
  return &cell->accesses[cell->next_evicted++ % ACCESSES];
}

static void access_granule(uintptr_t granule, uint8_t mask, access_kind kind, uintptr_t where) {
  const schedule_thread *self = schedule_self;
  cell *cell = cell_of(granule);
  check(cell, self, mask, kind, where);
  *place_for(cell, self, mask, kind) = (noted_access){.clock = self->now.of[self->number],
                                                      .where = (uint32_t)where,
                                                      .thread = (uint8_t)self->number,
                                                      .mask = mask,
                                                      .kind = (uint8_t)kind};
}

/* Calls `visit` for each granule of a block with the bytes of it that belong to the block. */
static uint8_t next_granule(uintptr_t *at, uintptr_t end, uintptr_t *out_granule) {
  *out_granule = *at - *at % GRANULE;
  unsigned first = (unsigned)(*at - *out_granule);
  unsigned after = end - *out_granule < GRANULE ? (unsigned)(end - *out_granule) : GRANULE;
  *at = *out_granule + after;
  return (uint8_t)((1u << after) - (1u << first));
}

void races_access(const volatile void *address, size_t size, access_kind kind, uintptr_t where) {
  if (schedule_self == NULL) return;
  uintptr_t at = (uintptr_t)address;
  uintptr_t end = at + size;
  while (at < end) {
    uintptr_t granule;
    uint8_t mask = next_granule(&at, end, &granule);
    access_granule(granule, mask, kind, where);
  }
}

void races_freed(const void *address, size_t size, uintptr_t where) {
  uintptr_t at = (uintptr_t)address;
  uintptr_t end = at + size;
  while (at < end) {
    uintptr_t granule;
    uint8_t mask = next_granule(&at, end, &granule);
    access_granule(granule, mask, ACCESS_WRITE, where);
    cell *freed = cell_of(granule);
    freed->freed_mask |= mask;
    freed->freed_where = (uint32_t)where;
  }
}
