/* Entry points: the run-time compiler. It needs no hipInit, and keeps no last error. */
#include "driver/sim/call.h"
#include "driver/sim/calls.h"
#include "driver/sim/program.h"

enum { VERSION_MAJOR = 1, VERSION_MINOR = 0 };

int rdm__sim_hip_rtc_version(int *major, int *minor) {
  rdm__sim_call_scope scope;
  int result = rdm__sim_call_begin(&scope, RDM__CALL_rtc_version, NULL, -1);
  if (result == RDM_RTC_SUCCESS && (major == NULL || minor == NULL)) result = RDM_RTC_INVALID_INPUT;
  if (result == RDM_RTC_SUCCESS) {
    *major = VERSION_MAJOR;
    *minor = VERSION_MINOR;
  }
  return rdm__sim_call_end(&scope, result);
}

int rdm__sim_hip_rtc_create_program(void **program, const char *source, const char *name) {
  rdm__sim_call_scope scope;
  void *handle = NULL;
  int result = rdm__sim_call_begin(&scope, RDM__CALL_rtc_create_program, NULL, -1);
  if (result == RDM_RTC_SUCCESS) result = rdm__sim_program_create(program, source, name);
  if (result == RDM_RTC_SUCCESS) handle = *program;
  return rdm__sim_call_end_created(&scope, result, handle);
}

int rdm__sim_hip_rtc_compile_program(void *program, int option_count, const char *const *options) {
  rdm__sim_call_scope scope;
  rdm__sim_program *found = rdm__sim_program_get(program);
  int result = rdm__sim_call_begin(&scope, RDM__CALL_rtc_compile_program, program, -1);
  if (result == RDM_RTC_SUCCESS) result = rdm__sim_program_compile(found, option_count, options);
  rdm__sim_program_release(found);
  return rdm__sim_call_end(&scope, result);
}

static int output_call(rdm__call call, rdm__sim_output_kind kind, void *handle, size_t *out_size, char *out_bytes) {
  rdm__sim_call_scope scope;
  rdm__sim_program *found = rdm__sim_program_get(handle);
  int result = rdm__sim_call_begin(&scope, call, handle, -1);
  if (result == RDM_RTC_SUCCESS) result = rdm__sim_program_read(found, kind, out_size, out_bytes);
  rdm__sim_program_release(found);
  return rdm__sim_call_end(&scope, result);
}

int rdm__sim_hip_rtc_get_log_size(void *program, size_t *size) {
  return output_call(RDM__CALL_rtc_get_log_size, RDM__SIM_OUTPUT_LOG, program, size, NULL);
}

int rdm__sim_hip_rtc_get_log(void *program, char *log) {
  return output_call(RDM__CALL_rtc_get_log, RDM__SIM_OUTPUT_LOG, program, NULL, log);
}

int rdm__sim_hip_rtc_get_code_size(void *program, size_t *size) {
  return output_call(RDM__CALL_rtc_get_code_size, RDM__SIM_OUTPUT_CODE, program, size, NULL);
}

int rdm__sim_hip_rtc_get_code(void *program, char *code) {
  return output_call(RDM__CALL_rtc_get_code, RDM__SIM_OUTPUT_CODE, program, NULL, code);
}

int rdm__sim_hip_rtc_destroy_program(void **program) {
  rdm__sim_call_scope scope;
  const void *handle = program == NULL ? NULL : *program;
  int result = rdm__sim_call_begin(&scope, RDM__CALL_rtc_destroy_program, handle, -1);
  if (result == RDM_RTC_SUCCESS) result = rdm__sim_program_destroy(handle);
  if (result == RDM_RTC_SUCCESS) *program = NULL;
  return rdm__sim_call_end(&scope, result);
}
