/* The work that the tests give to devices: arange(256) * 2 + 1 by three kernels of one source, and two others. */
#ifndef TEST_WORK_H
#define TEST_WORK_H

#include "rocm_device_map.h"

#include <stdbool.h>

enum { WORK_ELEMENTS = 256 };

typedef struct work_kernels {
  rdm_device device;
  rdm_module module;
  /* (float *out, float start, float step, unsigned count) */
  rdm_kernel arange;
  /* (float *out, const float *in, float by, unsigned count) */
  rdm_kernel multiply;
  rdm_kernel add;
  /* (float *values, unsigned count): doubles each value and adds one, in place, so the order of launches shows. */
  rdm_kernel step;
} work_kernels;

/* The module's source, which every test shares. */
extern const rdm_module_source work_source;

/* Gets the device, the module and its kernels; the status of the call that failed, else RDM_OK. */
rdm_status work_load(int32_t device_index, work_kernels *out_kernels);

/* Buffers for one evaluation at a time. */
typedef struct work_buffers {
  rdm_device device;
  float *first;
  float *second;
  float *third;
  float *host;
} work_buffers;

rdm_status work_buffers_allocate(rdm_device device, work_buffers *out_buffers);
rdm_status work_buffers_free(work_buffers *buffers);

/* Submits the three launches and the copy to the host. Stops at the first call that fails. */
rdm_status work_submit(rdm_encoder encoder, const work_kernels *kernels, const work_buffers *buffers);

/* Launches `step` once on `values`. */
rdm_status work_submit_step(rdm_encoder encoder, const work_kernels *kernels, float *values, uint32_t count);

/*
 * Evaluates once on a stream and waits. Where another thread clears the encoders in between, it takes the stream's
 * fresh one and begins again. `out_wrong` is set to how many elements were not exactly right.
 */
rdm_status work_evaluate(rdm_stream stream, const work_kernels *kernels, const work_buffers *buffers,
                         uint32_t *out_wrong);

/* How many times work_evaluate met an encoder that another thread had cleared. */
uint64_t work_count_stale_encoders(void);

/* How many of the host's elements are not exactly right. */
uint32_t work_count_wrong(const work_buffers *buffers);

/* Load, create a stream, evaluate `times` times, release: fails the status or, on a wrong value, WORK_WRONG_VALUE. */
#define WORK_WRONG_VALUE (-1)
rdm_status work_on_new_stream(int32_t device_index, uint32_t times);

#endif
