#include "driver/sim/worker_thread.h"

#include <pthread.h>
#include <signal.h>

enum { WORKER_STACK_BYTES = 1 << 20 };

/* Kernels raise these themselves; blocking them would end the process. */
static const int synchronous_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};

bool rdm__sim_worker_thread_start(void *(*body)(void *argument), void *argument) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, WORKER_STACK_BYTES);

  sigset_t blocked;
  sigset_t previous;
  sigfillset(&blocked);
  for (unsigned index = 0; index < sizeof synchronous_signals / sizeof synchronous_signals[0]; index++) {
    sigdelset(&blocked, synchronous_signals[index]);
  }
  /* A thread starts with its creator's mask, so no signal can reach it before it blocks them itself. */
  pthread_sigmask(SIG_SETMASK, &blocked, &previous);
  pthread_t thread;
  int error = pthread_create(&thread, &attributes, body, argument);
  pthread_sigmask(SIG_SETMASK, &previous, NULL);
  pthread_attr_destroy(&attributes);
  return error == 0;
}
