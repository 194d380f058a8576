#include "library_thread.h"

#include <pthread.h>
#include <signal.h>

int rdm__library_thread_start(void *(*body)(void *argument), void *argument) {
  pthread_attr_t attributes;
  pthread_t thread;
  sigset_t all, before;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  /* A thread begins with its maker's mask, so no signal can reach it first. */
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int result = pthread_create(&thread, &attributes, body, argument);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  return result;
}
