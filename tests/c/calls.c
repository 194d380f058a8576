#include "calls.h"

#include "test.h"

#include <stdlib.h>
#include <string.h>

enum { LOG_CAPACITY = 65536 };

call_list calls_read(uint64_t first) {
  call_list list = {.calls = malloc(LOG_CAPACITY * sizeof *list.calls)};
  CHECK(list.calls != NULL);
  CHECK_OK(rdm_sim_read_calls(first, list.calls, LOG_CAPACITY, &list.count));
  return list;
}

void calls_free(call_list *list) {
  free(list->calls);
  *list = (call_list){0};
}

uint64_t calls_made(const char *entry_point) {
  uint64_t count = 0;
  CHECK_OK(rdm_sim_call_count(entry_point, &count));
  return count;
}

bool call_is(const rdm_sim_call *call, const char *entry_point) {
  return strcmp(call->entry_point, entry_point) == 0;
}

bool call_touches_no_device(const rdm_sim_call *call) {
  static const char *const names[] = {"hipInit",           "hipDriverGetVersion", "hipRuntimeGetVersion",
                                      "hipGetDeviceCount", "hipGetDevice",        "hipPeekAtLastError",
                                      "hipGetLastError"};
  if (strncmp(call->entry_point, "hiprtc", 6) == 0) return true;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (call_is(call, names[i])) return true;
  }
  return false;
}

static bool chooses_or_describes(const rdm_sim_call *call) {
  return call_is(call, "hipSetDevice") || call_is(call, "hipGetDeviceProperties");
}

void calls_check_current_device(const call_list *list) {
  for (size_t i = 0; i < list->count; i++) {
    const rdm_sim_call *call = &list->calls[i];
    CHECK_THAT(call->in_callback == 0, "%s was called from a host callback", call->entry_point);
    if (call->named_device < 0 || chooses_or_describes(call)) continue;
    CHECK_THAT(call->current_device == call->named_device,
               "call %zu of the log: thread %llu called %s for device %d while device %d was current", i,
               (unsigned long long)call->thread, call->entry_point, call->named_device, call->current_device);
  }
}

void calls_check_only_device(const call_list *list, int32_t device_index) {
  for (size_t i = 0; i < list->count; i++) {
    const rdm_sim_call *call = &list->calls[i];
    CHECK_THAT(call->named_device < 0 || call->named_device == device_index,
               "call %zu of the log: %s names device %d, expected %d alone", i, call->entry_point, call->named_device,
               device_index);
    if (call_touches_no_device(call) || chooses_or_describes(call)) continue;
    CHECK_THAT(call->current_device == device_index,
               "call %zu of the log: thread %llu called %s while device %d was current, expected %d alone", i,
               (unsigned long long)call->thread, call->entry_point, call->current_device, device_index);
  }
}

void calls_wait_until_inside(const char *entry_point, uint64_t limit_ns) {
  uint64_t end = test_now_ns() + limit_ns;
  for (;;) {
    call_list list = calls_read(0);
    bool inside = false;
    for (size_t i = 0; i < list.count; i++) {
      if (call_is(&list.calls[i], entry_point) && list.calls[i].result == -1) inside = true;
    }
    calls_free(&list);
    if (inside) return;
    CHECK_THAT(test_now_ns() < end, "no thread entered %s in time", entry_point);
    test_sleep_ns(TEST_MILLISECOND);
  }
}

rdm_sim_objects calls_count_objects(void) {
  rdm_sim_objects objects = {.struct_size = sizeof objects};
  CHECK_OK(rdm_sim_count_objects(&objects));
  return objects;
}
