#include "driver/sim/host_function.h"

#include "driver/sim/callback.h"

#include <stdlib.h>

typedef struct callback_work {
  rdm__sim_work work;
  rdm__host_function function;
  void *user_data;
} callback_work;

static int run_callback(rdm__sim_work *work, rdm__sim_stream *stream) {
  callback_work *callback = (callback_work *)work;
  rdm__sim_callback_queue *queue = rdm__sim_device_callbacks(rdm__sim_stream_device(stream));
  rdm__sim_callback_run(queue, callback->function, callback->user_data);
  return RDM_HIP_SUCCESS;
}

static void finish_callback(rdm__sim_work *work, int fault) {
  (void)fault;
  free(work);
}

int rdm__sim_host_function_submit(rdm__sim_stream *stream, rdm__host_function function, void *user_data) {
  if (function == NULL) return RDM_HIP_INVALID_VALUE;
  rdm__sim_callback_queue *queue = rdm__sim_device_callbacks(rdm__sim_stream_device(stream));
  if (!rdm__sim_callback_queue_start(queue)) return RDM_HIP_OUT_OF_MEMORY;
  callback_work *callback = calloc(1, sizeof *callback);
  if (callback == NULL) return RDM_HIP_OUT_OF_MEMORY;
  callback->work.run = run_callback;
  callback->work.finish = finish_callback;
  callback->work.repeats = true;
  callback->function = function;
  callback->user_data = user_data;
  return rdm__sim_stream_submit(stream, &callback->work);
}
