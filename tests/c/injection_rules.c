#include "injection.h"

#include <string.h>

#define ROW(field, what, use_of_it) \
  [RDM__CALL_##field] = {.call = RDM__CALL_##field, .scenario = (what), .use = (use_of_it)}

const injection_rule injection_rules[RDM__CALL_COUNT] = {
    ROW(init, SCENARIO_WORK, CALL_FAILS),
    ROW(driver_get_version, SCENARIO_WORK, CALL_IS_IGNORED),
    ROW(runtime_get_version, SCENARIO_WORK, CALL_IS_IGNORED),
    ROW(get_device_count, SCENARIO_WORK, CALL_FAILS),
    ROW(get_device, SCENARIO_WORK, CALL_FAILS),
    ROW(set_device, SCENARIO_WORK, CALL_FAILS),
    ROW(set_device_flags, SCENARIO_WORK, CALL_IS_DONE_WITHOUT),
    ROW(get_device_properties, SCENARIO_WORK, CALL_FAILS),
    ROW(device_synchronize, SCENARIO_WORK, CALL_IS_NEVER_MADE),
    ROW(memory_allocate, SCENARIO_WORK, CALL_FAILS),
    ROW(memory_free, SCENARIO_WORK, CALL_FAILS),
    ROW(host_memory_allocate, SCENARIO_WORK, CALL_FAILS),
    ROW(host_memory_free, SCENARIO_WORK, CALL_FAILS),
    ROW(memory_copy_async, SCENARIO_WORK, CALL_FAILS),
    ROW(memory_set_async, SCENARIO_WORK, CALL_FAILS),
    ROW(stream_create, SCENARIO_WORK, CALL_FAILS),
    ROW(stream_destroy, SCENARIO_WORK, CALL_IS_NEVER_MADE),
    ROW(stream_query, SCENARIO_WORK, CALL_FAILS),
    ROW(stream_synchronize, SCENARIO_WORK, CALL_IS_NEVER_MADE),
    ROW(stream_wait_event, SCENARIO_WORK, CALL_FAILS),
    ROW(launch_host_function, SCENARIO_WORK, CALL_IS_DONE_WITHOUT),
    ROW(stream_begin_capture, SCENARIO_WORK, CALL_IS_NEVER_MADE),
    ROW(stream_end_capture, SCENARIO_WORK, CALL_IS_NEVER_MADE),
    ROW(stream_is_capturing, SCENARIO_WORK, CALL_IS_DONE_WITHOUT),
    ROW(thread_exchange_capture_mode, SCENARIO_WORK, CALL_IS_DONE_WITHOUT),
    ROW(graph_destroy, SCENARIO_WORK, CALL_IS_NEVER_MADE),
    ROW(event_create, SCENARIO_WORK, CALL_FAILS),
    ROW(event_destroy, SCENARIO_SURPLUS_EVENTS, CALL_IS_DONE_WITHOUT),
    ROW(event_record, SCENARIO_WORK, CALL_FAILS),
    ROW(event_query, SCENARIO_WORK, CALL_FAILS),
    ROW(event_synchronize, SCENARIO_WORK, CALL_IS_NEVER_MADE),
    ROW(event_elapsed_time, SCENARIO_WORK, CALL_FAILS),
    ROW(module_load_data, SCENARIO_WORK, CALL_FAILS),
    ROW(module_unload, SCENARIO_WORK, CALL_IS_NEVER_MADE),
    ROW(module_get_function, SCENARIO_WORK, CALL_FAILS),
    ROW(launch_kernel, SCENARIO_WORK, CALL_FAILS),
    ROW(peek_at_last_error, SCENARIO_WORK, CALL_IS_IGNORED),
    ROW(get_last_error, SCENARIO_WORK, CALL_IS_IGNORED),
    ROW(rtc_version, SCENARIO_COMPILE, CALL_IS_IGNORED),
    ROW(rtc_create_program, SCENARIO_COMPILE, CALL_FAILS),
    ROW(rtc_compile_program, SCENARIO_COMPILE, CALL_FAILS),
    ROW(rtc_get_log_size, SCENARIO_COMPILE, CALL_IS_IGNORED),
    ROW(rtc_get_log, SCENARIO_COMPILE, CALL_IS_IGNORED),
    ROW(rtc_get_code_size, SCENARIO_COMPILE, CALL_FAILS),
    ROW(rtc_get_code, SCENARIO_COMPILE, CALL_FAILS),
    ROW(rtc_destroy_program, SCENARIO_COMPILE, CALL_FAILS),
};

const char *hip_name(rdm__call call) {
  static const char *const names[RDM__CALL_COUNT] = {
#define X(field, hip_name, parameters) [RDM__CALL_##field] = hip_name,
      RDM__DRIVER_CALLS(X)
#undef X
  };
  return names[call];
}

static bool is_compiler_call(rdm__call call) {
  return call >= RDM__CALL_rtc_version;
}

/* Before there is a device, an error number is the driver's own and no device's. */
static bool is_before_devices(rdm__call call) {
  return call == RDM__CALL_init || call == RDM__CALL_get_device_count;
}

bool injection_is_fault(const injection_rule *rule, int error) {
  return rdm__driver_error_is_fault(error) && rule->use != CALL_IS_IGNORED && !is_before_devices(rule->call) &&
         !is_compiler_call(rule->call);
}

bool injection_status_is_right(const injection_rule *rule, int error, rdm_status status) {
  if (rule->use == CALL_IS_IGNORED) return false;
  if (is_compiler_call(rule->call)) return status == RDM_ERROR_COMPILE;
  if (is_before_devices(rule->call)) return status == RDM_ERROR_DRIVER;
  if (injection_is_fault(rule, error)) return status == RDM_ERROR_DEVICE_FAULT;
  if (rule->use == CALL_IS_DONE_WITHOUT) return false;
  if (error == RDM_HIP_OUT_OF_MEMORY) return status == RDM_ERROR_OUT_OF_MEMORY;
  if (rule->call == RDM__CALL_launch_kernel) return status == RDM_ERROR_LAUNCH;
  return status == RDM_ERROR_DRIVER;
}

/* Where a batch with handlers is committed: what fails there is tried again by the library's thread. */
static bool commits(const char *step) {
  return strstr(step, "commit") != NULL || strstr(step, "synchronize") != NULL;
}

bool injection_may_be_unseen(const injection_rule *rule, int error, const char *step) {
  if (rule->use == CALL_IS_IGNORED) return true;
  /* On a thread of the library: a fault is latched, and met by whoever comes next, perhaps nobody. */
  if (step == NULL) return true;
  if (rule->use == CALL_IS_DONE_WITHOUT) return true;
  switch (rule->call) {
    case RDM__CALL_get_device:
    case RDM__CALL_set_device:
      return commits(step);
    case RDM__CALL_stream_query:
    case RDM__CALL_event_query:
    case RDM__CALL_event_elapsed_time:
      /* Then it is no failure: not done yet, and asked again. */
      return error == RDM_HIP_NOT_READY;
    case RDM__CALL_module_load_data:
      /* Code from the disk that the driver does not take is compiled anew. */
      return error == RDM_HIP_NOT_READY || error == RDM_HIP_INVALID_HANDLE;
    case RDM__CALL_rtc_create_program:
    case RDM__CALL_rtc_compile_program:
    case RDM__CALL_rtc_destroy_program:
      /* The caller gets RDM_ERROR_COMPILE one way or the other, and looks. */
      return strcmp(step, scenario_bad_source) == 0;
    default:
      return false;
  }
}
