/* The probe's kernels: each computes one element per thread, and `n` bounds them. */

extern "C" __global__ void probe_arange(float *out, float start, float step, unsigned int n) {
  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = start + step * (float)i;
}

extern "C" __global__ void probe_full(float *out, float value, unsigned int n) {
  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = value;
}

extern "C" __global__ void probe_multiply_scalar(float *out, const float *in, float factor, unsigned int n) {
  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] * factor;
}

extern "C" __global__ void probe_add_scalar(float *out, const float *in, float addend, unsigned int n) {
  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] + addend;
}

extern "C" __global__ void probe_add(float *out, const float *left, const float *right, unsigned int n) {
  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = left[i] + right[i];
}

/* Writes one float so many bytes past the start of its buffer. */
extern "C" __global__ void probe_write_at(char *out, unsigned long long offset_bytes) {
  if (blockIdx.x == 0 && threadIdx.x == 0) *(float *)(out + offset_bytes) = 1.0f;
}
