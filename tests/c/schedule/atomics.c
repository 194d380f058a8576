/*
 * Atomics: -fsanitize=thread makes each one a call, so each is a scheduling point before it happens. The schedule is
 * sequentially consistent; the memory orders decide what one thread's step makes known to another, so that an order
 * which is too weak shows as a data race on what it should have published.
 */
#include "races.h"

#define HERE ((uintptr_t)__builtin_return_address(0))

static bool acquires(int order) {
  return order == __ATOMIC_ACQUIRE || order == __ATOMIC_CONSUME || order == __ATOMIC_ACQ_REL ||
         order == __ATOMIC_SEQ_CST;
}

static bool releases(int order) {
  return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

static void stand_before(point_kind kind, const volatile void *address) {
  if (!schedule_is_fresh(address)) schedule_point(kind, (const void *)(uintptr_t)address);
}

static void note_read(const volatile void *address, size_t size, int order, uintptr_t where) {
  schedule_thread *self = schedule_self;
  if (self == NULL) return;
  races_access(address, size, ACCESS_ATOMIC_READ, where);
  const sync_object *object = races_object(address);
  clock_join(acquires(order) ? &self->now : &self->seen_relaxed, &object->released);
}

/* A read-modify-write goes on with what earlier releases let go; a store begins anew. */
static void note_write(const volatile void *address, size_t size, int order, bool goes_on, uintptr_t where) {
  schedule_thread *self = schedule_self;
  if (self == NULL) return;
  if (schedule_is_fresh(address) && !releases(order)) return;
  races_access(address, size, ACCESS_ATOMIC_WRITE, where);
  sync_object *object = races_object(address);
  if (!goes_on) object->released = (vector_clock){{0}};
  clock_join(&object->released, &self->fenced);
  if (releases(order)) races_release(&object->released);
}

static void fence(int order) {
  schedule_thread *self = schedule_self;
  if (self == NULL) return;
  if (acquires(order)) clock_join(&self->now, &self->seen_relaxed);
  if (!releases(order)) return;
  self->fenced = self->now;
  self->now.of[self->number]++;
}

#define READ_MODIFY_WRITE(bits, type, name, operation)                               \
  type __tsan_atomic##bits##_##name(volatile type *address, type value, int order);  \
  type __tsan_atomic##bits##_##name(volatile type *address, type value, int order) { \
    stand_before(POINT_EXCHANGE, address);                                           \
    note_read(address, sizeof *address, order, HERE);                                \
    note_write(address, sizeof *address, order, true, HERE);                         \
    return operation(address, value, __ATOMIC_SEQ_CST);                              \
  }

#define COMPARE_EXCHANGE(bits, type, name)                                                                          \
  int __tsan_atomic##bits##_compare_exchange_##name(volatile type *address, type *expected, type wanted, int order, \
                                                    int failed_order);                                              \
  int __tsan_atomic##bits##_compare_exchange_##name(volatile type *address, type *expected, type wanted, int order, \
                                                    int failed_order) {                                             \
    stand_before(POINT_EXCHANGE, address);                                                                          \
    bool done = __atomic_compare_exchange_n(address, expected, wanted, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);  \
    note_read(address, sizeof *address, done ? order : failed_order, HERE);                                         \
    if (done) note_write(address, sizeof *address, order, true, HERE);                                              \
    return done;                                                                                                    \
  }

#define ATOMIC_FUNCTIONS(bits, type)                                                                             \
  type __tsan_atomic##bits##_load(const volatile type *address, int order);                                      \
  type __tsan_atomic##bits##_load(const volatile type *address, int order) {                                     \
    stand_before(POINT_LOAD, address);                                                                           \
    note_read(address, sizeof *address, order, HERE);                                                            \
    return __atomic_load_n(address, __ATOMIC_SEQ_CST);                                                           \
  }                                                                                                              \
  void __tsan_atomic##bits##_store(volatile type *address, type value, int order);                               \
  void __tsan_atomic##bits##_store(volatile type *address, type value, int order) {                              \
    stand_before(POINT_STORE, address);                                                                          \
    note_write(address, sizeof *address, order, false, HERE);                                                    \
    __atomic_store_n(address, value, __ATOMIC_SEQ_CST);                                                          \
  }                                                                                                              \
  READ_MODIFY_WRITE(bits, type, exchange, __atomic_exchange_n)                                                   \
  READ_MODIFY_WRITE(bits, type, fetch_add, __atomic_fetch_add)                                                   \
  READ_MODIFY_WRITE(bits, type, fetch_sub, __atomic_fetch_sub)                                                   \
  READ_MODIFY_WRITE(bits, type, fetch_and, __atomic_fetch_and)                                                   \
  READ_MODIFY_WRITE(bits, type, fetch_or, __atomic_fetch_or)                                                     \
  READ_MODIFY_WRITE(bits, type, fetch_xor, __atomic_fetch_xor)                                                   \
  COMPARE_EXCHANGE(bits, type, strong)                                                                           \
  COMPARE_EXCHANGE(bits, type, weak)                                                                             \
  /* What clang calls for both. */                                                                               \
  type __tsan_atomic##bits##_compare_exchange_val(volatile type *address, type expected, type wanted, int order, \
                                                  int failed_order);                                             \
  type __tsan_atomic##bits##_compare_exchange_val(volatile type *address, type expected, type wanted, int order, \
                                                  int failed_order) {                                            \
    __tsan_atomic##bits##_compare_exchange_strong(address, &expected, wanted, order, failed_order);              \
    return expected;                                                                                             \
  }

ATOMIC_FUNCTIONS(8, unsigned char)
ATOMIC_FUNCTIONS(16, unsigned short)
ATOMIC_FUNCTIONS(32, unsigned)
ATOMIC_FUNCTIONS(64, unsigned long)

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_thread_fence(int order) {
  schedule_point(POINT_FENCE, NULL);
  fence(order);
}

void __tsan_atomic_signal_fence(int order);
void __tsan_atomic_signal_fence(int order) {
  (void)order;
}
