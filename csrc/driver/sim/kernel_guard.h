/*
 * Turns a kernel's wild access into a fault of its device. A signal handler, installed once, jumps out of work that
 * runs under the guard on a thread of the simulated driver; every other signal goes to the handler that was there
 * before.
 */
#ifndef RDM_SIM_KERNEL_GUARD_H
#define RDM_SIM_KERNEL_GUARD_H

/* Installs the handlers, the first time that it is called. */
void rdm__sim_kernel_guard_install(void);

/* Gives the calling thread a signal stack of its own, so that a kernel that overruns its stack is caught too. */
void rdm__sim_kernel_guard_enter_thread(void);
void rdm__sim_kernel_guard_leave_thread(void);

/*
 * Runs `body`, which must take no lock and allocate nothing. Returns 0, or the HIP error that a GPU would give:
 * illegal address for a bad access, launch failure for a trap or an integer division by zero.
 */
int rdm__sim_kernel_guard_run(void (*body)(void *argument), void *argument);

#endif
