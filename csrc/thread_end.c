#include "thread_end.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* The process's key + 1, 0 until a thread needed it. Without a lock, since a process may fork before its first use of
 * the driver and go on in the child, where one that another thread held would stay taken. */
static _Atomic uint64_t published_key;

/* A hook that adds another one brings the thread back here: the key's value is set again. */
static void run_all(void *first) {
  rdm__thread_end_hook *hook = first;
  while (hook != NULL) {
    rdm__thread_end_hook *next = hook->next;
    hook->run(hook);
    hook = next;
  }
}

/* False where the process has no key left; then the next call tries again. */
static bool get_key(pthread_key_t *out_key) {
  uint64_t published = atomic_load_explicit(&published_key, memory_order_acquire);
  if (published == 0) {
    pthread_key_t made;
    if (pthread_key_create(&made, run_all) != 0) return false;
    if (atomic_compare_exchange_strong_explicit(&published_key, &published, (uint64_t)made + 1, memory_order_acq_rel,
                                                memory_order_acquire)) {
      published = (uint64_t)made + 1;
    } else {
      pthread_key_delete(made);
    }
  }
  *out_key = (pthread_key_t)(published - 1);
  return true;
}

bool rdm__thread_end_add(rdm__thread_end_hook *hook) {
  pthread_key_t key;
  if (!get_key(&key)) return false;
  hook->next = pthread_getspecific(key);
  return pthread_setspecific(key, hook) == 0;
}
