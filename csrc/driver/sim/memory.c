#include "driver/sim/memory.h"

#include "driver/sim/device.h"
#include "driver/sim/device_streams.h"
#include "driver/sim/state.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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

bool rdm__sim_memory_find(const void *address, size_t size, int *out_device) {
  allocation item;
  if (!find_range(address, size, &item)) return false;
  *out_device = item.device;
  return true;
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

int rdm__sim_memory_allocate(void **out_pointer, size_t size, bool on_host) {
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

int rdm__sim_memory_free(void *pointer, bool on_host) {
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
