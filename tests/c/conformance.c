#include "conformance.h"

#include "status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* clang-format off */
const char kernel_source[] =
    "extern \"C\" __global__ void fill(float *out, float value, unsigned count) {\n"
    "  unsigned index = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (index < count) out[index] = value;\n"
    "}\n"
    "extern \"C\" __global__ void step(unsigned *out, unsigned count) {\n"
    "  unsigned index = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (index < count) out[index] = out[index] * 2u + 1u;\n"
    "}\n"
    "extern \"C\" __global__ void shape(unsigned *out) {\n"
    "  if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) {\n"
    "    unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);\n"
    "    out[block] = blockDim.x * 10000u + blockDim.y * 100u + blockDim.z;\n"
    "  }\n"
    "}\n"
    "extern \"C\" __global__ void poke(unsigned long long address) {\n"
    "  if (blockIdx.x == 0 && threadIdx.x == 0) *(volatile unsigned *)address = 1u;\n"
    "}\n";
/* clang-format on */

void need(const char *what, int error) {
  if (error == 0) return;
  check(what, false, "a call that the test builds on returned %d (%s)", error, driver->error_name(error));
  exit(0);
}

/* The compiler has numbers and names of its own. */
static const char *name_of(const char *id, int error) {
  return strncmp(id, "rtc.", 4) == 0 ? driver->rtc_error_string(error) : driver->error_name(error);
}

void check_error(const char *id, int error, int expected) {
  check(id, error == expected, "returned %d (%s), not %d", error, name_of(id, error), expected);
}

void check_either(const char *id, int error, int expected, int other) {
  check(id, error == expected || error == other, "returned %d (%s), not %d or %d", error, name_of(id, error), expected,
        other);
}

/* ---- Gates and waits ------------------------------------------------------------------------------------------- */

void gate_make(gate *made) {
  pthread_mutex_init(&made->lock, NULL);
  pthread_cond_init(&made->changed, NULL);
  made->entered = false;
  made->open = false;
}

static void gate_function(void *argument) {
  gate *held = argument;
  pthread_mutex_lock(&held->lock);
  held->entered = true;
  pthread_cond_broadcast(&held->changed);
  while (!held->open) pthread_cond_wait(&held->changed, &held->lock);
  pthread_mutex_unlock(&held->lock);
}

void gate_hold(gate *held, void *stream) {
  need("gate", driver->launch_host_function(stream, gate_function, held));
}

void gate_wait_entered(gate *held) {
  pthread_mutex_lock(&held->lock);
  while (!held->entered) pthread_cond_wait(&held->changed, &held->lock);
  pthread_mutex_unlock(&held->lock);
}

void gate_open(gate *held) {
  pthread_mutex_lock(&held->lock);
  held->open = true;
  pthread_cond_broadcast(&held->changed);
  pthread_mutex_unlock(&held->lock);
}

void count_call(void *counter) {
  __atomic_fetch_add((int *)counter, 1, __ATOMIC_SEQ_CST);
}

void sleep_milliseconds(int milliseconds) {
  struct timespec time = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000L};
  nanosleep(&time, NULL);
}

int wait_stream(void *stream) {
  int error = RDM_HIP_NOT_READY;
  for (int i = 0; i < 20000 && error == RDM_HIP_NOT_READY; i++) {
    error = driver->stream_query(stream);
    if (error == RDM_HIP_NOT_READY) {
      (void)driver->get_last_error();
      sleep_milliseconds(1);
    }
  }
  return error;
}

void on_thread(void *(*function)(void *), void *argument) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, function, argument) != 0) abort();
  pthread_join(thread, NULL);
}

/* ---- Objects --------------------------------------------------------------------------------------------------- */

void *make_stream(void) {
  void *stream = NULL;
  need("stream", driver->stream_create(&stream, RDM_HIP_STREAM_NON_BLOCKING));
  return stream;
}

void *make_event(unsigned flags) {
  void *event = NULL;
  need("event", driver->event_create(&event, flags));
  return event;
}

void *make_device_memory(size_t size) {
  void *pointer = NULL;
  need("device memory", driver->memory_allocate(&pointer, size));
  return pointer;
}

void *make_host_memory(size_t size) {
  void *pointer = NULL;
  need("host memory", driver->host_memory_allocate(&pointer, size, 0));
  memset(pointer, 0, size);
  return pointer;
}

int compile_text(const char *source, const char *extra_option, char **code, size_t *code_size, char *log,
                 size_t log_capacity) {
  rdm__device_properties properties;
  char architecture[320];
  const char *options[2];
  int option_count = 0;
  *code = NULL;
  *code_size = 0;
  if (log != NULL) log[0] = '\0';
  /* Without a device any architecture does that the compiler knows. */
  const char *name = strcmp(driver->name, "cuda") == 0 ? "sm_80" : "gfx1030";
  if (device_count > 0 && driver->get_device_properties(&properties, 0) == 0) name = properties.architecture;
  snprintf(architecture, sizeof architecture, "%s%s", driver->architecture_option, name);
  options[option_count++] = architecture;
  if (extra_option != NULL) options[option_count++] = extra_option;
  void *program = NULL;
  int error = driver->rtc_create_program(&program, source, "conformance.hip");
  if (error != 0) return error;
  error = driver->rtc_compile_program(program, option_count, options);
  size_t log_size = 0;
  if (log != NULL && driver->rtc_get_log_size(program, &log_size) == 0 && log_size > 0) {
    char *text = calloc(1, log_size + 1);
    if (text != NULL && driver->rtc_get_log(program, text) == 0) snprintf(log, log_capacity, "%s", text);
    free(text);
  }
  if (error == 0) error = driver->rtc_get_code_size(program, code_size);
  if (error == 0) {
    *code = calloc(1, *code_size + 1);
    error = *code == NULL ? RDM_RTC_OUT_OF_MEMORY : driver->rtc_get_code(program, *code);
  }
  int destroyed = driver->rtc_destroy_program(&program);
  return error != 0 ? error : destroyed;
}

void *make_module(void) {
  static char *code;
  static size_t code_size;
  if (code == NULL) {
    char log[2048];
    int error = compile_text(kernel_source, NULL, &code, &code_size, log, sizeof log);
    if (error != 0) {
      check("kernel source", false, "did not compile: %d (%s): %s", error, driver->rtc_error_string(error), log);
      exit(0);
    }
  }
  void *module = NULL;
  need("module", driver->module_load_data(&module, code, code_size));
  return module;
}

void *make_kernel(void *module, const char *name) {
  void *kernel = NULL;
  need("kernel", driver->module_get_function(&kernel, module, name));
  return kernel;
}

int launch_fill(void *kernel, void *stream, void *out, float value, unsigned count) {
  void *arguments[] = {&out, &value, &count};
  const unsigned grid[3] = {(count + 127) / 128, 1, 1};
  const unsigned block[3] = {128, 1, 1};
  return driver->launch_kernel(kernel, grid, block, 0, stream, arguments);
}

int launch_step(void *kernel, void *stream, void *out, unsigned count) {
  void *arguments[] = {&out, &count};
  const unsigned grid[3] = {(count + 127) / 128, 1, 1};
  const unsigned block[3] = {128, 1, 1};
  return driver->launch_kernel(kernel, grid, block, 0, stream, arguments);
}

int launch_poke(void *kernel, void *stream, unsigned long long address) {
  void *arguments[] = {&address};
  const unsigned one[3] = {1, 1, 1};
  return driver->launch_kernel(kernel, one, one, 0, stream, arguments);
}
