#include "handle.h"

#include "status.h"

#include <stdlib.h>

/* bits: kind (8) | slot (24) | generation (32). A generation is never 0, so no handle is all zero. */
enum { KIND_SHIFT = 56, SLOT_SHIFT = 32 };
static const uint64_t slot_mask = 0xffffff;
static const uint64_t closed_bit = UINT64_C(1) << 31;
static const uint64_t pin_mask = (UINT64_C(1) << 31) - 1;

static const char *const kind_names[RDM__HANDLE_KIND_END] = {
    [RDM__HANDLE_DEVICE] = "device",
    [RDM__HANDLE_STREAM] = "stream",
    [RDM__HANDLE_THREAD_LOCAL_STREAM] = "thread-local stream",
    [RDM__HANDLE_ENCODER] = "encoder",
    [RDM__HANDLE_EVENT] = "event",
    [RDM__HANDLE_MODULE] = "module",
    [RDM__HANDLE_KERNEL] = "kernel",
};

static uint32_t generation_of(uint64_t word) {
  return (uint32_t)(word >> 32);
}

static rdm__object *object_at(rdm__handle_table *table, uint32_t slot) {
  char *chunk = atomic_load_explicit(&table->chunks[slot / RDM__CHUNK_SLOTS], memory_order_acquire);
  return chunk == NULL ? NULL : (rdm__object *)(void *)(chunk + (slot % RDM__CHUNK_SLOTS) * table->object_size);
}

/* With the table's lock held: a slot never used before, in a fresh chunk where the last one is full. */
static rdm__object *extend(rdm__handle_table *table) {
  uint32_t slot = table->used;
  if (slot == (uint32_t)RDM__CHUNK_SLOTS * RDM__CHUNK_COUNT) return NULL;
  if (slot % RDM__CHUNK_SLOTS == 0) {
    char *chunk = calloc(RDM__CHUNK_SLOTS, table->object_size);
    if (chunk == NULL) return NULL;
    for (uint32_t i = 0; i < RDM__CHUNK_SLOTS; i++) {
      rdm__object *object = (rdm__object *)(void *)(chunk + i * table->object_size);
      object->slot = slot + i;
      atomic_init(&object->word, UINT64_C(1) << 32 | closed_bit);
    }
    atomic_store_explicit(&table->chunks[slot / RDM__CHUNK_SLOTS], chunk, memory_order_release);
  }
  table->used++;
  return object_at(table, slot);
}

rdm__object *rdm__handle_allocate(rdm__handle_table *table) {
  rdm__mutex_lock(&table->lock);
  rdm__object *object = NULL;
  if (table->first_free != 0) {
    object = object_at(table, table->first_free - 1);
    table->first_free = object->next_free;
    if (table->first_free == 0) table->last_free = 0;
  } else {
    object = extend(table);
  }
  rdm__mutex_unlock(&table->lock);
  if (object == NULL) {
    rdm__fail(RDM_ERROR_RESOURCE, "no room for one more %s: memory ran out, or %d are alive", kind_names[table->kind],
              RDM__CHUNK_SLOTS * RDM__CHUNK_COUNT);
  }
  return object;
}

uint64_t rdm__handle_open(rdm__handle_table *table, rdm__object *object) {
  uint64_t word = atomic_load_explicit(&object->word, memory_order_relaxed);
  atomic_store_explicit(&object->word, (word & ~(closed_bit | pin_mask)) | 1, memory_order_release);
  return rdm__handle_of(table, object);
}

void rdm__handle_discard(rdm__handle_table *table, rdm__object *object) {
  rdm__mutex_lock(&table->lock);
  object->next_free = 0;
  if (table->last_free == 0) {
    table->first_free = object->slot + 1;
  } else {
    object_at(table, table->last_free - 1)->next_free = object->slot + 1;
  }
  table->last_free = object->slot + 1;
  rdm__mutex_unlock(&table->lock);
}

uint64_t rdm__handle_of(const rdm__handle_table *table, const rdm__object *object) {
  uint64_t word = atomic_load_explicit(&object->word, memory_order_relaxed);
  return (uint64_t)table->kind << KIND_SHIFT | (uint64_t)object->slot << SLOT_SHIFT | generation_of(word);
}

rdm_status rdm__handle_try_pin(rdm__handle_table *table, uint64_t bits, rdm__object **out_object) {
  if (bits == 0) return RDM_ERROR_NULL_HANDLE;
  uint32_t slot = (uint32_t)(bits >> SLOT_SHIFT & slot_mask);
  uint32_t generation = (uint32_t)bits;
  if (bits >> KIND_SHIFT != (uint64_t)table->kind || slot >= (uint32_t)RDM__CHUNK_SLOTS * RDM__CHUNK_COUNT) {
    return RDM_ERROR_FOREIGN_HANDLE;
  }
  rdm__object *object = object_at(table, slot);
  if (object == NULL) return RDM_ERROR_FOREIGN_HANDLE;
  uint64_t word = atomic_load_explicit(&object->word, memory_order_acquire);
  while (generation == generation_of(word) && (word & closed_bit) == 0) {
    if (atomic_compare_exchange_weak_explicit(&object->word, &word, word + 1, memory_order_acquire,
                                              memory_order_acquire)) {
      *out_object = object;
      return RDM_OK;
    }
  }
  /* A free slot already has the generation of its next handle, and no pin. */
  bool never_opened = generation == generation_of(word) && (word & pin_mask) == 0;
  bool foreign = generation == 0 || generation > generation_of(word) || never_opened;
  return foreign ? RDM_ERROR_FOREIGN_HANDLE : RDM_ERROR_STALE_HANDLE;
}

static const char *article(const char *noun) {
  return noun[0] == 'e' ? "an" : "a";
}

rdm_status rdm__handle_pin(rdm__handle_table *table, uint64_t bits, rdm__object **out_object) {
  const char *noun = kind_names[table->kind];
  rdm_status status = rdm__handle_try_pin(table, bits, out_object);
  if (status == RDM_OK) return RDM_OK;
  if (status == RDM_ERROR_NULL_HANDLE) return rdm__fail(status, "the %s handle is null", noun);
  unsigned long long value = bits;
  if (status == RDM_ERROR_STALE_HANDLE) {
    return rdm__fail(status, "the %s handle %#llx was released%s", noun, value,
                     table->kind == RDM__HANDLE_ENCODER ? " with its stream, or cleared" : "");
  }
  uint64_t kind = bits >> KIND_SHIFT;
  if (kind > 0 && kind < RDM__HANDLE_KIND_END && kind != (uint64_t)table->kind) {
    return rdm__fail(status, "%#llx is %s %s handle, not %s %s", value, article(kind_names[kind]), kind_names[kind],
                     article(noun), noun);
  }
  return rdm__fail(status, "%#llx was never %s %s handle of this process", value, article(noun), noun);
}

bool rdm__object_pin(rdm__object *object) {
  uint64_t word = atomic_load_explicit(&object->word, memory_order_acquire);
  while ((word & closed_bit) == 0) {
    if (atomic_compare_exchange_weak_explicit(&object->word, &word, word + 1, memory_order_acquire,
                                              memory_order_acquire)) {
      return true;
    }
  }
  return false;
}

/* The word of the slot's next generation: closed until it is opened. 0 is skipped, so that no handle is all zero. */
static uint64_t next_generation(uint64_t word) {
  uint32_t generation = generation_of(word) + 1;
  return (uint64_t)(generation == 0 ? 1 : generation) << 32 | closed_bit;
}

void rdm__object_unpin(rdm__handle_table *table, rdm__object *object) {
  uint64_t word = atomic_load_explicit(&object->word, memory_order_relaxed);
  bool is_last;
  uint64_t after;
  do {
    is_last = (word & closed_bit) != 0 && (word & pin_mask) == 1;
    /* In one step, so that nobody sees the old generation closed and without a pin, as a slot never opened is. */
    after = is_last ? next_generation(word) : word - 1;
  } while (
      !atomic_compare_exchange_weak_explicit(&object->word, &word, after, memory_order_acq_rel, memory_order_relaxed));
  if (!is_last) return;
  if (table->retire != NULL) table->retire(object);
  rdm__handle_discard(table, object);
}

bool rdm__object_close(rdm__handle_table *table, rdm__object *object) {
  uint64_t before = atomic_fetch_or_explicit(&object->word, closed_bit, memory_order_acq_rel);
  if ((before & closed_bit) != 0) return false;
  rdm__object_unpin(table, object);
  return true;
}

bool rdm__object_is_closed(const rdm__object *object) {
  return (atomic_load_explicit(&object->word, memory_order_acquire) & closed_bit) != 0;
}
