/*
 * What the library keeps for a thread and gives back when the thread ends.
 *
 * A hook runs on the thread that added it, once, after the destructors of the thread's own thread-locals. It makes no
 * driver call, and takes no lock in a process that is over: another thread may have held it as the process forked.
 */
#ifndef RDM_THREAD_END_H
#define RDM_THREAD_END_H

#include <stdbool.h>

/* A part of what is given back; its owner frees it from `run`. */
typedef struct rdm__thread_end_hook {
  void (*run)(struct rdm__thread_end_hook *hook);
  struct rdm__thread_end_hook *next;
} rdm__thread_end_hook;

/* False, with nothing changed, where the process has no thread-specific key or no memory left. */
bool rdm__thread_end_add(rdm__thread_end_hook *hook);

#endif
