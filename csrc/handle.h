/*
 * Handle tables: objects in memory that is never given back, named by (kind, slot, generation).
 *
 * A handle is looked up by pinning its object: one atomic step checks the generation and keeps the object alive until
 * the pin is dropped. Closing an object ends its handle at once; its memory is reused, under the next generation, once
 * the last pin is gone. So a stale handle is told by its generation and no freed memory is ever read.
 */
#ifndef RDM_HANDLE_H
#define RDM_HANDLE_H

#include "lock.h"
#include "rocm_device_map.h"

#include <stdatomic.h>
#include <stddef.h>

typedef enum rdm__handle_kind {
  RDM__HANDLE_DEVICE = 1,
  RDM__HANDLE_STREAM,
  RDM__HANDLE_THREAD_LOCAL_STREAM,
  RDM__HANDLE_ENCODER,
  RDM__HANDLE_EVENT,
  RDM__HANDLE_MODULE,
  RDM__HANDLE_KERNEL,
  RDM__HANDLE_GRAPH,
  RDM__HANDLE_KIND_END
} rdm__handle_kind;

/* The first member of every object that has a handle. */
typedef struct rdm__object {
  /* generation << 32 | closed << 31 | pins. An open object has one pin of its own. */
  _Atomic uint64_t word;
  uint32_t slot;
  uint32_t next_free;
  /* How often the slot's generations began anew: for rdm__handle_count alone. */
  _Atomic uint64_t rounds;
} rdm__object;

enum { RDM__CHUNK_SLOTS = 1024, RDM__CHUNK_COUNT = 4096, RDM__CACHE_LINE = 64 };

/* For what is seldom called, so that its need of registers and of room is not paid for on the way past it. */
#define RDM__COLD __attribute__((cold, noinline))

/* Whole cache lines: threads that use different objects share none. */
#define RDM__LINES(size) (((size) + RDM__CACHE_LINE - 1) / RDM__CACHE_LINE * RDM__CACHE_LINE)

/* A handle's bits: kind (8) | slot (24) | generation (32). A generation is never 0, so no handle is all zero. */
enum { RDM__HANDLE_KIND_SHIFT = 56, RDM__HANDLE_SLOT_SHIFT = 32 };
#define RDM__OBJECT_CLOSED (UINT64_C(1) << 31)
#define RDM__OBJECT_PINS (RDM__OBJECT_CLOSED - 1)

typedef struct rdm__handle_table {
  rdm__handle_kind kind;
  size_t object_size;
  /*
   * Called, with no lock held, by whoever drops the last pin of a closed object. Gives whether the slot is free: if
   * not, it stays with who retires, to be opened again or discarded later. May be null: then the slot is free.
   */
  bool (*retire)(rdm__object *object);
  /* Published with release once filled, so that a lookup takes no lock. */
  _Atomic(char *) chunks[RDM__CHUNK_COUNT];
  /* Each allocation writes from here on, and no lookup reads: so in cache lines of its own. */
  _Alignas(RDM__CACHE_LINE) rdm__mutex lock;
  /*
   * Guarded by the lock: slots handed out so far, and the free ones (slot + 1, 0: none), the one that was freed first
   * first, so that reuse goes around all of them and a slot's generations last.
   */
  uint32_t used;
  uint32_t first_free;
  uint32_t last_free;
} rdm__handle_table;

#define RDM__HANDLE_TABLE(handle_kind, type, retire_function)                                    \
  {                                                                                              \
    .kind = (handle_kind), .object_size = RDM__LINES(sizeof(type)), .retire = (retire_function), \
    .lock = RDM__MUTEX_INIT(RDM__RANK_LEAF)                                                      \
  }

/*
 * A slot for a new object, private to the caller until rdm__handle_open. What lies behind the rdm__object header is as
 * its last user left it, or zero. Null, with the thread's last error set, where memory or slots ran out.
 */
rdm__object *rdm__handle_allocate(rdm__handle_table *table);

/* The handle of an open object. */
static inline uint64_t rdm__handle_of(const rdm__handle_table *table, const rdm__object *object) {
  uint64_t word = atomic_load_explicit(&object->word, memory_order_relaxed);
  return (uint64_t)table->kind << RDM__HANDLE_KIND_SHIFT | (uint64_t)object->slot << RDM__HANDLE_SLOT_SHIFT |
         word >> 32;
}

/* Publishes an object that only the caller has, allocated or kept by its table's `retire`, and gives its handle. */
static inline uint64_t rdm__handle_open(const rdm__handle_table *table, rdm__object *object) {
  uint64_t word = atomic_load_explicit(&object->word, memory_order_relaxed);
  atomic_store_explicit(&object->word, (word & ~(RDM__OBJECT_CLOSED | RDM__OBJECT_PINS)) | 1, memory_order_release);
  return rdm__handle_of(table, object);
}

/* Gives back a slot that was allocated and not opened. */
void rdm__handle_discard(rdm__handle_table *table, rdm__object *object);

/* Pins the object of a handle. Fails with RDM_ERROR_NULL_HANDLE, RDM_ERROR_FOREIGN_HANDLE or RDM_ERROR_STALE_HANDLE. */
rdm_status rdm__handle_pin(rdm__handle_table *table, uint64_t bits, rdm__object **out_object);

/* The same without a message: for callers to whom a stale handle is no failure. */
rdm_status rdm__handle_try_pin(rdm__handle_table *table, uint64_t bits, rdm__object **out_object);

/*
 * The object of a handle, not pinned: for tables that never close an object, and for who reads the object by atomics
 * and asks rdm__object_is_named afterwards. Fails as rdm__handle_pin.
 */
rdm_status rdm__handle_find(rdm__handle_table *table, uint64_t bits, rdm__object **out_object);

/* Whether these are the bits of the object's handle, and the object is open. Its memory is never given back, so it may
 * be asked of an object that has long been closed. */
static inline bool rdm__object_is_named(const rdm__object *object, uint64_t bits) {
  uint64_t word = atomic_load_explicit(&object->word, memory_order_acquire);
  return (word & ~RDM__OBJECT_PINS) == bits << 32;
}

/*
 * Ends a handle, as rdm__handle_pin, rdm__object_close and rdm__object_unpin in one; in one step where nobody else has
 * the object pinned. Fails as rdm__handle_pin, and with RDM_ERROR_STALE_HANDLE where another thread came first.
 */
rdm_status rdm__handle_close(rdm__handle_table *table, uint64_t bits);

/* Pins an object that something else keeps alive or in its slot; false where it is closed. */
bool rdm__object_pin(rdm__object *object);

/* Drops a pin. The last one of a closed object retires it. */
void rdm__object_unpin(rdm__handle_table *table, rdm__object *object);

/* Ends the object's handle and drops the object's own pin. False where it was closed before: the caller came second. */
bool rdm__object_close(rdm__handle_table *table, rdm__object *object);

/* Whether the object has been closed. A moment later it may be. */
bool rdm__object_is_closed(const rdm__object *object);

typedef struct rdm__handle_totals {
  uint64_t created;
  uint64_t ended;
} rdm__handle_totals;

/*
 * How many handles of the table were opened and closed so far, as the slots' generations tell: so nothing is counted as
 * it happens. Reads each slot that was ever used, one after the other, while other threads go on.
 */
void rdm__handle_count(rdm__handle_table *table, rdm__handle_totals *out_totals);

#endif
