#include "device_map.h"

#include "count.h"
#include "log.h"
#include "runtime.h"
#include "status.h"
#include "tally.h"
#include "wait.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct map_entry {
  /* Held while the device with this index is constructed, and by no lookup that finds it. */
  rdm__mutex construction_lock;
  /* Guarded by construction_lock: the flag is set once, also where the construction then fails and is tried again. */
  bool schedule_flag_is_set;
  /* Guarded by the map's lock. */
  rdm__device *device;
  _Atomic uint64_t construction_count;
} map_entry;

/* Both leaked on purpose: C has no destructors, and nothing here runs at exit. */
static rdm__shared_lock map_lock = RDM__SHARED_LOCK_INIT(RDM__RANK_DEVICE_MAP);
/* One for each index of the driver, allocated with the first device. Guarded by map_lock. */
static map_entry *entries;
static int32_t entry_count;

/* By the low bits of the index: a thread that goes around a few devices finds each of them here. */
enum { REMEMBERED_DEVICES = 8 };
static _Thread_local rdm__device *remembered[REMEMBERED_DEVICES];

/* How many lookups found what the thread remembers. A thread has a cell of it whenever it remembers anything. */
static rdm__tally hits;
static _Thread_local rdm__tally_cell *own_hits;

static void forget(void) {
  own_hits = NULL;
  memset(remembered, 0, sizeof remembered);
}

static void remember(int32_t index, rdm__device *device) {
  if (own_hits == NULL) own_hits = rdm__tally_join(&hits, forget);
  if (own_hits != NULL) remembered[(uint32_t)index % REMEMBERED_DEVICES] = device;
}

/* The masks decide what an index means, so an error about an index names those that are set. */
static const char *visible_devices_note(char *buffer, size_t size) {
  static const char *const variables[] = {"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES",
                                          "GPU_DEVICE_ORDINAL"};
  size_t length = 0;
  buffer[0] = '\0';
  for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
    const char *value = getenv(variables[i]);
    if (value == NULL || length >= size) continue;
    length += (size_t)snprintf(buffer + length, size - length, "%s%s=\"%.64s\"", length == 0 ? "; set here: " : ", ",
                               variables[i], value);
  }
  return buffer;
}

rdm_status rdm__device_map_check_index(int32_t index, const rdm__driver **out_driver) {
  rdm_status status = rdm__runtime_enter(out_driver);
  if (status != RDM_OK) return status;
  int32_t count = rdm__runtime_device_count();
  if (index >= 0 && index < count) return RDM_OK;
  /* An exit that began meanwhile makes the count 0. */
  status = rdm__runtime_check();
  if (status != RDM_OK) return status;
  char note[512];
  if (count == 0) {
    return rdm__fail(RDM_ERROR_NO_DEVICE, "device index %d: the driver %s reports no device%s", index,
                     (*out_driver)->name, visible_devices_note(note, sizeof note));
  }
  return rdm__fail(
      RDM_ERROR_INVALID_DEVICE, "device index %d is out of range: the driver %s has %d device%s (valid: 0 to %d)%s",
      index, (*out_driver)->name, count, count == 1 ? "" : "s", count - 1, visible_devices_note(note, sizeof note));
}

static rdm__device *find(int32_t index) {
  rdm__shared_lock_read(&map_lock);
  rdm__device *device = entries == NULL ? NULL : entries[index].device;
  rdm__shared_lock_read_unlock(&map_lock);
  return device;
}

/* With the map's lock held, unique. */
static void allocate_entries(void) {
  int32_t count = rdm__runtime_device_count();
  entries = count == 0 ? NULL : calloc((size_t)count, sizeof *entries);
  if (entries == NULL) return;
  entry_count = count;
  for (int32_t i = 0; i < count; i++) rdm__mutex_init(&entries[i].construction_lock, RDM__RANK_CONSTRUCTION);
}

/* Entries never move or go once they are there, so an entry may be used without the map's lock. */
static rdm_status entry_of(int32_t index, map_entry **out_entry) {
  rdm__shared_lock_write(&map_lock);
  if (entries == NULL) allocate_entries();
  *out_entry = index < entry_count ? &entries[index] : NULL;
  rdm__shared_lock_write_unlock(&map_lock);
  if (*out_entry != NULL) return RDM_OK;
  rdm_status status = rdm__runtime_check();
  return status != RDM_OK ? status : rdm__fail(RDM_ERROR_OUT_OF_MEMORY, "no memory for the device map");
}

static void insert(map_entry *entry, rdm__device *device) {
  rdm__shared_lock_write(&map_lock);
  entry->device = device;
  rdm__shared_lock_write_unlock(&map_lock);
}

static rdm_status construct(map_entry *entry, const rdm__driver *driver, int32_t index, const rdm__wait_limit *limit,
                            rdm__device **out_device) {
  bool constructed = false;
  rdm_status status = rdm__wait_for_index_lock(&entry->construction_lock, index, limit,
                                               "waiting for another thread's first use of the device");
  if (status != RDM_OK) return status;
  /* Another thread may have been here between our miss and this lock. */
  rdm__device *device = find(index);
  if (device == NULL) {
    status = rdm__device_construct(driver, index, &entry->schedule_flag_is_set, &device);
    if (status == RDM_OK) {
      atomic_fetch_add_explicit(&entry->construction_count, 1, memory_order_relaxed);
      insert(entry, device);
      constructed = true;
    }
  }
  rdm__mutex_unlock(&entry->construction_lock);
  if (constructed) {
    rdm__runtime_renew_exit_handler();
    rdm__log(RDM_LOG_INFO, "bound HIP device %d: %s (%s), driver %s", index, device->properties.name,
             device->properties.architecture, driver->name);
  }
  if (status == RDM_OK) *out_device = device;
  return status;
}

static rdm__device *recall(int32_t index) {
  rdm__device *device = remembered[(uint32_t)index % REMEMBERED_DEVICES];
  if (device == NULL || device->index != index || !rdm__runtime_is_ready()) return NULL;
  rdm__count_alone(&own_hits->count, 1);
  return device;
}

/* The device from the map itself, which is the only source of what a thread remembers. The limit is made only where
 * there is something to wait for: a lookup that finds its device reads no clock. */
static rdm_status get_from_map(int32_t index, uint64_t timeout_ns, rdm__device **out_device) {
  const rdm__driver *driver = NULL;
  rdm_status status = rdm__device_map_check_index(index, &driver);
  if (status != RDM_OK) return status;
  rdm__count(RDM__COUNT_DEVICE_MISSES, 1);
  rdm__device *device = find(index);
  map_entry *entry = NULL;
  if (device == NULL) status = entry_of(index, &entry);
  if (device == NULL && status == RDM_OK) {
    rdm__wait_limit limit = rdm__wait_limit_from(timeout_ns);
    status = construct(entry, driver, index, &limit, &device);
  }
  if (status != RDM_OK) return status;
  remember(index, device);
  *out_device = device;
  return RDM_OK;
}

rdm_status rdm__device_map_get(int32_t index, rdm__device **out_device) {
  *out_device = recall(index);
  return *out_device != NULL ? RDM_OK : get_from_map(index, RDM_WAIT_FOREVER, out_device);
}

void rdm__device_map_each(void (*visit)(rdm__device *device, void *context), void *context) {
  int32_t count = rdm__runtime_device_count();
  for (int32_t index = 0; index < count; index++) {
    rdm__device *device = find(index);
    if (device != NULL) visit(device, context);
  }
}

/* Apart, so that a hit is a function without a stack frame. */
__attribute__((noinline)) static rdm_status get_handle_from_map(int32_t index, rdm_device *out_device) {
  rdm__device *device = NULL;
  rdm_status status = get_from_map(index, RDM_WAIT_FOREVER, &device);
  if (status == RDM_OK) *out_device = device->handle;
  return status;
}

rdm_status rdm_device_get(int32_t device_index, rdm_device *out_device) {
  if (out_device == NULL) return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "out_device is null");
  const rdm__device *device = recall(device_index);
  if (device == NULL) return get_handle_from_map(device_index, out_device);
  *out_device = device->handle;
  return RDM_OK;
}

rdm_status rdm_device_get_within(int32_t device_index, uint64_t timeout_ns, rdm_device *out_device) {
  if (out_device == NULL) return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "out_device is null");
  rdm__device *device = recall(device_index);
  rdm_status status = device != NULL ? RDM_OK : get_from_map(device_index, timeout_ns, &device);
  if (status == RDM_OK) out_device->bits = device->handle.bits;
  return status;
}

rdm_status rdm_device_construction_count(int32_t device_index, uint64_t *out_count) {
  if (out_count == NULL) return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "out_count is null");
  const rdm__driver *driver = NULL;
  rdm_status status = rdm__device_map_check_index(device_index, &driver);
  if (status != RDM_OK) return status;
  rdm__shared_lock_read(&map_lock);
  *out_count =
      entries == NULL ? 0 : atomic_load_explicit(&entries[device_index].construction_count, memory_order_relaxed);
  rdm__shared_lock_read_unlock(&map_lock);
  return RDM_OK;
}

uint64_t rdm__device_map_hits(void) {
  return rdm__tally_sum(&hits);
}

uint64_t rdm__device_map_constructions(void) {
  uint64_t sum = 0;
  rdm__shared_lock_read(&map_lock);
  for (int32_t i = 0; i < entry_count; i++) {
    sum += atomic_load_explicit(&entries[i].construction_count, memory_order_relaxed);
  }
  rdm__shared_lock_read_unlock(&map_lock);
  return sum;
}
