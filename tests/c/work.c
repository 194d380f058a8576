#include "work.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#define RETURN_ON_FAILURE(call)            \
  do {                                     \
    rdm_status status_ = (call);           \
    if (status_ != RDM_OK) return status_; \
  } while (0)

static const char source_text[] =
    "extern \"C\" __global__ void arange(float *out, float start, float step, unsigned count) {\n"
    "  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < count) out[i] = start + step * (float)i;\n"
    "}\n"
    "extern \"C\" __global__ void multiply(float *out, const float *in, float by, unsigned count) {\n"
    "  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < count) out[i] = in[i] * by;\n"
    "}\n"
    "extern \"C\" __global__ void add(float *out, const float *in, float by, unsigned count) {\n"
    "  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < count) out[i] = in[i] + by;\n"
    "}\n"
    "extern \"C\" __global__ void step(float *values, unsigned count) {\n"
    "  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < count) values[i] = values[i] * 2.0f + 1.0f;\n"
    "}\n";

const rdm_module_source work_source = {.struct_size = sizeof(rdm_module_source), .name = "work", .source = source_text};

static atomic_uint_fast64_t stale_encoders;

static const size_t size_bytes = WORK_ELEMENTS * sizeof(float);

rdm_status work_load(int32_t device_index, work_kernels *out_kernels) {
  RETURN_ON_FAILURE(rdm_device_get(device_index, &out_kernels->device));
  RETURN_ON_FAILURE(rdm_module_get(out_kernels->device, &work_source, &out_kernels->module));
  RETURN_ON_FAILURE(rdm_module_get_kernel(out_kernels->module, "arange", &out_kernels->arange));
  RETURN_ON_FAILURE(rdm_module_get_kernel(out_kernels->module, "multiply", &out_kernels->multiply));
  RETURN_ON_FAILURE(rdm_module_get_kernel(out_kernels->module, "add", &out_kernels->add));
  return rdm_module_get_kernel(out_kernels->module, "step", &out_kernels->step);
}

rdm_status work_buffers_allocate(rdm_device device, work_buffers *out_buffers) {
  void *first = NULL;
  void *second = NULL;
  void *third = NULL;
  void *host = NULL;
  RETURN_ON_FAILURE(rdm_memory_allocate(device, size_bytes, &first));
  RETURN_ON_FAILURE(rdm_memory_allocate(device, size_bytes, &second));
  RETURN_ON_FAILURE(rdm_memory_allocate(device, size_bytes, &third));
  RETURN_ON_FAILURE(rdm_host_memory_allocate(device, size_bytes, &host));
  memset(host, 0, size_bytes);
  *out_buffers = (work_buffers){.device = device, .first = first, .second = second, .third = third, .host = host};
  return RDM_OK;
}

rdm_status work_buffers_free(work_buffers *buffers) {
  RETURN_ON_FAILURE(rdm_memory_free(buffers->device, buffers->first));
  RETURN_ON_FAILURE(rdm_memory_free(buffers->device, buffers->second));
  RETURN_ON_FAILURE(rdm_memory_free(buffers->device, buffers->third));
  return rdm_host_memory_free(buffers->device, buffers->host);
}

static rdm_status launch(rdm_encoder encoder, rdm_kernel kernel, uint32_t count, void *const *arguments,
                         uint32_t argument_count) {
  const rdm_launch_config config = {
      .struct_size = sizeof config, .grid = {(count + 63) / 64, 1, 1}, .block = {64, 1, 1}};
  return rdm_encoder_launch(encoder, kernel, &config, arguments, argument_count);
}

rdm_status work_submit(rdm_encoder encoder, const work_kernels *kernels, const work_buffers *buffers) {
  float *first = buffers->first;
  float *second = buffers->second;
  float *third = buffers->third;
  float start = 0.0f;
  float one = 1.0f;
  float two = 2.0f;
  uint32_t count = WORK_ELEMENTS;
  void *arange[] = {&first, &start, &one, &count};
  void *multiply[] = {&second, &first, &two, &count};
  void *add[] = {&third, &second, &one, &count};
  RETURN_ON_FAILURE(launch(encoder, kernels->arange, count, arange, 4));
  RETURN_ON_FAILURE(launch(encoder, kernels->multiply, count, multiply, 4));
  RETURN_ON_FAILURE(launch(encoder, kernels->add, count, add, 4));
  return rdm_encoder_copy(encoder, buffers->host, buffers->third, size_bytes, RDM_COPY_DEVICE_TO_HOST);
}

rdm_status work_submit_step(rdm_encoder encoder, const work_kernels *kernels, float *values, uint32_t count) {
  void *arguments[] = {&values, &count};
  return launch(encoder, kernels->step, count, arguments, 2);
}

uint64_t work_count_stale_encoders(void) {
  return stale_encoders;
}

uint32_t work_count_wrong(const work_buffers *buffers) {
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < WORK_ELEMENTS; i++) {
    if (buffers->host[i] != (float)(2 * i + 1)) wrong++;
  }
  return wrong;
}

rdm_status work_evaluate(rdm_stream stream, const work_kernels *kernels, const work_buffers *buffers,
                         uint32_t *out_wrong) {
  for (;;) {
    memset(buffers->host, 0, size_bytes);
    rdm_encoder encoder;
    RETURN_ON_FAILURE(rdm_encoder_get(stream, &encoder));
    rdm_status submitted = work_submit(encoder, kernels, buffers);
    if (submitted != RDM_OK && submitted != RDM_ERROR_STALE_HANDLE) return submitted;
    if (submitted != RDM_OK) stale_encoders++;
    /* After a clear the part that went through the old encoder must end before the buffers are used again. */
    RETURN_ON_FAILURE(rdm_stream_synchronize(stream, RDM_WAIT_FOREVER));
    if (submitted == RDM_OK) break;
  }
  *out_wrong = work_count_wrong(buffers);
  return RDM_OK;
}

rdm_status work_on_new_stream(int32_t device_index, uint32_t times) {
  work_kernels kernels;
  work_buffers buffers;
  rdm_stream stream;
  RETURN_ON_FAILURE(work_load(device_index, &kernels));
  RETURN_ON_FAILURE(work_buffers_allocate(kernels.device, &buffers));
  RETURN_ON_FAILURE(rdm_stream_create(device_index, &stream));
  uint32_t all_wrong = 0;
  for (uint32_t i = 0; i < times; i++) {
    uint32_t wrong = 0;
    RETURN_ON_FAILURE(work_evaluate(stream, &kernels, &buffers, &wrong));
    all_wrong += wrong;
  }
  RETURN_ON_FAILURE(rdm_stream_release(stream));
  RETURN_ON_FAILURE(work_buffers_free(&buffers));
  return all_wrong == 0 ? RDM_OK : WORK_WRONG_VALUE;
}
