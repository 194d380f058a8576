#include "thread_end.h"

#include "lock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static pthread_key_t key;
/* Held while the key is made, by the first thread that needs it; tried again where the process had none left. */
static rdm__mutex key_lock = RDM__MUTEX_INIT(RDM__RANK_LEAF);
static atomic_bool has_key;

/* A hook that adds another one brings the thread back here: the key's value is set again. */
static void run_all(void *first) {
  rdm__thread_end_hook *hook = first;
  while (hook != NULL) {
    rdm__thread_end_hook *next = hook->next;
    hook->run(hook);
    hook = next;
  }
}

static bool make_key(void) {
  if (atomic_load_explicit(&has_key, memory_order_acquire)) return true;
  rdm__mutex_lock(&key_lock);
  bool made = atomic_load_explicit(&has_key, memory_order_relaxed) || pthread_key_create(&key, run_all) == 0;
  atomic_store_explicit(&has_key, made, memory_order_release);
  rdm__mutex_unlock(&key_lock);
  return made;
}

bool rdm__thread_end_add(rdm__thread_end_hook *hook) {
  if (!make_key()) return false;
  hook->next = pthread_getspecific(key);
  return pthread_setspecific(key, hook) == 0;
}
