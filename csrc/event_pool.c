#include "event_pool.h"

#include "settings.h"

enum { POOL_BOUND = 1024, DESTROYED_AT_ONCE = 8 };

static rdm_status create(rdm__device *device, uint32_t flags, void **out_native) {
  rdm_status status = rdm__device_bind(device);
  if (status != RDM_OK) return status;
  unsigned native_flags = (flags & RDM_EVENT_TIMING) != 0 ? 0 : RDM_HIP_EVENT_DISABLE_TIMING;
  if (rdm__waits_block()) native_flags |= RDM_HIP_EVENT_BLOCKING_SYNC;
  int error = device->driver->event_create(out_native, native_flags);
  if (error == RDM_HIP_SUCCESS) return RDM_OK;
  return rdm__device_call_failed(device, RDM__CALL_event_create, error, "making an event");
}

/* The events were idle in the pool; one that can not be destroyed is lost to the driver, not to a caller. */
static void destroy(rdm__device *device, void **events, int count) {
  if (count == 0 || rdm__device_bind(device) != RDM_OK) return;
  for (int i = 0; i < count; i++) {
    int error = device->driver->event_destroy(events[i]);
    if (error != RDM_HIP_SUCCESS)
      rdm__device_note_failure(device, RDM__CALL_event_destroy, error, "ending idle events");
  }
}

rdm_status rdm__event_pool_acquire(rdm__device *device, uint32_t flags, void **out_native) {
  rdm_status status = rdm__device_check(device);
  if (status != RDM_OK) return status;
  rdm__pool *pool = &device->event_pools[flags];
  void *surplus[DESTROYED_AT_ONCE];
  int surplus_count = 0;
  rdm__mutex_lock(&pool->lock);
  void *native = rdm__pointer_stack_pop(&pool->idle);
  while (pool->idle.count > POOL_BOUND && surplus_count < DESTROYED_AT_ONCE) {
    surplus[surplus_count++] = rdm__pointer_stack_pop(&pool->idle);
  }
  rdm__mutex_unlock(&pool->lock);
  destroy(device, surplus, surplus_count);
  if (native == NULL) return create(device, flags, out_native);
  *out_native = native;
  return RDM_OK;
}

void rdm__event_pool_release(rdm__device *device, uint32_t flags, void *native) {
  rdm__pool *pool = &device->event_pools[flags];
  rdm__mutex_lock(&pool->lock);
  /* Out of memory: the event is leaked, since destroying it here would be a driver call where none may be made. */
  (void)rdm__pointer_stack_push(&pool->idle, native);
  rdm__mutex_unlock(&pool->lock);
}
