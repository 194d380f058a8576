/* A program that has the installed header and library and nothing else: squares of 0 to 999, on a simulated GPU. */
#include <rocm_device_map.h>

#include <stdint.h>
#include <stdio.h>

enum { COUNT = 1000, BLOCK = 128 };

static const char source_text[] =
    "extern \"C\" __global__ void square(float *out, unsigned int n) {\n"
    "  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) out[i] = (float)i * (float)i;\n"
    "}\n";

#define TRY(call)                                                                      \
  do {                                                                                 \
    if ((call) != RDM_OK) {                                                            \
      fprintf(stderr, "line %d: %s: %s\n", __LINE__, #call, rdm_last_error_message()); \
      return 1;                                                                        \
    }                                                                                  \
  } while (0)

int main(void) {
  static float values[COUNT];
  const rdm_config config = {.struct_size = sizeof config, .driver = "sim", .sim_device_count = 1};
  const rdm_module_source source = {.struct_size = sizeof source, .name = "square.hip", .source = source_text};
  const rdm_launch_config launch = {
      .struct_size = sizeof launch, .grid = {(COUNT + BLOCK - 1) / BLOCK, 1, 1}, .block = {BLOCK, 1, 1}};
  uint32_t count = COUNT;
  void *memory = NULL;
  rdm_device device;
  rdm_stream stream;
  rdm_encoder encoder;
  rdm_module module;
  rdm_kernel kernel;

  if (rdm_version() != RDM_VERSION) {
    fprintf(stderr, "the library is %s and the header is of another version\n", rdm_version_string());
    return 1;
  }
  TRY(rdm_configure(&config));
  TRY(rdm_device_get(0, &device));
  TRY(rdm_stream_create(0, &stream));
  TRY(rdm_encoder_get(stream, &encoder));
  TRY(rdm_module_get(device, &source, &module));
  TRY(rdm_module_get_kernel(module, "square", &kernel));
  TRY(rdm_memory_allocate(device, sizeof values, &memory));
  TRY(rdm_encoder_launch(encoder, kernel, &launch, (void *const[]){&memory, &count}, 2));
  TRY(rdm_encoder_copy(encoder, values, memory, sizeof values, RDM_COPY_DEVICE_TO_HOST));
  TRY(rdm_stream_synchronize(stream, RDM_WAIT_FOREVER));
  for (uint32_t i = 0; i < COUNT; i++) {
    if (values[i] != (float)i * (float)i) {
      fprintf(stderr, "value %u is %g\n", (unsigned)i, (double)values[i]);
      return 1;
    }
  }
  TRY(rdm_memory_free(device, memory));
  TRY(rdm_stream_release(stream));
  printf("c consumer: %d values are right\n", COUNT);
  return 0;
}
