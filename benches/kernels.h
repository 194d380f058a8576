/* The kernels that are launched, as run-time compiled source. */
#ifndef RDM_BENCH_KERNELS_H
#define RDM_BENCH_KERNELS_H

static const char rdm__bench_empty_source[] = "extern \"C\" __global__ void bench_empty(void) {}\n";

#endif
