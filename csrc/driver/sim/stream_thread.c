#include "driver/sim/stream_thread.h"

#include "driver/sim/device_streams.h"
#include "driver/sim/kernel_guard.h"
#include "driver/sim/stream.h"

void *rdm__sim_stream_thread(void *argument) {
  rdm__sim_stream *stream = argument;
  rdm__sim_device *device = rdm__sim_stream_device(stream);
  rdm__sim_kernel_guard_enter_thread();
  for (rdm__sim_work *work = rdm__sim_stream_next(stream, false); work != NULL;
       work = rdm__sim_stream_next(stream, true)) {
    int fault = rdm__sim_device_fault(device);
    if (fault == 0) fault = work->run(work, stream);
    if (fault != 0) rdm__sim_device_set_fault(device, fault);
    work->finish(work, rdm__sim_device_fault(device));
  }
  rdm__sim_kernel_guard_leave_thread();
  rdm__sim_stream_leave_device(stream);
  rdm__sim_stream_release(stream);
  return NULL;
}
