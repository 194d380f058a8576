#include "driver/sim/call.h"

#include "clock.h"
#include "driver/sim/call_log.h"
#include "driver/sim/call_name.h"
#include "driver/sim/capture.h"
#include "driver/sim/compiler.h"
#include "driver/sim/device.h"
#include "driver/sim/injection.h"
#include "driver/sim/state.h"
#include "driver/sim/thread.h"

#include <stdatomic.h>

static atomic_uint_fast64_t thread_count;

/* The run-time compiler is a library of its own: it needs no hipInit and keeps no last error. */
static bool is_compiler_call(rdm__call call) {
  return call >= RDM__CALL_rtc_version && call <= RDM__CALL_rtc_destroy_program;
}

/* These two read the last-error slot, so they neither set it nor fail for a device's sake. */
static bool reads_last_error(rdm__call call) {
  return call == RDM__CALL_peek_at_last_error || call == RDM__CALL_get_last_error;
}

int rdm__sim_call_begin(rdm__sim_call_scope *scope, rdm__call call, const void *handle, int named_device) {
  rdm__sim_state_block *state = rdm__sim_state();
  rdm__sim_thread *thread = rdm__sim_this_thread();
  if (thread->number == 0) {
    thread->number = atomic_fetch_add_explicit(&thread_count, 1, memory_order_relaxed) + 1;
  }
  rdm_sim_call entry = {
      .time_ns = rdm__now_ns(),
      .thread = thread->number,
      .handle = (uint64_t)(uintptr_t)handle,
      .current_device = thread->current_device,
      .named_device = named_device,
      .result = -1,
      .in_callback = thread->in_callback,
      .entry_point = rdm__sim_call_name(call),
  };
  scope->call = call;
  scope->number = rdm__sim_call_log_add(call, &entry);

  int error = rdm__sim_injection_apply(call);
  if (error != 0) return error;
  if (thread->in_callback) return is_compiler_call(call) ? RDM__SIM_RTC_INTERNAL_ERROR : RDM_HIP_NOT_PERMITTED;
  if (is_compiler_call(call)) return RDM_RTC_SUCCESS;
  if (call != RDM__CALL_init && !atomic_load_explicit(&state->initialized, memory_order_acquire)) {
    return RDM_HIP_NOT_INITIALIZED;
  }
  if (reads_last_error(call)) return RDM_HIP_SUCCESS;
  error = atomic_load_explicit(&state->process_fault, memory_order_acquire);
  if (error != 0) return error;
  rdm__sim_device *device = rdm__sim_device_at(named_device);
  error = device == NULL ? RDM_HIP_SUCCESS : rdm__sim_device_fault(device);
  return error != 0 ? error : rdm__sim_capture_check_call(call, named_device);
}

int rdm__sim_call_end(rdm__sim_call_scope *scope, int result) {
  return rdm__sim_call_end_created(scope, result, NULL);
}

int rdm__sim_call_end_created(rdm__sim_call_scope *scope, int result, const void *handle) {
  rdm__sim_call_log_finish(scope->number, result, (uint64_t)(uintptr_t)handle);
  if (is_compiler_call(scope->call) || reads_last_error(scope->call)) return result;
  rdm__sim_thread *thread = rdm__sim_this_thread();
  if (result != RDM_HIP_SUCCESS || rdm__sim_state()->legacy_last_error) thread->last_error = result;
  return result;
}
