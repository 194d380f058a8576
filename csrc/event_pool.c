#include "event_pool.h"

#include "count.h"
#include "runtime.h"
#include "settings.h"
#include "status.h"
#include "thread_end.h"

#include <stdlib.h>

enum { POOL_BOUND = 1024, DESTROYED_AT_ONCE = 8, MAGAZINE_EVENTS = 30, MOVED_AT_ONCE = MAGAZINE_EVENTS / 2 };
enum { MOST_TAKEN_ALONG = 7 };

/* The one given back first goes out first, so that a slot's generations last, and events tend to be done when reused.
 */
typedef struct ring {
  uint32_t first;
  uint32_t count;
  /* How many more the next visit to the shared pool takes along. Grows with each, so that a thread which only acquires
   * soon goes there seldom, and one that needs a single event keeps none from others. */
  uint32_t taken_along;
  rdm__event *events[MAGAZINE_EVENTS];
} ring;

/* So that one of a magazine's rings is found by a shift. */
_Static_assert(sizeof(ring) == 256, "a ring is of 256 bytes");

/* What one thread holds of one device. */
typedef struct magazine {
  rdm__thread_end_hook at_end;
  rdm__device *device;
  struct magazine *next;
  ring rings[RDM__EVENT_KINDS];
} magazine;

/* The thread's magazines, the one used last in front. */
static _Thread_local magazine *magazines;

static bool retire(rdm__object *object) {
  rdm__event_pool_release((rdm__event *)object);
  return false;
}

rdm__handle_table rdm__events = RDM__HANDLE_TABLE(RDM__HANDLE_EVENT, rdm__event, retire);

static rdm__event *pop(ring *ring) {
  if (ring->count == 0) return NULL;
  rdm__event *event = ring->events[ring->first];
  ring->first = ring->first + 1 == MAGAZINE_EVENTS ? 0 : ring->first + 1;
  ring->count--;
  return event;
}

/* There is room. */
static void push(ring *ring, rdm__event *event) {
  uint32_t place = ring->first + ring->count;
  ring->events[place < MAGAZINE_EVENTS ? place : place - MAGAZINE_EVENTS] = event;
  ring->count++;
}

/* With the pool's lock held. */
static void note_surplus(rdm__device *device, uint32_t flags) {
  bool has_surplus = device->event_pools[flags].idle.count > POOL_BOUND;
  atomic_store_explicit(&device->has_surplus_events[flags], has_surplus, memory_order_relaxed);
}

/* Gives the first `count` events of the ring to the shared pool. */
static RDM__COLD void flush(rdm__device *device, uint32_t flags, ring *ring, uint32_t count) {
  rdm__pool *pool = &device->event_pools[flags];
  rdm__mutex_lock(&pool->lock);
  for (; count > 0 && ring->count > 0; count--) {
    /* Out of memory: the event is leaked, since destroying it here would be a driver call where none may be made. */
    (void)rdm__pointer_stack_push(&pool->idle, pop(ring));
  }
  note_surplus(device, flags);
  rdm__mutex_unlock(&pool->lock);
}

static void at_thread_end(rdm__thread_end_hook *hook) {
  /* The hook is the magazine's first member. */
  magazine *ending = (magazine *)hook;
  magazines = NULL;
  if (!rdm__runtime_is_over()) {
    for (uint32_t flags = 0; flags < RDM__EVENT_KINDS; flags++) {
      flush(ending->device, flags, &ending->rings[flags], MAGAZINE_EVENTS);
    }
  }
  free(ending);
}

static magazine *make_magazine(rdm__device *device) {
  magazine *made = calloc(1, sizeof *made);
  if (made == NULL) return NULL;
  made->device = device;
  made->at_end.run = at_thread_end;
  if (!rdm__thread_end_add(&made->at_end)) {
    free(made);
    return NULL;
  }
  made->next = magazines;
  magazines = made;
  return made;
}

/* The thread's magazine of a device that is not in front. Null where there is no memory for one. */
static RDM__COLD magazine *fetch_magazine(rdm__device *device) {
  for (magazine **place = &magazines; *place != NULL; place = &(*place)->next) {
    magazine *found = *place;
    if (found->device != device) continue;
    *place = found->next;
    found->next = magazines;
    magazines = found;
    return found;
  }
  return make_magazine(device);
}

static inline magazine *magazine_of(rdm__device *device) {
  magazine *front = magazines;
  return front != NULL && front->device == device ? front : fetch_magazine(device);
}

static rdm_status create(rdm__device *device, uint32_t flags, rdm__event **out_event) {
  rdm_status status = rdm__device_bind(device);
  if (status != RDM_OK) return status;
  rdm__event *event = (rdm__event *)rdm__handle_allocate(&rdm__events);
  if (event == NULL) return RDM_ERROR_RESOURCE;
  unsigned native_flags = (flags & RDM_EVENT_TIMING) != 0 ? 0 : RDM_HIP_EVENT_DISABLE_TIMING;
  if (rdm__waits_block()) native_flags |= RDM_HIP_EVENT_BLOCKING_SYNC;
  event->native = NULL;
  int error = device->driver->event_create(&event->native, native_flags);
  if (error != RDM_HIP_SUCCESS) {
    rdm__handle_discard(&rdm__events, &event->object);
    return rdm__device_call_failed(device, RDM__CALL_event_create, error, "making an event");
  }
  rdm__count(RDM__COUNT_DRIVER_EVENTS_MADE, 1);
  event->device = device;
  event->flags = flags;
  *out_event = event;
  return RDM_OK;
}

/* The events were idle in the pool, and the device is current; one that can not be destroyed is lost to the driver, not
 * to a caller. */
static void destroy(rdm__device *device, rdm__event **events, int count) {
  for (int i = 0; i < count; i++) {
    int error = rdm__runtime_is_over() ? RDM_HIP_SUCCESS : device->driver->event_destroy(events[i]->native);
    if (error != RDM_HIP_SUCCESS) {
      rdm__device_note_failure(device, RDM__CALL_event_destroy, error, "ending idle events");
    }
    events[i]->native = NULL;
    rdm__handle_discard(&rdm__events, &events[i]->object);
  }
  rdm__count(RDM__COUNT_DRIVER_EVENTS_ENDED, (uint64_t)count);
}

/* Ends a few of what is over the pool's bound. Where the device can not be made current they stay for a later call, and
 * that is no failure of this one, which may have no need of the driver. */
static void trim(rdm__device *device, uint32_t flags) {
  const rdm_error before = *rdm__thread_error();
  if (rdm__device_bind(device) != RDM_OK) {
    *rdm__thread_error() = before;
    return;
  }
  rdm__pool *pool = &device->event_pools[flags];
  rdm__event *surplus[DESTROYED_AT_ONCE];
  int count = 0;
  rdm__mutex_lock(&pool->lock);
  while (pool->idle.count > POOL_BOUND && count < DESTROYED_AT_ONCE) {
    surplus[count++] = rdm__pointer_stack_pop(&pool->idle);
  }
  note_surplus(device, flags);
  rdm__mutex_unlock(&pool->lock);
  destroy(device, surplus, count);
}

/* From the shared pool, with some more for the magazine; a new one where the pool is empty. */
static rdm_status acquire_shared(rdm__device *device, uint32_t flags, ring *ring, rdm__event **out_event) {
  rdm__pool *pool = &device->event_pools[flags];
  rdm__mutex_lock(&pool->lock);
  rdm__count_alone(&pool->visits, 1);
  rdm__event *event = rdm__pointer_stack_pop(&pool->idle);
  for (uint32_t i = 0; ring != NULL && i < ring->taken_along && pool->idle.count > 0; i++) {
    push(ring, rdm__pointer_stack_pop(&pool->idle));
  }
  rdm__mutex_unlock(&pool->lock);
  if (ring != NULL && ring->taken_along < MOST_TAKEN_ALONG) ring->taken_along = 2 * ring->taken_along + 1;
  if (event == NULL) return create(device, flags, out_event);
  *out_event = event;
  return RDM_OK;
}

rdm_status rdm__event_pool_acquire(rdm__device *device, uint32_t flags, rdm__event **out_event) {
  rdm_status status = rdm__device_check(device);
  if (status != RDM_OK) return status;
  if (atomic_load_explicit(&device->has_surplus_events[flags], memory_order_relaxed)) trim(device, flags);
  magazine *of_thread = magazine_of(device);
  ring *ring = of_thread == NULL ? NULL : &of_thread->rings[flags];
  if (ring == NULL || ring->count == 0) return acquire_shared(device, flags, ring, out_event);
  *out_event = pop(ring);
  return RDM_OK;
}

rdm__event *rdm__event_of_thread(rdm_device handle, uint32_t flags) {
  magazine *front = magazines;
  if (front == NULL || front->device->handle.bits != handle.bits || !rdm__runtime_is_ready() ||
      atomic_load_explicit(&rdm__any_device_has_faulted, memory_order_acquire) ||
      atomic_load_explicit(&front->device->has_surplus_events[flags], memory_order_relaxed)) {
    return NULL;
  }
  return pop(&front->rings[flags]);
}

/* Where it does not simply go into the magazine in front. */
static RDM__COLD void release_elsewhere(rdm__event *event) {
  if (rdm__device_has_faulted(event->device)) {
    event->native = NULL;
    rdm__count(RDM__COUNT_DRIVER_EVENTS_ENDED, 1);
    rdm__handle_discard(&rdm__events, &event->object);
    return;
  }
  magazine *of_thread = magazine_of(event->device);
  if (of_thread == NULL) {
    ring single = {0};
    push(&single, event);
    flush(event->device, event->flags, &single, 1);
    return;
  }
  ring *ring = &of_thread->rings[event->flags];
  if (ring->count == MAGAZINE_EVENTS) flush(event->device, event->flags, ring, MOVED_AT_ONCE);
  push(ring, event);
}

void rdm__event_pool_release(rdm__event *event) {
  magazine *front = magazines;
  ring *ring = front == NULL ? NULL : &front->rings[event->flags];
  if (front == NULL || front->device != event->device || ring->count == MAGAZINE_EVENTS ||
      atomic_load_explicit(&rdm__any_device_has_faulted, memory_order_acquire)) {
    release_elsewhere(event);
    return;
  }
  push(ring, event);
}
