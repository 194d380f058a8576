/* Devices, versions, the thread's current device, and the last-error slot. */
#include "conformance.h"

#include <string.h>

static void versions(void) {
  int version = 0;
  check_error("version.runtime", driver->runtime_get_version(&version), 0);
  check("version.runtime_number", version > 0, "is %d", version);
  version = 0;
  check_error("version.driver", driver->driver_get_version(&version), 0);
  check("version.driver_number", version > 0, "is %d", version);
  check_error("version.runtime_null", driver->runtime_get_version(NULL), RDM_HIP_INVALID_VALUE);
  check_error("version.driver_null", driver->driver_get_version(NULL), RDM_HIP_INVALID_VALUE);
}

static void texts(void) {
  bool whole = true;
  for (int error = -2; error < 1200; error++) {
    if (driver->error_name(error) == NULL || driver->error_string(error) == NULL) whole = false;
  }
  check("text.never_null", whole, "a number has no name or no text");
  check("text.rtc_never_null",
        driver->rtc_error_string(RDM_RTC_COMPILATION) != NULL && driver->rtc_error_string(12345) != NULL,
        "a compiler's number has no text");
  check("text.names_differ", strcmp(driver->error_name(RDM_HIP_NOT_READY), driver->error_name(RDM_HIP_NOT_FOUND)) != 0,
        "two errors have one name");
  check("text.calls_differ",
        strcmp(driver->call_name(RDM__CALL_event_record), driver->call_name(RDM__CALL_event_query)) != 0,
        "two calls have one name");
  for (int call = 0; call < RDM__CALL_COUNT; call++) {
    if (driver->call_name((rdm__call)call) == NULL || driver->call_name((rdm__call)call)[0] == '\0') whole = false;
  }
  check("text.every_call_has_a_name", whole, "a call has no name");
}

static void initialize(void) {
  if (device_count == 0) {
    skip("init.again", "without a device the runtime does not initialize");
    return;
  }
  check_error("init.again", driver->init(0), 0);
  check_error("init.flags", driver->init(1), RDM_HIP_INVALID_VALUE);
}

static void no_device(void) {
  int count = -1;
  if (device_count > 0) {
    skip("no_device", "there is a device");
    return;
  }
  check_error("no_device.count", driver->get_device_count(&count), RDM_HIP_NO_DEVICE);
  check("no_device.count_is_zero", count == 0, "is %d", count);
  check_either("no_device.set_device", driver->set_device(0), RDM_HIP_INVALID_DEVICE, RDM_HIP_NO_DEVICE);
  void *pointer = NULL;
  check_either("no_device.memory", driver->memory_allocate(&pointer, 64), RDM_HIP_INVALID_DEVICE, RDM_HIP_NO_DEVICE);
  check_either("no_device.stream", driver->stream_create(&pointer, RDM_HIP_STREAM_NON_BLOCKING), RDM_HIP_INVALID_DEVICE,
               RDM_HIP_NO_DEVICE);
  check_either("no_device.event", driver->event_create(&pointer, 0), RDM_HIP_INVALID_DEVICE, RDM_HIP_NO_DEVICE);
}

static void counts(void) {
  int count = 0;
  int device = -1;
  check_error("count", driver->get_device_count(&count), 0);
  check("count.positive", count == device_count && count > 0, "is %d", count);
  check_error("count.null", driver->get_device_count(NULL), RDM_HIP_INVALID_VALUE);
  check_error("get_device", driver->get_device(&device), 0);
  check("get_device.starts_at_zero", device == 0, "is %d", device);
  check_error("get_device.null", driver->get_device(NULL), RDM_HIP_INVALID_VALUE);
}

static void properties(void) {
  rdm__device_properties found;
  memset(&found, 0xff, sizeof found);
  check_error("properties", driver->get_device_properties(&found, 0), 0);
  check("properties.name", found.name[0] != '\0' && strlen(found.name) < sizeof found.name, "is empty");
  check("properties.architecture", found.architecture[0] != '\0' && strlen(found.architecture) < 64, "is empty");
  check("properties.memory", found.total_memory_bytes > 1000000 && found.total_memory_bytes < (1ull << 50), "is %llu",
        (unsigned long long)found.total_memory_bytes);
  check("properties.threads", found.max_threads_per_block == 1024, "is %d", found.max_threads_per_block);
  check("properties.warp", found.warp_size == 32 || found.warp_size == 64, "is %d", found.warp_size);
  check("properties.processors", found.multiprocessor_count > 0 && found.multiprocessor_count < 10000, "is %d",
        found.multiprocessor_count);
  check_error("properties.null", driver->get_device_properties(NULL, 0), RDM_HIP_INVALID_VALUE);
  check_error("properties.negative", driver->get_device_properties(&found, -1), RDM_HIP_INVALID_DEVICE);
  check_error("properties.too_large", driver->get_device_properties(&found, device_count), RDM_HIP_INVALID_DEVICE);
}

static void set_device_errors(void) {
  int device = -1;
  check_error("set_device", driver->set_device(0), 0);
  check_error("set_device.negative", driver->set_device(-1), RDM_HIP_INVALID_DEVICE);
  check_error("set_device.count", driver->set_device(device_count), RDM_HIP_INVALID_DEVICE);
  check_error("set_device.largest", driver->set_device(2147483647), RDM_HIP_INVALID_DEVICE);
  need("get_device", driver->get_device(&device));
  check("set_device.error_changes_nothing", device == 0, "the current device is %d", device);
}

static void last_error(void) {
  check_error("last_error.starts_clear", driver->peek_at_last_error(), 0);
  check_error("last_error.set", driver->set_device(-1), RDM_HIP_INVALID_DEVICE);
  check_error("last_error.peek", driver->peek_at_last_error(), RDM_HIP_INVALID_DEVICE);
  check_error("last_error.peek_leaves_it", driver->peek_at_last_error(), RDM_HIP_INVALID_DEVICE);
  int device = 0;
  need("get_device", driver->get_device(&device));
  need("device_synchronize", driver->device_synchronize());
  check_error("last_error.success_leaves_it", driver->get_last_error(), RDM_HIP_INVALID_DEVICE);
  check_error("last_error.get_clears_it", driver->get_last_error(), 0);
  check_error("last_error.peek_after", driver->peek_at_last_error(), 0);
}

typedef struct thread_view {
  int device;
  int error_before;
  int set_error;
  int device_after;
} thread_view;

static void *see_from_thread(void *argument) {
  thread_view *view = argument;
  view->error_before = driver->peek_at_last_error();
  (void)driver->get_device(&view->device);
  view->set_error = driver->set_device(device_count - 1);
  (void)driver->get_device(&view->device_after);
  (void)driver->set_device(-1);
  return NULL;
}

static void per_thread(void) {
  thread_view view = {.device = -1, .error_before = -1, .set_error = -1, .device_after = -1};
  need("set_device", driver->set_device(device_count - 1));
  (void)driver->set_device(-1);
  on_thread(see_from_thread, &view);
  check("thread.starts_at_device_zero", view.device == 0, "is %d", view.device);
  check_error("thread.has_its_own_last_error", view.error_before, 0);
  check_error("thread.set_device", view.set_error, 0);
  check("thread.device_is_set", view.device_after == device_count - 1, "is %d", view.device_after);
  check_error("thread.last_error_is_kept", driver->get_last_error(), RDM_HIP_INVALID_DEVICE);
  check_error("thread.other_threads_error_stays_there", driver->get_last_error(), 0);
}

static void *use_device_zero(void *argument) {
  (void)argument;
  (void)driver->set_device(0);
  return NULL;
}

static void second_device(void) {
  int device = -1;
  need("set_device", driver->set_device(1));
  on_thread(use_device_zero, NULL);
  need("get_device", driver->get_device(&device));
  check("second_device.stays_current", device == 1, "is %d", device);
  void *stream = make_stream();
  check_error("second_device.stream", driver->stream_synchronize(stream), 0);
  need("stream_destroy", driver->stream_destroy(stream));
}

static void flags_first(void) {
  need("set_device", driver->set_device(0));
  check_error("device.flags_first", driver->set_device_flags(RDM_HIP_DEVICE_SCHEDULE_BLOCKING_SYNC), 0);
  void *stream = make_stream();
  check_error("device.works_with_flags", driver->stream_synchronize(stream), 0);
}

static void flags_later(void) {
  need("set_device", driver->set_device(0));
  void *stream = make_stream();
  need("stream_synchronize", driver->stream_synchronize(stream));
  check_error("device.flags_after_use", driver->set_device_flags(RDM_HIP_DEVICE_SCHEDULE_BLOCKING_SYNC),
              RDM_HIP_SET_ON_ACTIVE_PROCESS);
  check_error("device.works_after_late_flags", driver->stream_synchronize(stream), 0);
}

static void flags_unknown(void) {
  need("set_device", driver->set_device(0));
  check_error("device.flags_unknown", driver->set_device_flags(0x4000), RDM_HIP_INVALID_VALUE);
}

static void synchronize(void) {
  int calls = 0;
  gate held;
  gate_make(&held);
  void *stream = make_stream();
  check_error("device_synchronize.idle", driver->device_synchronize(), 0);
  gate_hold(&held, stream);
  need("launch_host_function", driver->launch_host_function(stream, count_call, &calls));
  gate_wait_entered(&held);
  gate_open(&held);
  check_error("device_synchronize", driver->device_synchronize(), 0);
  check("device_synchronize.waits_for_every_stream", __atomic_load_n(&calls, __ATOMIC_SEQ_CST) == 1,
        "it returned before the work was done");
}

const conformance_test device_tests[] = {
    {"versions", versions, 0},
    {"texts", texts, 0},
    {"initialize", initialize, 0},
    {"no_device", no_device, 0},
    {"counts", counts, 1},
    {"properties", properties, 1},
    {"set_device_errors", set_device_errors, 1},
    {"last_error", last_error, 1},
    {"per_thread", per_thread, 1},
    {"second_device", second_device, 2},
    {"flags_first", flags_first, 1},
    {"flags_later", flags_later, 1},
    {"flags_unknown", flags_unknown, 1},
    {"device_synchronize", synchronize, 1},
    {NULL, NULL, 0},
};
