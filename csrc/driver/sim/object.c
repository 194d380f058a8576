/* The handle table: slots in chunks that never move, found without a lock, guarded by a few locks shared among them. */
#include "driver/sim/object.h"

#include "driver/sim/state.h"

#include <pthread.h>
#include <stdlib.h>

enum { SLOTS_IN_CHUNK = 1024, CHUNK_COUNT = 4096, SHARD_COUNT = 64 };

/* Bits 0 to 23: slot. 24 to 51: generation. 52 to 55: kind. 56 to 63: a tag that no user-space address has. */
#define SLOT_MASK UINT64_C(0xFFFFFF)
#define GENERATION_MASK UINT64_C(0xFFFFFFF)
#define GENERATION_SHIFT 24
#define KIND_SHIFT 52
#define TAG UINT64_C(0x5D)
#define TAG_SHIFT 56

typedef struct handle_slot {
  rdm__sim_object *object;
  uint32_t generation;
  uint32_t next_free;
} handle_slot;

typedef struct handle_shard {
  pthread_mutex_t lock;
  char padding[128 - sizeof(pthread_mutex_t)];
} handle_shard;

struct rdm__sim_handle_table {
  /* Guards the free list and the number of slots in use. */
  pthread_mutex_t free_lock;
  uint32_t slot_count;
  /* One more than the index of the first free slot, 0 for none. */
  uint32_t first_free;
  _Atomic(handle_slot *) chunks[CHUNK_COUNT];
  atomic_uint_fast64_t counts[RDM__SIM_KIND_COUNT];
  handle_shard shards[SHARD_COUNT];
};

rdm__sim_handle_table *rdm__sim_handle_table_create(void) {
  rdm__sim_handle_table *table = calloc(1, sizeof *table);
  if (table == NULL) return NULL;
  pthread_mutex_init(&table->free_lock, NULL);
  for (int shard = 0; shard < SHARD_COUNT; shard++) pthread_mutex_init(&table->shards[shard].lock, NULL);
  return table;
}

void rdm__sim_object_init(rdm__sim_object *object, rdm__sim_kind kind, int device,
                          void (*destroy)(rdm__sim_object *object)) {
  atomic_init(&object->references, 1);
  object->kind = kind;
  object->device = device;
  object->destroy = destroy;
}

void rdm__sim_object_retain(rdm__sim_object *object) {
  atomic_fetch_add_explicit(&object->references, 1, memory_order_relaxed);
}

void rdm__sim_object_release(rdm__sim_object *object) {
  if (object == NULL) return;
  if (atomic_fetch_sub_explicit(&object->references, 1, memory_order_acq_rel) == 1) object->destroy(object);
}

static handle_slot *slot_at(rdm__sim_handle_table *table, uint32_t index) {
  handle_slot *chunk = atomic_load_explicit(&table->chunks[index / SLOTS_IN_CHUNK], memory_order_acquire);
  return chunk == NULL ? NULL : &chunk[index % SLOTS_IN_CHUNK];
}

static pthread_mutex_t *shard_lock(rdm__sim_handle_table *table, uint32_t index) {
  return &table->shards[index % SHARD_COUNT].lock;
}

/* Takes a free slot, making room where there is none. False where there is none to make. */
static bool take_slot(rdm__sim_handle_table *table, uint32_t *out_index) {
  bool found = true;
  pthread_mutex_lock(&table->free_lock);
  if (table->first_free != 0) {
    *out_index = table->first_free - 1;
    table->first_free = slot_at(table, *out_index)->next_free;
  } else if (table->slot_count == (uint32_t)SLOTS_IN_CHUNK * CHUNK_COUNT) {
    found = false;
  } else {
    *out_index = table->slot_count;
    _Atomic(handle_slot *) *chunk = &table->chunks[*out_index / SLOTS_IN_CHUNK];
    if (atomic_load_explicit(chunk, memory_order_relaxed) == NULL) {
      handle_slot *slots = calloc(SLOTS_IN_CHUNK, sizeof *slots);
      found = slots != NULL;
      if (found) atomic_store_explicit(chunk, slots, memory_order_release);
    }
    if (found) table->slot_count++;
  }
  pthread_mutex_unlock(&table->free_lock);
  return found;
}

void *rdm__sim_handle_add(rdm__sim_object *object) {
  rdm__sim_handle_table *table = rdm__sim_state()->handles;
  uint32_t index;
  if (!take_slot(table, &index)) return NULL;
  handle_slot *slot = slot_at(table, index);
  pthread_mutex_lock(shard_lock(table, index));
  slot->generation = (uint32_t)((slot->generation + 1) & GENERATION_MASK);
  if (slot->generation == 0) slot->generation = 1;
  slot->object = object;
  uint64_t bits =
      TAG << TAG_SHIFT | (uint64_t)object->kind << KIND_SHIFT | (uint64_t)slot->generation << GENERATION_SHIFT | index;
  pthread_mutex_unlock(shard_lock(table, index));
  atomic_fetch_add_explicit(&table->counts[object->kind], 1, memory_order_relaxed);
  return (void *)(uintptr_t)bits;
}

static void *find(const void *handle, rdm__sim_kind kind, bool remove) {
  rdm__sim_handle_table *table = rdm__sim_state()->handles;
  uint64_t bits = (uint64_t)(uintptr_t)handle;
  uint32_t index = (uint32_t)(bits & SLOT_MASK);
  if (bits >> TAG_SHIFT != TAG || ((bits >> KIND_SHIFT) & 0xF) != (uint64_t)kind) return NULL;
  if (index >= (uint32_t)SLOTS_IN_CHUNK * CHUNK_COUNT) return NULL;
  handle_slot *slot = slot_at(table, index);
  if (slot == NULL) return NULL;

  rdm__sim_object *object = NULL;
  pthread_mutex_lock(shard_lock(table, index));
  /* The generation alone does not tell the kind: a forged handle may name a slot of another. */
  if (slot->object != NULL && slot->generation == ((bits >> GENERATION_SHIFT) & GENERATION_MASK) &&
      slot->object->kind == kind) {
    object = slot->object;
    if (remove) {
      slot->object = NULL;
    } else {
      rdm__sim_object_retain(object);
    }
  }
  pthread_mutex_unlock(shard_lock(table, index));
  if (object == NULL || !remove) return object;

  atomic_fetch_sub_explicit(&table->counts[kind], 1, memory_order_relaxed);
  pthread_mutex_lock(&table->free_lock);
  slot->next_free = table->first_free;
  table->first_free = index + 1;
  pthread_mutex_unlock(&table->free_lock);
  return object;
}

void *rdm__sim_handle_get(const void *handle, rdm__sim_kind kind) {
  return find(handle, kind, false);
}

void *rdm__sim_handle_remove(const void *handle, rdm__sim_kind kind) {
  return find(handle, kind, true);
}

uint64_t rdm__sim_handle_count(rdm__sim_kind kind) {
  return atomic_load_explicit(&rdm__sim_state()->handles->counts[kind], memory_order_relaxed);
}
