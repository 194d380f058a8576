#include "driver/sim/device.h"

#include "driver/sim/callback.h"
#include "driver/sim/state.h"
#include "driver/sim/thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#define TOTAL_MEMORY_BYTES (UINT64_C(1) << 30)

enum { MAX_THREADS_PER_BLOCK = 1024, WARP_SIZE = 64, MULTIPROCESSOR_COUNT = 8, LISTED_FLAGS = 0x1F };

struct rdm__sim_device {
  int index;
  atomic_int fault;
  atomic_bool held;
  atomic_bool has_context;
  atomic_size_t reserved_bytes;
  rdm__sim_callback_queue *callbacks;
  /* Guards the list of streams, the flags and the making of the context. */
  pthread_mutex_t lock;
  unsigned flags;
  rdm__sim_object **streams;
  size_t stream_count;
  size_t stream_capacity;
};

rdm__sim_device *rdm__sim_devices_create(int count) {
  rdm__sim_device *devices = calloc((size_t)count + 1, sizeof *devices);
  if (devices == NULL) return NULL;
  for (int index = 0; index < count; index++) {
    devices[index].index = index;
    pthread_mutex_init(&devices[index].lock, NULL);
    devices[index].callbacks = rdm__sim_callback_queue_create();
    if (devices[index].callbacks == NULL) {
      while (index-- > 0) free(devices[index].callbacks);
      free(devices);
      return NULL;
    }
  }
  return devices;
}

rdm__sim_device *rdm__sim_device_at(int index) {
  rdm__sim_state_block *state = rdm__sim_state();
  return index >= 0 && index < state->device_count ? &state->devices[index] : NULL;
}

int rdm__sim_device_index(const rdm__sim_device *device) {
  return device->index;
}

int rdm__sim_device_fault(rdm__sim_device *device) {
  return atomic_load_explicit(&device->fault, memory_order_acquire);
}

bool rdm__sim_device_note_fault(rdm__sim_device *device, int error) {
  int none = 0;
  return atomic_compare_exchange_strong_explicit(&device->fault, &none, error, memory_order_acq_rel,
                                                 memory_order_acquire);
}

int rdm__sim_device_use_current(rdm__sim_device **out_device) {
  rdm__sim_device *device = rdm__sim_device_at(rdm__sim_this_thread()->current_device);
  if (device == NULL) return RDM_HIP_INVALID_DEVICE;
  if (!atomic_load_explicit(&device->has_context, memory_order_acquire)) {
    pthread_mutex_lock(&device->lock);
    atomic_store_explicit(&device->has_context, true, memory_order_release);
    pthread_mutex_unlock(&device->lock);
  }
  *out_device = device;
  return RDM_HIP_SUCCESS;
}

bool rdm__sim_device_reserve(rdm__sim_device *device, size_t size) {
  size_t reserved = atomic_load_explicit(&device->reserved_bytes, memory_order_relaxed);
  do {
    if (size > TOTAL_MEMORY_BYTES - reserved) return false;
  } while (!atomic_compare_exchange_weak_explicit(&device->reserved_bytes, &reserved, reserved + size,
                                                  memory_order_relaxed, memory_order_relaxed));
  return true;
}

void rdm__sim_device_unreserve(rdm__sim_device *device, size_t size) {
  atomic_fetch_sub_explicit(&device->reserved_bytes, size, memory_order_relaxed);
}

bool rdm__sim_device_is_held(rdm__sim_device *device) {
  return atomic_load_explicit(&device->held, memory_order_acquire);
}

void rdm__sim_device_note_held(rdm__sim_device *device, bool held) {
  atomic_store_explicit(&device->held, held, memory_order_release);
}

int rdm__sim_device_set_flags(rdm__sim_device *device, unsigned flags) {
  /* At most one of the schedules: spin 1, yield 2, blocking 4. */
  unsigned schedule = flags & 7U;
  if ((flags & ~(unsigned)LISTED_FLAGS) != 0 || (schedule & (schedule - 1)) != 0) return RDM_HIP_INVALID_VALUE;
  int result = RDM_HIP_SUCCESS;
  pthread_mutex_lock(&device->lock);
  if (atomic_load_explicit(&device->has_context, memory_order_relaxed)) {
    result = RDM_HIP_SET_ON_ACTIVE_PROCESS;
  } else {
    device->flags = flags;
  }
  pthread_mutex_unlock(&device->lock);
  return result;
}

rdm__device_properties rdm__sim_device_properties(void) {
  return (rdm__device_properties){
      .total_memory_bytes = TOTAL_MEMORY_BYTES,
      .multiprocessor_count = MULTIPROCESSOR_COUNT,
      .warp_size = WARP_SIZE,
      .max_threads_per_block = MAX_THREADS_PER_BLOCK,
      .name = "Simulated GPU",
      .architecture = "sim",
  };
}

rdm__sim_callback_queue *rdm__sim_device_callbacks(rdm__sim_device *device) {
  return device->callbacks;
}

/* ---- Streams --------------------------------------------------------------------------------------------------- */

void rdm__sim_device_add_stream(rdm__sim_device *device, rdm__sim_object *stream) {
  pthread_mutex_lock(&device->lock);
  if (device->stream_count == device->stream_capacity) {
    size_t capacity = device->stream_capacity == 0 ? 16 : device->stream_capacity * 2;
    rdm__sim_object **streams = realloc(device->streams, capacity * sizeof(rdm__sim_object *));
    /* A stream that no fault and no wait can find would be wrong in every test that follows. */
    if (streams == NULL) abort();
    device->streams = streams;
    device->stream_capacity = capacity;
  }
  device->streams[device->stream_count++] = stream;
  rdm__sim_object_retain(stream);
  pthread_mutex_unlock(&device->lock);
}

void rdm__sim_device_remove_stream(rdm__sim_device *device, rdm__sim_object *stream) {
  pthread_mutex_lock(&device->lock);
  for (size_t index = 0; index < device->stream_count; index++) {
    if (device->streams[index] != stream) continue;
    device->streams[index] = device->streams[--device->stream_count];
    break;
  }
  pthread_mutex_unlock(&device->lock);
  rdm__sim_object_release(stream);
}

rdm__sim_object **rdm__sim_device_copy_streams(rdm__sim_device *device, size_t *out_count) {
  pthread_mutex_lock(&device->lock);
  size_t count = device->stream_count;
  rdm__sim_object **streams = malloc((count + 1) * sizeof(rdm__sim_object *));
  if (streams == NULL) abort();
  for (size_t index = 0; index < count; index++) {
    streams[index] = device->streams[index];
    rdm__sim_object_retain(streams[index]);
  }
  pthread_mutex_unlock(&device->lock);
  *out_count = count;
  return streams;
}
