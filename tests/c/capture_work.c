#include "capture_work.h"

#include "test.h"
#include "work.h"

#include <stdatomic.h>
#include <stdio.h>

static void count_run(rdm_status status, void *user_data) {
  CHECK_OK(status);
  (*(atomic_uint *)user_data)++;
}

/* A source that no other call has compiled. */
static void load_anew(rdm_device device) {
  static atomic_uint number;
  char name[48];
  rdm_module module;
  rdm_kernel kernel;
  rdm_module_source source = work_source;
  snprintf(name, sizeof name, "while a capture goes on %u", number++);
  source.name = name;
  CHECK_OK(rdm_module_get(device, &source, &module));
  CHECK_OK(rdm_module_get_kernel(module, "step", &kernel));
  CHECK_STATUS(rdm_module_get_kernel(module, "none", &kernel), RDM_ERROR_KERNEL_NOT_FOUND);
}

static void use_events(rdm_device device, rdm_encoder encoder) {
  rdm_event events[2];
  float milliseconds = 0;
  for (int i = 0; i < 2; i++) {
    CHECK_OK(rdm_event_create(device, RDM_EVENT_TIMING, &events[i]));
    CHECK_OK(rdm_encoder_record_event(encoder, events[i]));
  }
  rdm_status status;
  while ((status = rdm_event_query(events[1])) == RDM_NOT_READY) {
  }
  CHECK_OK(status);
  for (int i = 0; i < 2; i++) CHECK_OK(rdm_event_wait(events[i], RDM_WAIT_FOREVER));
  CHECK_OK(rdm_event_elapsed(events[0], events[1], &milliseconds));
  for (int i = 0; i < 2; i++) CHECK_OK(rdm_event_release(events[i]));
}

void capture_work_do(int32_t device_index) {
  static atomic_uint runs;
  work_kernels kernels;
  work_buffers buffers;
  rdm_stream stream;
  rdm_encoder encoder;
  uint32_t wrong = 1;
  CHECK_OK(work_load(device_index, &kernels));
  CHECK_OK(work_buffers_allocate(kernels.device, &buffers));
  load_anew(kernels.device);
  CHECK_OK(rdm_stream_create(device_index, &stream));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
  CHECK_OK(rdm_encoder_add_completion_handler(encoder, count_run, &runs));
  CHECK_OK(rdm_encoder_commit(encoder));
  use_events(kernels.device, encoder);
  CHECK_OK(work_evaluate(stream, &kernels, &buffers, &wrong));
  CHECK(wrong == 0 && runs > 0);
  CHECK_OK(rdm_device_synchronize(kernels.device, RDM_WAIT_FOREVER));
  CHECK_OK(rdm_stream_release(stream));
  CHECK_OK(work_buffers_free(&buffers));
}
