/* What holds once an input's threads have ended and all that it made is released. */
#include "fuzz_calls.h"
#include "runtime.h"

#include <time.h>

static const uint64_t end_limit_ns = UINT64_C(10000000000);

static rdm_sim_objects before;

static rdm_sim_objects count_objects(void) {
  rdm_sim_objects objects = {.struct_size = sizeof objects};
  FUZZ_CHECK(rdm_sim_count_objects(&objects) == RDM_OK, "%s", rdm_last_error_message());
  return objects;
}

void calls_note_objects(void) {
  before = count_objects();
}

static void release_all(void) {
  for (int kind = 0; kind < CALLS_KINDS; kind++) {
    for (int i = 0; i < CALLS_SLOTS; i++) {
      uint64_t bits = atomic_exchange(&the_world.slots[kind][i], 0);
      if (bits != 0) calls_release((calls_kind)kind, bits);
    }
  }
}

static bool any_lost(void) {
  for (int i = 0; i < CALLS_DEVICES; i++) {
    if (atomic_load(&the_world.lost[i])) return true;
  }
  return false;
}

static void wait_for_handlers(void) {
  struct timespec pause = {.tv_nsec = 100000};
  for (int i = 0; i < 50000; i++) {
    if (atomic_load(&the_world.handlers_run) == atomic_load(&the_world.handlers_added)) return;
    nanosleep(&pause, NULL);
  }
  FUZZ_CHECK(false, "%lu handlers were added and %lu ran", atomic_load(&the_world.handlers_added),
             atomic_load(&the_world.handlers_run));
}

/* Every registered stream's error is taken, so that the next input begins without one. */
static void take_errors(const calls_device *device) {
  rdm_error error = {.struct_size = sizeof error};
  for (int i = 0; i < 4; i++) {
    rdm_stream stream = {0};
    if (rdm_stream_get(device->index, INT32_MAX - i, &stream) == RDM_OK) rdm_stream_take_error(stream, &error);
  }
}

/* Also for the work of streams that have ended, which no function of the library waits for. Refused until the library
 * has ended the captures that streams left open. */
static void wait_for_driver(int32_t device_index) {
  const rdm__driver *driver = NULL;
  struct timespec pause = {.tv_nsec = 100000};
  FUZZ_CHECK(rdm__runtime_enter(&driver) == RDM_OK && driver->set_device(device_index) == RDM_HIP_SUCCESS,
             "device %d can not be made current", device_index);
  int error = driver->device_synchronize();
  for (int i = 0; i < 50000 && error == RDM_HIP_CAPTURE_UNSUPPORTED; i++) {
    nanosleep(&pause, NULL);
    error = driver->device_synchronize();
  }
  FUZZ_CHECK(error == RDM_HIP_SUCCESS, "device %d has not done its work: %d", device_index, error);
  (void)driver->get_last_error();
}

static void settle(const calls_device *device, bool lost) {
  FUZZ_CHECK(rdm_sim_hold(device->index, 0) == RDM_OK, "%s", rdm_last_error_message());
  if (!lost) take_errors(device);
  rdm_status status = CALL(CALLS_ANY, rdm_device_synchronize(device->handle, end_limit_ns));
  FUZZ_CHECK(status == (lost ? RDM_ERROR_DEVICE_FAULT : RDM_OK), "device %d: %s", device->index,
             rdm_last_error_message());
  if (!lost) wait_for_driver(device->index);
}

/* How many driver events and streams the slots and the threads can have had in use at once. */
enum {
  /* Of each device and flags: in slots, one in each thread's hands, one in each thread's synchronization. */
  MOST_EVENTS = CALLS_DEVICES * 2 * (CALLS_SLOTS + 2 * CALLS_MOST_THREADS),
  /* What a thread keeps for itself goes back as it ends, but another thread may have needed one meanwhile. */
  MOST_EVENTS_KEPT = CALLS_DEVICES * 2 * CALLS_MOST_THREADS * 16,
};

static void check_objects(void) {
  rdm_sim_objects after = count_objects();
  FUZZ_CHECK(after.programs == before.programs && after.modules == before.modules, "programs or modules were left");
  FUZZ_CHECK(after.device_allocations == before.device_allocations, "%llu device allocations became %llu",
             (unsigned long long)before.device_allocations, (unsigned long long)after.device_allocations);
  FUZZ_CHECK(after.host_allocations == before.host_allocations, "%llu host allocations became %llu",
             (unsigned long long)before.host_allocations, (unsigned long long)after.host_allocations);
  uint64_t most = MOST_EVENTS + (the_world.thread_count > 1 ? MOST_EVENTS_KEPT : 0);
  FUZZ_CHECK(after.events <= before.events + most, "%llu events became %llu", (unsigned long long)before.events,
             (unsigned long long)after.events);
  FUZZ_CHECK(after.streams <= before.streams + CALLS_MOST_OPERATIONS, "%llu driver streams became %llu",
             (unsigned long long)before.streams, (unsigned long long)after.streams);
}

/* The library's own counts agree with the driver's. The driver's error for a lost device leaves its objects there. */
static void check_counters(bool lost) {
  rdm_counters counters = {.struct_size = sizeof counters};
  FUZZ_CHECK(CALL(CALLS_ANY, rdm_get_counters(&counters)) == RDM_OK, "%s", rdm_last_error_message());
  FUZZ_CHECK(counters.events_alive == 0, "%llu events are alive", (unsigned long long)counters.events_alive);
  FUZZ_CHECK(counters.waits_running == 0 && counters.compiles_running == 0, "somebody waits or compiles");
  FUZZ_CHECK(counters.device_hits <= counters.device_lookups && counters.encoder_hits <= counters.encoder_lookups &&
                 counters.module_hits <= counters.module_lookups,
             "there are more hits than lookups");
  if (lost) return;
  rdm_sim_objects objects = count_objects();
  FUZZ_CHECK(counters.driver_streams >= objects.streams && counters.driver_events <= objects.events,
             "%llu driver streams of %llu, %llu driver events of %llu", (unsigned long long)counters.driver_streams,
             (unsigned long long)objects.streams, (unsigned long long)counters.driver_events,
             (unsigned long long)objects.events);
}

void calls_check_end(void) {
  bool lost = any_lost();
  FUZZ_CHECK(rdm_sim_clear_injections(NULL) == RDM_OK, "%s", rdm_last_error_message());
  release_all();
  for (int i = 0; i < CALLS_DEVICES; i++) settle(&the_world.devices[i], atomic_load(&the_world.lost[i]));
  wait_for_handlers();
  for (int i = 0; i < CALLS_DEVICES; i++) {
    rdm_device found = {0};
    FUZZ_CHECK(CALL(CALLS_ANY, rdm_device_get(the_world.devices[i].index, &found)) == RDM_OK &&
                   found.bits == the_world.devices[i].handle.bits,
               "device %d is another one now", the_world.devices[i].index);
  }
  rdm_error error = {.struct_size = sizeof error};
  rdm_take_unattributed_error(&error);
  check_counters(lost);
  /* What a lost device had stays with it. */
  if (!lost) check_objects();
}
