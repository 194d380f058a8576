/* The library's module cache. */
#include "kernels.h"
#include "module_hits.h"

static rdm_module_source source_of(const char *text) {
  return (rdm_module_source){.struct_size = sizeof(rdm_module_source), .name = "rdm_bench", .source = text};
}

static void get(rdm__bench_state *state, const char *text) {
  rdm_device device;
  const rdm_module_source source = source_of(text);
  rdm_module module;
  rdm_status status = rdm_device_get(state->device_index, &device);
  if (status == RDM_OK) status = rdm_module_get(device, &source, &module);
  rdm__bench_check(state, status, "getting a module");
}

static void hit(rdm__bench_state *state) {
  get(state, rdm__bench_empty_source);
}

/* Holds nothing that a hit waits for, so hits may begin a moment before the compiler does. */
static void compile(rdm__bench_state *state, const char *source, _Atomic int32_t *phase) {
  atomic_store_explicit(phase, RDM__BENCH_RUNNING, memory_order_release);
  get(state, source);
  atomic_store_explicit(phase, RDM__BENCH_WAITING, memory_order_release);
}

extern const rdm__bench_modules rdm__bench_module_cache;
const rdm__bench_modules rdm__bench_module_cache = {.name = "module hit", .begin = hit, .hit = hit, .compile = compile};
