/* Entry points: those of the whole runtime. */
#include "driver/sim/call.h"
#include "driver/sim/calls.h"
#include "driver/sim/state.h"
#include "driver/sim/thread.h"

/* In the form of HIP 7.0. */
enum { RUNTIME_VERSION = 70000000 };

int rdm__sim_hip_init(unsigned flags) {
  rdm__sim_call_scope scope;
  int result = rdm__sim_call_begin(&scope, RDM__CALL_init, NULL, -1);
  if (result == RDM_HIP_SUCCESS && flags != 0) result = RDM_HIP_INVALID_VALUE;
  if (result == RDM_HIP_SUCCESS) atomic_store_explicit(&rdm__sim_state()->initialized, true, memory_order_release);
  return rdm__sim_call_end(&scope, result);
}

static int get_version(rdm__call call, int *version) {
  rdm__sim_call_scope scope;
  int result = rdm__sim_call_begin(&scope, call, NULL, -1);
  if (result == RDM_HIP_SUCCESS && version == NULL) result = RDM_HIP_INVALID_VALUE;
  if (result == RDM_HIP_SUCCESS) *version = RUNTIME_VERSION;
  return rdm__sim_call_end(&scope, result);
}

int rdm__sim_hip_driver_get_version(int *version) {
  return get_version(RDM__CALL_driver_get_version, version);
}

int rdm__sim_hip_runtime_get_version(int *version) {
  return get_version(RDM__CALL_runtime_get_version, version);
}

int rdm__sim_hip_peek_at_last_error(void) {
  rdm__sim_call_scope scope;
  int result = rdm__sim_call_begin(&scope, RDM__CALL_peek_at_last_error, NULL, -1);
  if (result == RDM_HIP_SUCCESS) result = rdm__sim_this_thread()->last_error;
  return rdm__sim_call_end(&scope, result);
}

int rdm__sim_hip_get_last_error(void) {
  rdm__sim_call_scope scope;
  int result = rdm__sim_call_begin(&scope, RDM__CALL_get_last_error, NULL, -1);
  if (result == RDM_HIP_SUCCESS) {
    result = rdm__sim_this_thread()->last_error;
    rdm__sim_this_thread()->last_error = RDM_HIP_SUCCESS;
  }
  return rdm__sim_call_end(&scope, result);
}
