/*
 * A device: one GPU's state, built on first use and kept for the life of the process.
 *
 * Threading. The fields above the line never change once the device is in the map. `fault` is set once, by
 * compare-and-swap. Below it each part has its own lock, in the file named after it.
 */
#ifndef RDM_DEVICE_H
#define RDM_DEVICE_H

#include "driver/driver.h"
#include "handle.h"
#include "lock.h"
#include "pointer_stack.h"
#include "stream_table.h"

#include <stdatomic.h>
#include <stdint.h>

typedef struct rdm__completion_worker rdm__completion_worker;
typedef struct rdm__poller rdm__poller;
typedef struct rdm__queue rdm__queue;

enum { RDM__EVENT_KINDS = 2 };

/* Driver objects that wait to be used again. The lock is a leaf: none is made or destroyed under it. */
typedef struct rdm__pool {
  rdm__mutex lock;
  rdm__pointer_stack idle;
  /* event_pool.c: how often a thread came for more. Counted with the lock held. */
  _Atomic uint64_t visits;
} rdm__pool;

typedef struct rdm__device {
  rdm__object object;
  const rdm__driver *driver;
  int32_t index;
  /* The index as text: the scope of its modules. */
  char scope[16];
  rdm_device handle;
  rdm__device_properties properties;
  /* ---- */
  /* The first fault, never freed: once it is set the device is lost and no call enters the driver for it. */
  _Atomic(const rdm_error *) fault;
  /* event_pool.c: the shared pool of these flags holds more than its bound. Set and cleared with the pool's lock held.
   */
  atomic_bool has_surplus_events[RDM__EVENT_KINDS];

  /* From here on threads write often; what is above is read for each event that is taken, so in other cache lines. */

  /* stream.c: the streams by index, and each one's encoder. */
  _Alignas(RDM__CACHE_LINE) rdm__mutex streams_lock;
  rdm__stream_table streams;
  int32_t next_stream_index;

  /* event_pool.c, by the flags of the events; queue.c. */
  rdm__pool event_pools[RDM__EVENT_KINDS];
  rdm__pool queue_pool;
  /* Every queue ever made, the latest first; none leaves. */
  _Atomic(rdm__queue *) queues;
  /* How many queues no stream uses: in the pool, or in the hands of threads that look for one. */
  _Atomic int unused_queues;
  /* Queues whose driver stream is gone: kept only so that their memory stays reachable. */
  rdm__pool gone_queues;
  /* graph.c: released graphs, whose driver graphs are yet to be destroyed. */
  rdm__pool released_graphs;

  /* The device's threads, each made with the first need of it: completion.c, poll.c. */
  rdm__mutex threads_lock;
  _Atomic(rdm__completion_worker *) worker;
  _Atomic(rdm__poller *) poller;
} rdm__device;

/*
 * Constructs the device with a valid index: makes it current, sets its flags, reads its properties. The driver calls
 * name this device alone. `schedule_flag_is_set` outlives a failure, after which nothing else is left. Called with that
 * index's construction lock and no other.
 */
rdm_status rdm__device_construct(const rdm__driver *driver, int32_t index, bool *schedule_flag_is_set,
                                 rdm__device **out_device);

/* The device of a handle. A device is never closed, so it needs no pin. Checks the runtime's state first. */
rdm_status rdm__device_from_handle(rdm_device handle, rdm__device **out_device);

/* Set before the first fault of the process is. Until then one load tells that no device has faulted. */
extern atomic_bool rdm__any_device_has_faulted __attribute__((visibility("hidden")));

bool rdm__device_has_faulted_itself(const rdm__device *device);
rdm_status rdm__device_check_fault(const rdm__device *device);

static inline bool rdm__device_has_faulted(const rdm__device *device) {
  return atomic_load_explicit(&rdm__any_device_has_faulted, memory_order_acquire) &&
         rdm__device_has_faulted_itself(device);
}

/* RDM_OK, or RDM_ERROR_DEVICE_FAULT with the first cause in the thread's last error. */
static inline rdm_status rdm__device_check(const rdm__device *device) {
  return atomic_load_explicit(&rdm__any_device_has_faulted, memory_order_acquire) ? rdm__device_check_fault(device)
                                                                                  : RDM_OK;
}

/*
 * Turns the error that a driver call for this device returned into the thread's last error, as
 * rdm__driver_call_failed, and gives its status. A queue fault is latched as the device's.
 */
__attribute__((format(printf, 4, 5))) rdm_status rdm__device_call_failed(rdm__device *device, rdm__call call, int error,
                                                                         const char *format, ...);

/*
 * The same for a failure that loses nothing, so that it is no error of the calling thread's: the thread's last error
 * stays as it was. A queue fault is latched all the same.
 */
void rdm__device_note_failure(rdm__device *device, rdm__call call, int error, const char *doing);

/*
 * Makes the device the calling thread's current one. Asks the driver each time: other code in the process moves it
 * without telling us. The previous one is not restored, since naming it would touch a GPU that nobody asked for.
 * What is about to enter the driver comes through here, so it is also where a process that is exiting is told: before
 * each driver call and after the last, so that the caller makes one more at most once the exit has begun.
 */
rdm_status rdm__device_bind(rdm__device *device);

#endif
