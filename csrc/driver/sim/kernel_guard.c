#include "driver/sim/kernel_guard.h"

#include "driver/driver.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { CAUGHT_COUNT = 4, SIGNAL_STACK_BYTES = 64 * 1024 };

static const int caught_signals[CAUGHT_COUNT] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};

/* What was installed before ours. Written once, before any handler of ours can run. */
static struct sigaction previous_actions[CAUGHT_COUNT];

/*
 * Where to go on when the guarded work fails; NULL outside it. The handler reads it, also on threads that have never
 * been here. A thread-local variable could allocate there; one with static storage would keep the whole library from
 * being loaded with dlopen. A key does neither. Written once, before any handler of ours can run.
 */
static pthread_key_t escape_key;
static bool has_escape_key;
static _Thread_local void *signal_stack;

static void forward(int number, siginfo_t *information, void *context, const struct sigaction *previous) {
  if ((previous->sa_flags & SA_SIGINFO) != 0) {
    if ((previous->sa_flags & (int)SA_RESETHAND) != 0) signal(number, SIG_DFL);
    previous->sa_sigaction(number, information, context);
  } else if (previous->sa_handler == SIG_DFL || previous->sa_handler == SIG_IGN) {
    /* With the default restored, a fault that is met again on return ends the process as it would have. */
    bool sent_by_a_process = information != NULL && information->si_code <= 0;
    if (previous->sa_handler == SIG_IGN && sent_by_a_process) return;
    signal(number, SIG_DFL);
    if (sent_by_a_process) raise(number);
  } else {
    if ((previous->sa_flags & (int)SA_RESETHAND) != 0) signal(number, SIG_DFL);
    previous->sa_handler(number);
  }
}

static void handle_signal(int number, siginfo_t *information, void *context) {
  sigjmp_buf *target = pthread_getspecific(escape_key);
  if (target != NULL) {
    pthread_setspecific(escape_key, NULL);
    siglongjmp(*target, number);
  }
  for (int index = 0; index < CAUGHT_COUNT; index++) {
    if (caught_signals[index] == number) {
      forward(number, information, context, &previous_actions[index]);
      return;
    }
  }
}

static void install(void) {
  has_escape_key = pthread_key_create(&escape_key, NULL) == 0;
  /* Without one a kernel's wild write ends the process, as it would with no simulation. */
  if (!has_escape_key) return;
  for (int index = 0; index < CAUGHT_COUNT; index++) {
    sigaction(caught_signals[index], NULL, &previous_actions[index]);
  }
  for (int index = 0; index < CAUGHT_COUNT; index++) {
    struct sigaction action = {.sa_sigaction = handle_signal};
    /* As the previous handler had it, so that it finds the mask and the stack that it asked for. */
    action.sa_mask = previous_actions[index].sa_mask;
    action.sa_flags = (previous_actions[index].sa_flags & ~(int)SA_RESETHAND) | SA_SIGINFO | SA_ONSTACK;
    sigaction(caught_signals[index], &action, NULL);
  }
}

void rdm__sim_kernel_guard_install(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, install);
}

void rdm__sim_kernel_guard_enter_thread(void) {
  void *memory =
      mmap(NULL, SIGNAL_STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return;
  stack_t stack = {.ss_sp = memory, .ss_size = SIGNAL_STACK_BYTES};
  if (sigaltstack(&stack, NULL) == 0) {
    signal_stack = memory;
  } else {
    munmap(memory, SIGNAL_STACK_BYTES);
  }
}

void rdm__sim_kernel_guard_leave_thread(void) {
  if (signal_stack == NULL) return;
  stack_t none = {.ss_flags = SS_DISABLE};
  sigaltstack(&none, NULL);
  munmap(signal_stack, SIGNAL_STACK_BYTES);
  signal_stack = NULL;
}

int rdm__sim_kernel_guard_run(void (*body)(void *argument), void *argument) {
  sigjmp_buf target;
  if (!has_escape_key) {
    body(argument);
    return RDM_HIP_SUCCESS;
  }
  /* Without the mask, which would cost a system call for each launch; it is put right after a jump instead. */
  int number = sigsetjmp(target, 0);
  if (number == 0) {
    pthread_setspecific(escape_key, &target);
    body(argument);
    pthread_setspecific(escape_key, NULL);
    return RDM_HIP_SUCCESS;
  }
  sigset_t caught;
  sigemptyset(&caught);
  for (int index = 0; index < CAUGHT_COUNT; index++) sigaddset(&caught, caught_signals[index]);
  pthread_sigmask(SIG_UNBLOCK, &caught, NULL);
  return number == SIGSEGV || number == SIGBUS ? RDM_HIP_ILLEGAL_ADDRESS : RDM_HIP_LAUNCH_FAILURE;
}
