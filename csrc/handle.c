#include "handle.h"

#include "status.h"

#include <sched.h>
#include <stdlib.h>

static const char *const kind_names[RDM__HANDLE_KIND_END] = {
    [RDM__HANDLE_DEVICE] = "device",
    [RDM__HANDLE_STREAM] = "stream",
    [RDM__HANDLE_THREAD_LOCAL_STREAM] = "thread-local stream",
    [RDM__HANDLE_ENCODER] = "encoder",
    [RDM__HANDLE_EVENT] = "event",
    [RDM__HANDLE_MODULE] = "module",
    [RDM__HANDLE_KERNEL] = "kernel",
    [RDM__HANDLE_GRAPH] = "graph",
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
    /* One object too many makes room to begin at a whole line. */
    char *memory = calloc(RDM__CHUNK_SLOTS + 1, table->object_size);
    if (memory == NULL) return NULL;
    char *chunk = memory + (RDM__CACHE_LINE - (uintptr_t)memory % RDM__CACHE_LINE) % RDM__CACHE_LINE;
    for (uint32_t i = 0; i < RDM__CHUNK_SLOTS; i++) {
      rdm__object *object = (rdm__object *)(void *)(chunk + i * table->object_size);
      object->slot = slot + i;
      atomic_init(&object->word, UINT64_C(1) << 32 | RDM__OBJECT_CLOSED);
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

/* What the object's word says of a handle: RDM_OK while it is the open object's. */
static rdm_status judge(uint64_t word, uint32_t generation) {
  bool is_generation = generation == generation_of(word);
  if (is_generation && (word & RDM__OBJECT_CLOSED) == 0) return RDM_OK;
  /* A free slot already has the generation of its next handle, and no pin. */
  bool never_opened = is_generation && (word & RDM__OBJECT_PINS) == 0;
  bool foreign = generation == 0 || generation > generation_of(word) || never_opened;
  return foreign ? RDM_ERROR_FOREIGN_HANDLE : RDM_ERROR_STALE_HANDLE;
}

/* The object in the handle's slot, of whatever generation. */
static rdm_status object_of(rdm__handle_table *table, uint64_t bits, rdm__object **out_object) {
  if (bits == 0) return RDM_ERROR_NULL_HANDLE;
  uint32_t slot = (uint32_t)(bits >> RDM__HANDLE_SLOT_SHIFT & 0xffffff);
  if (bits >> RDM__HANDLE_KIND_SHIFT != (uint64_t)table->kind ||
      slot >= (uint32_t)RDM__CHUNK_SLOTS * RDM__CHUNK_COUNT) {
    return RDM_ERROR_FOREIGN_HANDLE;
  }
  *out_object = object_at(table, slot);
  return *out_object == NULL ? RDM_ERROR_FOREIGN_HANDLE : RDM_OK;
}

rdm_status rdm__handle_try_pin(rdm__handle_table *table, uint64_t bits, rdm__object **out_object) {
  rdm__object *object = NULL;
  rdm_status status = object_of(table, bits, &object);
  if (status != RDM_OK) return status;
  uint64_t word = atomic_load_explicit(&object->word, memory_order_acquire);
  while ((status = judge(word, (uint32_t)bits)) == RDM_OK) {
    if (atomic_compare_exchange_weak_explicit(&object->word, &word, word + 1, memory_order_acquire,
                                              memory_order_acquire)) {
      *out_object = object;
      return RDM_OK;
    }
  }
  return status;
}

static const char *article(const char *noun) {
  return noun[0] == 'e' ? "an" : "a";
}

/* Says what is wrong with a handle. */
static RDM__COLD rdm_status refuse(const rdm__handle_table *table, uint64_t bits, rdm_status status) {
  const char *noun = kind_names[table->kind];
  if (status == RDM_ERROR_NULL_HANDLE) return rdm__fail(status, "the %s handle is null", noun);
  unsigned long long value = bits;
  if (status == RDM_ERROR_STALE_HANDLE) {
    return rdm__fail(status, "the %s handle %#llx was released%s", noun, value,
                     table->kind == RDM__HANDLE_ENCODER ? " with its stream, or cleared" : "");
  }
  uint64_t kind = bits >> RDM__HANDLE_KIND_SHIFT;
  if (kind > 0 && kind < RDM__HANDLE_KIND_END && kind != (uint64_t)table->kind) {
    return rdm__fail(status, "%#llx is %s %s handle, not %s %s", value, article(kind_names[kind]), kind_names[kind],
                     article(noun), noun);
  }
  return rdm__fail(status, "%#llx was never %s %s handle of this process", value, article(noun), noun);
}

rdm_status rdm__handle_pin(rdm__handle_table *table, uint64_t bits, rdm__object **out_object) {
  rdm_status status = rdm__handle_try_pin(table, bits, out_object);
  return status == RDM_OK ? RDM_OK : refuse(table, bits, status);
}

rdm_status rdm__handle_find(rdm__handle_table *table, uint64_t bits, rdm__object **out_object) {
  rdm_status status = object_of(table, bits, out_object);
  if (status == RDM_OK) {
    status = judge(atomic_load_explicit(&(*out_object)->word, memory_order_acquire), (uint32_t)bits);
  }
  return status == RDM_OK ? RDM_OK : refuse(table, bits, status);
}

bool rdm__object_pin(rdm__object *object) {
  uint64_t word = atomic_load_explicit(&object->word, memory_order_acquire);
  while ((word & RDM__OBJECT_CLOSED) == 0) {
    if (atomic_compare_exchange_weak_explicit(&object->word, &word, word + 1, memory_order_acquire,
                                              memory_order_acquire)) {
      return true;
    }
  }
  return false;
}

/* The word of the slot's next generation: closed until it is opened. */
static uint64_t next_generation(uint64_t word) {
  return (uint64_t)(generation_of(word) + 1) << 32 | RDM__OBJECT_CLOSED;
}

/* After the last generation comes 0, which no handle has, and then the first. Those that count see the 0 and wait. */
static RDM__COLD void begin_anew(rdm__object *object) {
  atomic_fetch_add_explicit(&object->rounds, 1, memory_order_release);
  atomic_store_explicit(&object->word, UINT64_C(1) << 32 | RDM__OBJECT_CLOSED, memory_order_release);
}

/* The last pin is gone, and the handle before it; `word` is what the object's became. */
static void end(rdm__handle_table *table, rdm__object *object, uint64_t word) {
  if (generation_of(word) == 0) begin_anew(object);
  if (table->retire == NULL || table->retire(object)) rdm__handle_discard(table, object);
}

void rdm__object_unpin(rdm__handle_table *table, rdm__object *object) {
  uint64_t word = atomic_load_explicit(&object->word, memory_order_relaxed);
  bool is_last;
  uint64_t after;
  do {
    is_last = (word & RDM__OBJECT_CLOSED) != 0 && (word & RDM__OBJECT_PINS) == 1;
    /* In one step, so that nobody sees the old generation closed and without a pin, as a slot never opened is. */
    after = is_last ? next_generation(word) : word - 1;
  } while (
      !atomic_compare_exchange_weak_explicit(&object->word, &word, after, memory_order_acq_rel, memory_order_relaxed));
  if (!is_last) return;
  end(table, object, after);
}

bool rdm__object_close(rdm__handle_table *table, rdm__object *object) {
  uint64_t before = atomic_fetch_or_explicit(&object->word, RDM__OBJECT_CLOSED, memory_order_acq_rel);
  if ((before & RDM__OBJECT_CLOSED) != 0) return false;
  rdm__object_unpin(table, object);
  return true;
}

/* Where others have the object pinned, or the handle is none. */
static RDM__COLD rdm_status close_in_steps(rdm__handle_table *table, uint64_t bits) {
  rdm__object *object = NULL;
  rdm_status status = rdm__handle_pin(table, bits, &object);
  if (status != RDM_OK) return status;
  if (!rdm__object_close(table, object)) {
    status = rdm__fail(RDM_ERROR_STALE_HANDLE, "the %s handle %#llx was released by another thread",
                       kind_names[table->kind], (unsigned long long)bits);
  }
  rdm__object_unpin(table, object);
  return status;
}

rdm_status rdm__handle_close(rdm__handle_table *table, uint64_t bits) {
  rdm__object *object = NULL;
  if (object_of(table, bits, &object) != RDM_OK) return close_in_steps(table, bits);
  /* The object's own pin is the only one: nobody can look in between, so closing and retiring are one step. */
  uint64_t word = (uint64_t)(uint32_t)bits << 32 | 1;
  uint64_t after = next_generation(word);
  if (!atomic_compare_exchange_strong_explicit(&object->word, &word, after, memory_order_acq_rel,
                                               memory_order_relaxed)) {
    return close_in_steps(table, bits);
  }
  end(table, object, after);
  return RDM_OK;
}

bool rdm__object_is_closed(const rdm__object *object) {
  return (atomic_load_explicit(&object->word, memory_order_acquire) & RDM__OBJECT_CLOSED) != 0;
}

/* The object's word, and how many generations came before those that it counts. */
static uint64_t read_word(const rdm__object *object, uint64_t *out_before) {
  for (;;) {
    uint64_t rounds = atomic_load_explicit(&object->rounds, memory_order_acquire);
    uint64_t word = atomic_load_explicit(&object->word, memory_order_acquire);
    if (generation_of(word) != 0 && rounds == atomic_load_explicit(&object->rounds, memory_order_relaxed)) {
      *out_before = rounds * UINT32_MAX;
      return word;
    }
    sched_yield();
  }
}

void rdm__handle_count(rdm__handle_table *table, rdm__handle_totals *out_totals) {
  *out_totals = (rdm__handle_totals){0};
  rdm__mutex_lock(&table->lock);
  uint32_t used = table->used;
  rdm__mutex_unlock(&table->lock);
  for (uint32_t slot = 0; slot < used; slot++) {
    uint64_t ended = 0;
    uint64_t word = read_word(object_at(table, slot), &ended);
    ended += generation_of(word) - 1;
    bool is_closed = (word & RDM__OBJECT_CLOSED) != 0;
    /* Closed and still pinned: its handle has ended, and its generation not yet. */
    bool is_ending = is_closed && (word & RDM__OBJECT_PINS) != 0;
    out_totals->created += ended + (is_ending || !is_closed);
    out_totals->ended += ended + is_ending;
  }
}
