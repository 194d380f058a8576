/*
 * 1 to 2048 modules, and 1 to 1024 kernels of one module. Linked with the stub driver of benches/instructions: a
 * compiler's own time would be all that is seen.
 */
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_MODULES = 2048, MOST_KERNELS = 1024, FEW_KERNELS = 8, ROUNDS = 9, LOOKUPS = 20000, LOOKED_UP = 16 };

static rdm_device device;
static char names[MOST_MODULES][32];

static rdm_module get_module(uint64_t which) {
  /* Sources differ by an option, as the same kernels for other types do. */
  const char *const options[] = {names[which]};
  const rdm_module_source source = {.struct_size = sizeof source,
                                    .option_count = 1,
                                    .name = "growth.hip",
                                    .source = "extern \"C\" __global__ void probe(float *out) { out[0] = VALUE; }",
                                    .options = options};
  rdm_module module;
  growth_check(rdm_module_get(device, &source, &module), "a module");
  return module;
}

static void hit_module(void *context, uint64_t index) {
  get_module(index % LOOKED_UP * *(const uint64_t *)context / LOOKED_UP);
}

typedef struct kernels {
  rdm_module module;
  uint64_t count;
} kernels;

static void hit_kernel(void *context, uint64_t index) {
  const kernels *kernels = context;
  rdm_kernel kernel;
  growth_check(rdm_module_get_kernel(kernels->module, names[index % LOOKED_UP * kernels->count / LOOKED_UP], &kernel),
               "a kernel");
}

int main(void) {
  rdm_set_log_handler(NULL, NULL, RDM_LOG_ERROR);
  for (int i = 0; i < MOST_MODULES; i++) snprintf(names[i], sizeof names[i], "-DVALUE=%d", i);
  growth_check(rdm_device_get(0, &device), "the device");
  double before = growth_resident_kib();
  uint64_t made = 0;
  for (uint64_t n = 1; n <= MOST_MODULES; n *= 2) {
    for (; made < n; made++) get_module(made);
    growth_point("modules", "hit, ns", n, growth_least_ns(ROUNDS, LOOKUPS, hit_module, &n), "flat", 0);
    growth_point("modules", "memory, KiB", n, growth_resident_kib() - before, "linear", 0);
  }
  kernels kernels = {.module = get_module(0)};
  for (uint64_t n = 1; n <= MOST_KERNELS; n *= 4) {
    rdm_kernel kernel;
    for (; kernels.count < n; kernels.count++) {
      growth_check(rdm_module_get_kernel(kernels.module, names[kernels.count], &kernel), "a kernel");
    }
    /* A few are compared one by one, many are hashed: two levels, each of which has to be flat. */
    growth_point("kernels of one module", n <= FEW_KERNELS ? "hit, few, ns" : "hit, many, ns", n,
                 growth_least_ns(ROUNDS, LOOKUPS, hit_kernel, &kernels), "flat", 0);
  }
  return EXIT_SUCCESS;
}
