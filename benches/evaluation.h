/* arange * 2 + 1 of 256 elements: the kernels, and whether it is right. */
#ifndef RDM_BENCH_EVALUATION_H
#define RDM_BENCH_EVALUATION_H

/* Each in one block. */
static const char rdm__bench_evaluation_source[] =
    "extern \"C\" __global__ void bench_arange(float *out, float start, float step) {\n"
    "  out[threadIdx.x] = start + step * (float)threadIdx.x;\n"
    "}\n"
    "extern \"C\" __global__ void bench_multiply(float *out, const float *in, float factor) {\n"
    "  out[threadIdx.x] = in[threadIdx.x] * factor;\n"
    "}\n"
    "extern \"C\" __global__ void bench_add(float *out, const float *in, float addend) {\n"
    "  out[threadIdx.x] = in[threadIdx.x] + addend;\n"
    "}\n";
enum { RDM__BENCH_ELEMENTS = 256 };

/* How many elements are not exactly right. */
static inline int rdm__bench_count_wrong(const void *host_memory) {
  const volatile float *values = host_memory;
  int wrong = 0;
  for (int k = 0; k < RDM__BENCH_ELEMENTS; k++) wrong += values[k] != 2.0f * (float)k + 1.0f;
  return wrong;
}

#endif
