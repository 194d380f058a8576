#include "driver/sim/device_streams.h"

#include "driver/sim/callback.h"
#include "driver/sim/state.h"
#include "driver/sim/stream.h"

#include <stdlib.h>
#include <sys/resource.h>

int rdm__sim_device_wait(rdm__sim_device *device) {
  size_t count;
  rdm__sim_object **streams = rdm__sim_device_copy_streams(device, &count);
  for (size_t index = 0; index < count; index++) {
    rdm__sim_stream_wait(rdm__sim_stream_of(streams[index]));
    rdm__sim_object_release(streams[index]);
  }
  free(streams);
  return rdm__sim_device_fault(device);
}

void rdm__sim_device_set_held(rdm__sim_device *device, bool held) {
  rdm__sim_device_note_held(device, held);
  size_t count;
  rdm__sim_object **streams = rdm__sim_device_copy_streams(device, &count);
  for (size_t index = 0; index < count; index++) {
    rdm__sim_stream_wake(rdm__sim_stream_of(streams[index]));
    rdm__sim_object_release(streams[index]);
  }
  free(streams);
}

static void fault_one(rdm__sim_device *device, int error) {
  /* The callback lock makes it certain that no callback begins once this returns. */
  rdm__sim_callback_queue *callbacks = rdm__sim_device_callbacks(device);
  rdm__sim_callback_queue_lock(callbacks);
  bool first = rdm__sim_device_note_fault(device, error);
  rdm__sim_callback_queue_drop_and_unlock(callbacks);
  if (!first) return;
  size_t count;
  rdm__sim_object **streams = rdm__sim_device_copy_streams(device, &count);
  for (size_t index = 0; index < count; index++) {
    rdm__sim_stream_drop_work(rdm__sim_stream_of(streams[index]), error);
    rdm__sim_object_release(streams[index]);
  }
  free(streams);
}

/* As reported of AMD's runtime (ROCm/rocm-systems#5850): the way to a core dump is taken before the flag is looked at.
 */
static void abort_where_asked(const rdm__sim_state_block *state) {
  struct rlimit core = {0};
  if (!state->faults_abort) return;
  bool dumps_core = getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_cur != 0;
  if (dumps_core || !state->skips_abort) abort();
}

void rdm__sim_device_set_fault(rdm__sim_device *device, int error) {
  rdm__sim_state_block *state = rdm__sim_state();
  abort_where_asked(state);
  if (!state->faults_are_process_wide) {
    fault_one(device, error);
    return;
  }
  /* AMD's runtime gives this one number for whatever the fault was. */
  atomic_store_explicit(&state->process_fault, RDM_HIP_ILLEGAL_ADDRESS, memory_order_release);
  for (int index = 0; index < state->device_count; index++) {
    fault_one(rdm__sim_device_at(index), RDM_HIP_ILLEGAL_ADDRESS);
  }
}
