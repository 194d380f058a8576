#include "fuzz_calls.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

calls_world the_world;

static pthread_barrier_t start;

static void ignore_log(rdm_log_level level, const char *message, void *user_data) {
  (void)level, (void)message, (void)user_data;
}

#define MUST(call) FUZZ_CHECK((call) == RDM_OK, "%s: %s", #call, rdm_last_error_message())

static void take_device(calls_device *device, int32_t index) {
  static const rdm_module_source source = {
      .struct_size = sizeof source,
      .name = "fuzz",
      .source =
          "extern \"C\" __global__ void add_bytes(unsigned char *values, unsigned char by, unsigned count) {\n"
          "  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
          "  if (i < count) values[i] = (unsigned char)(values[i] + by);\n"
          "}\n"};
  void *cells = NULL;
  void *host = NULL;
  device->index = index;
  MUST(rdm_device_get(index, &device->handle));
  MUST(rdm_module_get(device->handle, &source, &device->module));
  MUST(rdm_module_get_kernel(device->module, "add_bytes", &device->add));
  MUST(rdm_memory_allocate(device->handle, CALLS_CELLS * CALLS_CELL_BYTES, &cells));
  MUST(rdm_host_memory_allocate(device->handle, CALLS_CELLS * CALLS_CELL_BYTES, &host));
  device->cells = cells;
  device->host = host;
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc, (void)argv;
  static const rdm_config config = {
      .struct_size = sizeof config, .driver = "sim", .sim_device_count = CALLS_SIM_DEVICES};
  setenv("RDM_CACHE_DIR", "", 1);
  /* The C compiler is the faster one to start. */
  setenv("RDM_SIM_COMPILER", "cc", 1);
  unsetenv("RDM_SIM_INJECT");
  unsetenv("RDM_WATCHDOG_SECS");
  MUST(rdm_set_log_handler(ignore_log, NULL, RDM_LOG_DEBUG));
  MUST(rdm_configure(&config));
  for (int32_t i = 0; i < CALLS_DEVICES; i++) take_device(&the_world.devices[i], i);
  the_world.next_fresh_device = CALLS_DEVICES;
  return 0;
}

static void *call(void *argument) {
  calls_thread *thread = argument;
  pthread_barrier_wait(&start);
  for (int i = 0; i < CALLS_MOST_OPERATIONS && !fuzz_is_empty(&thread->input); i++) {
    uint8_t operation = fuzz_byte(&thread->input);
    if (operation % 2 == 0) {
      calls_stream_operation(&thread->input, operation / 2);
    } else {
      calls_work_operation(&thread->input, operation / 2);
    }
  }
  return NULL;
}

static void begin_world(unsigned thread_count) {
  memset(the_world.graves, 0, sizeof the_world.graves);
  the_world.thread_count = thread_count;
  atomic_store(&the_world.next_cell, 0);
  atomic_store(&the_world.handlers_added, 0);
  atomic_store(&the_world.handlers_run, 0);
  atomic_store(&the_world.injected, false);
  atomic_store(&the_world.held, false);
  for (int kind = 0; kind < CALLS_KINDS; kind++) atomic_store(&the_world.next_grave[kind], 0);
  calls_note_objects();
}

static void replace_lost_devices(void) {
  for (int i = 0; i < CALLS_DEVICES; i++) {
    if (!atomic_exchange(&the_world.lost[i], false)) continue;
    FUZZ_CHECK(the_world.next_fresh_device < CALLS_SIM_DEVICES, "no device is left");
    take_device(&the_world.devices[i], the_world.next_fresh_device++);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_input input = {.at = data, .end = data + size};
  unsigned thread_count = 1U + fuzz_byte(&input) % CALLS_MOST_THREADS;
  size_t part = fuzz_left(&input) / thread_count;
  pthread_t threads[CALLS_MOST_THREADS];
  calls_thread parts[CALLS_MOST_THREADS];
  begin_world(thread_count);
  pthread_barrier_init(&start, NULL, thread_count);
  /* Threads of their own for each input, also for one: so that what a thread keeps goes back as it ends. */
  for (unsigned i = 0; i < thread_count; i++) {
    const uint8_t *end = i + 1 == thread_count ? input.end : input.at + part;
    parts[i] = (calls_thread){.input = {.at = input.at, .end = end}, .number = i};
    input.at = end;
    FUZZ_CHECK(pthread_create(&threads[i], NULL, call, &parts[i]) == 0, "no thread");
  }
  for (unsigned i = 0; i < thread_count; i++) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&start);
  calls_check_end();
  replace_lost_devices();
  return 0;
}
