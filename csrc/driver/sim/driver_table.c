/*
 * Opens the simulated driver. The environment chooses:
 *   RDM_SIM_COMPILER           the compiler, by name or path
 *   RDM_SIM_FAULT_SCOPE        "process": a fault takes every device with it, as AMD's runtime has it; "device"
 *   RDM_SIM_FAULT_ABORT        "1": a fault aborts the process, as AMD's runtime has it; "0".
 * HIP_SKIP_ABORT_ON_GPU_ERROR turns that off, but not where the process may write a core dump RDM_SIM_LAST_ERROR
 * "legacy": each call overwrites the last error, as before ROCm 7; "sticky" RDM_SIM_SERIAL_COMPILER    "1": a second
 * thread inside a compile or a module load gets an error; "0" RDM_SIM_INJECT             injections that are set before
 * the first call; see injection.h
 */
#include "driver/sim/driver_table.h"

#include "driver/driver_error.h"
#include "driver/sim/call_log.h"
#include "driver/sim/call_name.h"
#include "driver/sim/calls.h"
#include "driver/sim/compiler.h"
#include "driver/sim/device.h"
#include "driver/sim/injection.h"
#include "driver/sim/memory.h"
#include "driver/sim/module.h"
#include "driver/sim/object.h"
#include "driver/sim/kernel_abi.h"
#include "driver/sim/kernel_source.h"
#include "driver/sim/state.h"
#include "driver/sim/thread.h"
#include "status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static rdm__driver *the_table;

static int kernel_argument_count(void *handle) {
  rdm__sim_function *function = rdm__sim_function_get(handle);
  int count = function == NULL ? -1 : (int)rdm__sim_function_kernel(function)->argument_count;
  rdm__sim_function_release(function);
  return count;
}

static int kernel_argument_size(void *handle, unsigned index) {
  rdm__sim_function *function = rdm__sim_function_get(handle);
  const rdm__sim_kernel *kernel = function == NULL ? NULL : rdm__sim_function_kernel(function);
  int size = kernel == NULL || index >= kernel->argument_count ? -1 : (int)kernel->argument_sizes[index];
  rdm__sim_function_release(function);
  return size;
}

/* ---- Opening --------------------------------------------------------------------------------------------------- */

/* Reads a variable that has two values. False where it has a third. */
static bool read_choice(const char *variable, const char *off, const char *on, bool *out_on) {
  const char *text = getenv(variable);
  *out_on = text != NULL && strcmp(text, on) == 0;
  return text == NULL || *text == '\0' || *out_on || strcmp(text, off) == 0;
}

static rdm_status read_environment(rdm__sim_state_block *state) {
  static const char format[] = "%s=\"%s\" is not \"%s\" or \"%s\"";
  if (!read_choice("RDM_SIM_FAULT_SCOPE", "device", "process", &state->faults_are_process_wide)) {
    return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, format, "RDM_SIM_FAULT_SCOPE", getenv("RDM_SIM_FAULT_SCOPE"), "device",
                     "process");
  }
  if (!read_choice("RDM_SIM_FAULT_ABORT", "0", "1", &state->faults_abort)) {
    return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, format, "RDM_SIM_FAULT_ABORT", getenv("RDM_SIM_FAULT_ABORT"), "0",
                     "1");
  }
  const char *skip = getenv("HIP_SKIP_ABORT_ON_GPU_ERROR");
  state->skips_abort = skip != NULL && strcmp(skip, "1") == 0;
  if (!read_choice("RDM_SIM_LAST_ERROR", "sticky", "legacy", &state->legacy_last_error)) {
    return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, format, "RDM_SIM_LAST_ERROR", getenv("RDM_SIM_LAST_ERROR"), "sticky",
                     "legacy");
  }
  if (!read_choice("RDM_SIM_SERIAL_COMPILER", "0", "1", &state->one_compile_at_a_time)) {
    return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, format, "RDM_SIM_SERIAL_COMPILER", getenv("RDM_SIM_SERIAL_COMPILER"),
                     "0", "1");
  }
  const char *injections = getenv("RDM_SIM_INJECT");
  if (injections != NULL && !rdm__sim_injections_parse(state->injections, injections)) {
    return rdm__fail(RDM_ERROR_INVALID_ARGUMENT,
                     "RDM_SIM_INJECT=\"%s\" is not a list of entry point:nth:times:error:stall_ns", injections);
  }
  return RDM_OK;
}

static void free_state(rdm__sim_state_block *state) {
  if (state == NULL) return;
  free(state->calls);
  rdm__sim_injections_destroy(state->injections);
  free(state->handles);
  free(state->memory);
  free(state);
}

static rdm__sim_state_block *make_state(void) {
  rdm__sim_state_block *state = calloc(1, sizeof *state);
  if (state != NULL) {
    state->calls = rdm__sim_call_log_create();
    state->injections = rdm__sim_injections_create();
    state->handles = rdm__sim_handle_table_create();
    state->memory = rdm__sim_memory_create();
  }
  if (state == NULL || state->calls == NULL || state->injections == NULL || state->handles == NULL ||
      state->memory == NULL) {
    free_state(state);
    rdm__fail(RDM_ERROR_OUT_OF_MEMORY, "no memory for the simulated driver");
    return NULL;
  }
  if (read_environment(state) != RDM_OK) {
    free_state(state);
    return NULL;
  }
  return state;
}

/*
 * What code from another build of this driver must not be taken for: the translation of a sample holds the prelude and
 * what is generated for each kernel.
 */
static void identify_compiler(char *out_identity, size_t size) {
  char *sample = rdm__sim_kernel_source("extern \"C\" __global__ void k(float *a, unsigned b) {}", "sample", true);
  if (sample == NULL) return;
  snprintf(out_identity, size, "abi %d, %016llx", RDM__SIM_KERNEL_ABI,
           (unsigned long long)rdm__sim_checksum(sample, strlen(sample)));
  free(sample);
}

static rdm__driver *make_table(const rdm__sim_state_block *state) {
  rdm__driver *table = calloc(1, sizeof *table);
  if (table == NULL) return NULL;
#define X(field, hip_name, parameters) table->field = rdm__sim_hip_##field;
  RDM__DRIVER_CALLS(X)
#undef X
  table->error_name = rdm__driver_error_name;
  table->error_string = rdm__driver_error_string;
  table->rtc_error_string = rdm__driver_rtc_error_string;
  table->call_name = rdm__sim_call_name;
  table->kernel_argument_count = kernel_argument_count;
  table->kernel_argument_size = kernel_argument_size;
  table->name = "sim";
  table->architecture_option = "--offload-arch=";
  table->compiles_one_at_a_time = state->one_compile_at_a_time;
  table->fault_is_process_wide = state->faults_are_process_wide;
  rdm__sim_compiler_find(table->compiler_path, sizeof table->compiler_path);
  identify_compiler(table->compiler_identity, sizeof table->compiler_identity);
  return table;
}

const rdm__driver *rdm__sim_prepare(int device_count) {
  if (device_count < 0 || device_count > RDM__SIM_MAX_DEVICES) {
    rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "the simulated driver has 0 to %d devices, not %d", RDM__SIM_MAX_DEVICES,
              device_count);
    return NULL;
  }
  /* Kept when opening failed later on, so that injections go on counting when it is tried again. */
  if (rdm__sim_state() == NULL) rdm__sim_state_set(make_state());
  rdm__sim_state_block *state = rdm__sim_state();
  if (state == NULL) return NULL;
  if (the_table == NULL) the_table = make_table(state);
  if (state->devices == NULL) state->devices = rdm__sim_devices_create(RDM__SIM_MAX_DEVICES);
  if (the_table == NULL || state->devices == NULL) {
    rdm__fail(RDM_ERROR_OUT_OF_MEMORY, "no memory for the simulated driver");
    return NULL;
  }
  state->compiler_path = the_table->compiler_path;
  state->device_count = device_count;
  return the_table;
}

rdm_status rdm__sim_open(int device_count, const rdm__driver **out_driver) {
  const rdm__driver *driver = rdm__sim_prepare(device_count);
  if (driver == NULL) return rdm__thread_error()->status;
  int error = driver->init(0);
  if (error != RDM_HIP_SUCCESS) {
    /* The failure is reported in full here, so nothing of it stays pending. */
    rdm__sim_this_thread()->last_error = RDM_HIP_SUCCESS;
    return rdm__fail_driver(RDM_ERROR_DRIVER, error, rdm__driver_error_name(error), "hipInit", -1,
                            "hipInit failed: %s (%d), %s", rdm__driver_error_name(error), error,
                            rdm__driver_error_string(error));
  }
  *out_driver = driver;
  return RDM_OK;
}
