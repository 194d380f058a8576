#include "driver/sim/memory.h"

#include "driver/sim/call.h"
#include "driver/sim/device.h"
#include "driver/sim/kernel_guard.h"
#include "driver/sim/state.h"
#include "driver/sim/stream.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
  COPY_HOST_TO_HOST = 0,
  COPY_DEFAULT = 4,
  INVALID_MEMCPY_DIRECTION = 21,
  /* hipHostMalloc: portable, mapped, write-combined, NUMA user, and the coherence bits. */
  HOST_FLAGS = 0x1 | 0x2 | 0x4 | 0x20000000 | 0x40000000,
};
#define HOST_FLAG_NON_COHERENT 0x80000000U

typedef struct allocation {
  char *base;
  size_t size;
  /* With the unreachable pages on both sides. */
  char *mapping;
  size_t mapping_size;
  int device;
  bool on_host;
} allocation;

/* All allocations, in the order of their addresses. */
struct rdm__sim_memory {
  pthread_mutex_t lock;
  allocation *items;
  size_t count;
  size_t capacity;
  uint64_t host_count;
};

rdm__sim_memory *rdm__sim_memory_create(void) {
  rdm__sim_memory *memory = calloc(1, sizeof *memory);
  if (memory != NULL) pthread_mutex_init(&memory->lock, NULL);
  return memory;
}

/* The index of the first allocation that begins above the address. Called with the lock held. */
static size_t upper_bound(const rdm__sim_memory *memory, const char *address) {
  size_t low = 0;
  size_t high = memory->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if ((uintptr_t)memory->items[middle].base <= (uintptr_t)address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/* Finds the allocation that holds the whole range. */
static bool find_range(const void *address, size_t size, allocation *out_found) {
  rdm__sim_memory *memory = rdm__sim_state()->memory;
  bool found = false;
  pthread_mutex_lock(&memory->lock);
  size_t index = upper_bound(memory, address);
  if (index > 0) {
    const allocation *item = &memory->items[index - 1];
    size_t offset = (size_t)((uintptr_t)address - (uintptr_t)item->base);
    found = offset < item->size && size <= item->size - offset;
    if (found) *out_found = *item;
  }
  pthread_mutex_unlock(&memory->lock);
  return found;
}

static bool insert(const allocation *item) {
  rdm__sim_memory *memory = rdm__sim_state()->memory;
  bool inserted = true;
  pthread_mutex_lock(&memory->lock);
  if (memory->count == memory->capacity) {
    size_t capacity = memory->capacity == 0 ? 64 : memory->capacity * 2;
    allocation *items = realloc(memory->items, capacity * sizeof *items);
    inserted = items != NULL;
    if (inserted) {
      memory->items = items;
      memory->capacity = capacity;
    }
  }
  if (inserted) {
    size_t index = upper_bound(memory, item->base);
    memmove(&memory->items[index + 1], &memory->items[index], (memory->count - index) * sizeof *item);
    memory->items[index] = *item;
    memory->count++;
    if (item->on_host) memory->host_count++;
  }
  pthread_mutex_unlock(&memory->lock);
  return inserted;
}

/* Takes the allocation that begins at the address out of the table; one of several callers gets it. */
static bool take(const void *address, bool on_host, allocation *out_taken) {
  rdm__sim_memory *memory = rdm__sim_state()->memory;
  bool taken = false;
  pthread_mutex_lock(&memory->lock);
  size_t index = upper_bound(memory, address);
  if (index > 0 && memory->items[index - 1].base == (const char *)address &&
      memory->items[index - 1].on_host == on_host) {
    taken = true;
    *out_taken = memory->items[index - 1];
    memory->count--;
    memmove(&memory->items[index - 1], &memory->items[index], (memory->count - (index - 1)) * sizeof *out_taken);
    if (on_host) memory->host_count--;
  }
  pthread_mutex_unlock(&memory->lock);
  return taken;
}

uint64_t rdm__sim_memory_device_allocation_count(void) {
  rdm__sim_memory *memory = rdm__sim_state()->memory;
  pthread_mutex_lock(&memory->lock);
  uint64_t count = memory->count - memory->host_count;
  pthread_mutex_unlock(&memory->lock);
  return count;
}

uint64_t rdm__sim_memory_host_allocation_count(void) {
  rdm__sim_memory *memory = rdm__sim_state()->memory;
  pthread_mutex_lock(&memory->lock);
  uint64_t count = memory->host_count;
  pthread_mutex_unlock(&memory->lock);
  return count;
}

/* ---- Allocating ------------------------------------------------------------------------------------------------ */

/* Maps whole pages between two that nobody can reach. */
static bool map_guarded(allocation *item, size_t size) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  if (size > SIZE_MAX - 4 * page) return false;
  size_t usable = (size + page - 1) / page * page;
  char *mapping = mmap(NULL, usable + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return false;
  if (mprotect(mapping + page, usable, PROT_READ | PROT_WRITE) != 0) {
    munmap(mapping, usable + 2 * page);
    return false;
  }
  item->base = mapping + page;
  item->size = size;
  item->mapping = mapping;
  item->mapping_size = usable + 2 * page;
  return true;
}

static int allocate(void **out_pointer, size_t size, bool on_host) {
  if (out_pointer == NULL) return RDM_HIP_INVALID_VALUE;
  rdm__sim_device *device;
  int result = rdm__sim_device_use_current(&device);
  if (result != RDM_HIP_SUCCESS) return result;
  if (size == 0) {
    *out_pointer = NULL;
    return RDM_HIP_SUCCESS;
  }
  if (!on_host && !rdm__sim_device_reserve(device, size)) return RDM_HIP_OUT_OF_MEMORY;
  allocation item = {.device = rdm__sim_device_index(device), .on_host = on_host};
  bool mapped = map_guarded(&item, size);
  if (mapped && insert(&item)) {
    *out_pointer = item.base;
    return RDM_HIP_SUCCESS;
  }
  if (mapped) munmap(item.mapping, item.mapping_size);
  if (!on_host) rdm__sim_device_unreserve(device, size);
  return RDM_HIP_OUT_OF_MEMORY;
}

/* Freeing waits for the device, as hipFree does. */
static int release(void *pointer, bool on_host) {
  if (pointer == NULL) {
    rdm__sim_device *device;
    return rdm__sim_device_use_current(&device);
  }
  allocation item;
  if (!find_range(pointer, 1, &item) || item.base != pointer || item.on_host != on_host) return RDM_HIP_INVALID_VALUE;
  rdm__sim_device *device = rdm__sim_device_at(item.device);
  int fault = rdm__sim_device_wait(device);
  if (fault != 0) return fault;
  if (!take(pointer, on_host, &item)) return RDM_HIP_INVALID_VALUE;
  munmap(item.mapping, item.mapping_size);
  if (!on_host) rdm__sim_device_unreserve(device, item.size);
  return RDM_HIP_SUCCESS;
}

static int device_of(const void *pointer) {
  allocation item;
  if (pointer == NULL) return rdm__sim_this_thread()->current_device;
  return find_range(pointer, 1, &item) ? item.device : -1;
}

int rdm__sim_memory_allocate(void **pointer, size_t size) {
  rdm__sim_call_scope scope;
  void *allocated = NULL;
  int current = rdm__sim_this_thread()->current_device;
  int result = rdm__sim_call_begin(&scope, RDM__CALL_memory_allocate, NULL, current);
  if (result == RDM_HIP_SUCCESS) result = allocate(pointer, size, false);
  if (result == RDM_HIP_SUCCESS) allocated = *pointer;
  return rdm__sim_call_end_created(&scope, result, allocated);
}

int rdm__sim_memory_free(void *pointer) {
  rdm__sim_call_scope scope;
  int result = rdm__sim_call_begin(&scope, RDM__CALL_memory_free, pointer, device_of(pointer));
  if (result == RDM_HIP_SUCCESS) result = release(pointer, false);
  return rdm__sim_call_end(&scope, result);
}

int rdm__sim_host_memory_allocate(void **pointer, size_t size, unsigned flags) {
  rdm__sim_call_scope scope;
  void *allocated = NULL;
  int current = rdm__sim_this_thread()->current_device;
  int result = rdm__sim_call_begin(&scope, RDM__CALL_host_memory_allocate, NULL, current);
  if (result == RDM_HIP_SUCCESS && (flags & ~((unsigned)HOST_FLAGS | HOST_FLAG_NON_COHERENT)) != 0) {
    result = RDM_HIP_INVALID_VALUE;
  }
  if (result == RDM_HIP_SUCCESS) result = allocate(pointer, size, true);
  if (result == RDM_HIP_SUCCESS) allocated = *pointer;
  return rdm__sim_call_end_created(&scope, result, allocated);
}

int rdm__sim_host_memory_free(void *pointer) {
  rdm__sim_call_scope scope;
  int result = rdm__sim_call_begin(&scope, RDM__CALL_host_memory_free, pointer, device_of(pointer));
  if (result == RDM_HIP_SUCCESS) result = release(pointer, true);
  return rdm__sim_call_end(&scope, result);
}

/* ---- Copying --------------------------------------------------------------------------------------------------- */

typedef struct transfer_work {
  rdm__sim_work work;
  char *to;
  /* NULL for a fill. */
  const char *from;
  size_t size;
  int value;
} transfer_work;

static void transfer(void *argument) {
  const transfer_work *work = argument;
  if (work->from == NULL) {
    memset(work->to, work->value, work->size);
  } else {
    memmove(work->to, work->from, work->size);
  }
}

/* Host memory that is not there, or memory that another device freed meanwhile, faults as it would on a GPU. */
static int run_transfer(rdm__sim_work *work, rdm__sim_stream *stream) {
  (void)stream;
  return rdm__sim_kernel_guard_run(transfer, work);
}

static void finish_transfer(rdm__sim_work *work, int fault) {
  (void)fault;
  free(work);
}

static int submit_transfer(rdm__sim_stream *stream, void *to, const void *from, size_t size, int value) {
  transfer_work *work = calloc(1, sizeof *work);
  if (work == NULL) return RDM_HIP_OUT_OF_MEMORY;
  work->work.run = run_transfer;
  work->work.finish = finish_transfer;
  work->to = to;
  work->from = from;
  work->size = size;
  work->value = value;
  return rdm__sim_stream_submit(stream, &work->work);
}

/* The range must lie in one live allocation, of any device, that works. */
static int check_device_range(const void *address, size_t size) {
  allocation item;
  if (!find_range(address, size, &item)) return RDM_HIP_INVALID_VALUE;
  return rdm__sim_device_fault(rdm__sim_device_at(item.device));
}

/* The same for an address that may also be plain host memory. */
static int check_any_range(const void *address, size_t size) {
  allocation item;
  return find_range(address, 1, &item) ? check_device_range(address, size) : RDM_HIP_SUCCESS;
}

static int copy(void *to, const void *from, size_t size, int kind, rdm__sim_stream *stream) {
  if (kind < COPY_HOST_TO_HOST || kind > COPY_DEFAULT) return INVALID_MEMCPY_DIRECTION;
  if (kind == COPY_HOST_TO_HOST) return RDM_HIP_NOT_SUPPORTED;
  if (size == 0) return RDM_HIP_SUCCESS;
  if (to == NULL || from == NULL) return RDM_HIP_INVALID_VALUE;
  bool to_device = kind == RDM_COPY_HOST_TO_DEVICE || kind == RDM_COPY_DEVICE_TO_DEVICE;
  bool from_device = kind == RDM_COPY_DEVICE_TO_HOST || kind == RDM_COPY_DEVICE_TO_DEVICE;
  int result = to_device ? check_device_range(to, size) : check_any_range(to, size);
  if (result != RDM_HIP_SUCCESS) return result;
  result = from_device ? check_device_range(from, size) : check_any_range(from, size);
  if (result != RDM_HIP_SUCCESS) return result;
  return submit_transfer(stream, to, from, size, 0);
}

int rdm__sim_memory_copy_async(void *to, const void *from, size_t size, int kind, void *stream) {
  rdm__sim_call_scope scope;
  rdm__sim_stream *found = rdm__sim_stream_get(stream);
  int result = rdm__sim_call_begin(&scope, RDM__CALL_memory_copy_async, stream, rdm__sim_stream_device_index(found));
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_stream_check_submit(found, stream);
  if (result == RDM_HIP_SUCCESS) result = copy(to, from, size, kind, found);
  rdm__sim_stream_release(found);
  return rdm__sim_call_end(&scope, result);
}

static int fill(void *to, int value, size_t size, rdm__sim_stream *stream) {
  if (size == 0) return RDM_HIP_SUCCESS;
  if (to == NULL) return RDM_HIP_INVALID_VALUE;
  int result = check_device_range(to, size);
  return result != RDM_HIP_SUCCESS ? result : submit_transfer(stream, to, NULL, size, value);
}

int rdm__sim_memory_set_async(void *to, int value, size_t size, void *stream) {
  rdm__sim_call_scope scope;
  rdm__sim_stream *found = rdm__sim_stream_get(stream);
  int result = rdm__sim_call_begin(&scope, RDM__CALL_memory_set_async, stream, rdm__sim_stream_device_index(found));
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_stream_check_submit(found, stream);
  if (result == RDM_HIP_SUCCESS) result = fill(to, value, size, found);
  rdm__sim_stream_release(found);
  return rdm__sim_call_end(&scope, result);
}
