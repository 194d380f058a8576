/* Operations that give devices work, on events, memory and modules, and on the simulated driver. */
#include "fuzz_calls.h"

#include <string.h>

enum { EVALUATION_WAITS = 500 };
static const uint64_t evaluation_wait_ns = UINT64_C(20000000);

/* ---- Events ---------------------------------------------------------------------------------------------------- */

static void create_event(fuzz_input *input) {
  calls_expectation expected;
  rdm_device device = {calls_choose(input, CALLS_DEVICE, &expected)};
  uint32_t flags = fuzz_byte(input);
  rdm_event made = {0};
  if (flags < 240) flags %= 2;
  if (flags > 1) expected = CALLS_ANY;
  rdm_status status = CALL(expected, rdm_event_create(device, flags, &made));
  FUZZ_CHECK(flags <= 1 || status == RDM_ERROR_INVALID_ARGUMENT, "the flags %u were taken", flags);
  if (status != RDM_OK) return;
  FUZZ_CHECK(CALL(CALLS_ANY, rdm_event_query(made)) == RDM_NOT_READY, "a new event is recorded");
  FUZZ_CHECK(CALL(CALLS_ANY, rdm_event_wait(made, 0)) == RDM_ERROR_NOT_RECORDED, "a new event can be waited for");
  calls_put(input, CALLS_EVENT, made.bits);
}

static void use_event(fuzz_input *input) {
  calls_expectation expected;
  calls_expectation end_expected;
  rdm_event event = {calls_choose(input, CALLS_EVENT, &expected)};
  uint8_t choice = fuzz_byte(input);
  float milliseconds = -1.0F;
  void *native = NULL;
  if (choice % 4 == 0) CALL(expected, rdm_event_query(event));
  if (choice % 4 == 1) CALL(expected, rdm_event_wait(event, choice * UINT64_C(1000)));
  if (choice % 4 == 2) CALL(expected, rdm_event_get_native(event, &native));
  if (choice % 4 != 3) return;
  rdm_event end = {calls_choose(input, CALLS_EVENT, &end_expected)};
  rdm_status status = CALL(expected, rdm_event_elapsed(event, end, &milliseconds));
  /* One event recorded after the other can be timed either way round. */
  FUZZ_CHECK(status == RDM_OK || milliseconds == -1.0F, "a time was written and the status is %s",
             rdm_status_name(status));
  FUZZ_CHECK(status != RDM_OK || end_expected <= CALLS_UNSURE, "an event that is none was timed");
}

static void use_event_in_stream(fuzz_input *input) {
  calls_expectation expected;
  calls_expectation event_expected;
  rdm_encoder encoder = {calls_choose(input, CALLS_ENCODER, &expected)};
  rdm_event event = {calls_choose(input, CALLS_EVENT, &event_expected)};
  /* The event is looked at first, and another thread may have ended it. */
  if (event_expected != CALLS_ANY || the_world.thread_count > 1) expected = CALLS_ANY;
  rdm_status status = fuzz_byte(input) % 2 == 0 ? CALL(expected, rdm_encoder_record_event(encoder, event))
                                                : CALL(expected, rdm_encoder_wait_event(encoder, event));
  FUZZ_CHECK(status != RDM_OK || event_expected <= CALLS_UNSURE, "an event that is none was taken");
}

/* ---- Batches and work ------------------------------------------------------------------------------------------ */

static void at_completion(rdm_status status, void *user_data) {
  FUZZ_CHECK(user_data == &the_world, "a handler got another's data");
  FUZZ_CHECK(status == RDM_OK || status == RDM_ERROR_DEVICE_FAULT, "a handler got %s", rdm_status_name(status));
  rdm_stream stream = {atomic_load(&the_world.slots[CALLS_STREAM][0])};
  FUZZ_CHECK(rdm_stream_synchronize(stream, 0) == RDM_ERROR_IN_CALLBACK, "a handler may wait");
  rdm_encoder_commit((rdm_encoder){atomic_load(&the_world.slots[CALLS_ENCODER][0])});
  atomic_fetch_add(&the_world.handlers_run, 1);
}

static void use_batch(fuzz_input *input) {
  calls_expectation expected;
  rdm_encoder encoder = {calls_choose(input, CALLS_ENCODER, &expected)};
  uint8_t choice = fuzz_byte(input);
  void *native = NULL;
  if (choice % 8 == 0) CALL(expected, rdm_encoder_commit(encoder));
  if (choice % 8 == 4) {
    rdm_status refused = CALL(CALLS_ANY, rdm_encoder_launch_graph(encoder, (rdm_graph){encoder.bits}));
    FUZZ_CHECK(refused != RDM_OK, "an encoder is launched as a graph");
  }
  if (choice % 4 == 1) CALL(expected, rdm_encoder_get_native_stream(encoder, &native));
  if (choice % 4 < 2) return;
  /* Counted before: it may run before the call returns. */
  atomic_fetch_add(&the_world.handlers_added, 1);
  rdm_status status = CALL(expected, rdm_encoder_add_completion_handler(encoder, at_completion, &the_world));
  if (status != RDM_OK) atomic_fetch_sub(&the_world.handlers_added, 1);
}

/* Cells that no other operation of this input uses. */
static unsigned take_cell(void) {
  return atomic_fetch_add(&the_world.next_cell, 1) % CALLS_CELLS;
}

static rdm_status launch_add(rdm_encoder encoder, rdm_kernel kernel, uint8_t *cell, uint8_t by, uint32_t count,
                             uint32_t argument_count, calls_expectation expected) {
  void *values = cell;
  void *arguments[] = {&values, &by, &count};
  const rdm_launch_config config = {.struct_size = sizeof config, .grid = {1, 1, 1}, .block = {count, 1, 1}};
  return CALL(expected, rdm_encoder_launch(encoder, kernel, &config, arguments, argument_count));
}

/* In short waits, as another thread may hold the device meanwhile. */
static rdm_status wait_for_evaluation(rdm_stream stream) {
  for (int i = 0; i < EVALUATION_WAITS; i++) {
    rdm_status status = CALL(CALLS_ANY, rdm_stream_synchronize(stream, evaluation_wait_ns));
    if (status != RDM_ERROR_TIMEOUT || atomic_load(&the_world.held)) return status;
  }
  FUZZ_CHECK(false, "an evaluation does not end");
  return RDM_ERROR_TIMEOUT;
}

/* Fill, launch and copy: given to a stream, or captured and launched twice, as the last of them does it all again. */
static rdm_status submit_evaluation(rdm_encoder encoder, const calls_device *device, size_t at, uint8_t value,
                                    uint8_t by) {
  bool by_graph = by % 2 == 1;
  rdm_graph graph = {0};
  uint8_t *cell = device->cells + at;
  rdm_status status = by_graph ? CALL(CALLS_ANY, rdm_encoder_begin_capture(encoder)) : RDM_OK;
  if (status == RDM_OK) status = CALL(CALLS_ANY, rdm_encoder_fill(encoder, cell, value, CALLS_CELL_BYTES));
  if (status == RDM_OK) status = launch_add(encoder, device->add, cell, by, CALLS_CELL_BYTES, 3, CALLS_ANY);
  if (status == RDM_OK) {
    status =
        CALL(CALLS_ANY, rdm_encoder_copy(encoder, device->host + at, cell, CALLS_CELL_BYTES, RDM_COPY_DEVICE_TO_HOST));
  }
  /* Where one of these failed the stream ends in its capture. */
  if (status != RDM_OK || !by_graph) return status;
  status = CALL(CALLS_ANY, rdm_encoder_end_capture(encoder, &graph));
  for (int i = 0; i < 2 && status == RDM_OK; i++) status = CALL(CALLS_ANY, rdm_encoder_launch_graph(encoder, graph));
  if (graph.bits == 0) return status;
  FUZZ_CHECK(CALL(CALLS_ANY, rdm_graph_release(graph)) == RDM_OK, "a graph is not released");
  CALL(CALLS_STALE, rdm_graph_release(graph));
  return status;
}

/* On a stream of its own: every byte has to be right. */
static void evaluate(fuzz_input *input) {
  calls_device *device = calls_choose_device(input);
  uint8_t value = fuzz_byte(input);
  uint8_t by = fuzz_byte(input);
  size_t at = (size_t)take_cell() * CALLS_CELL_BYTES;
  const uint8_t *host = device->host + at;
  rdm_stream stream = {0};
  rdm_encoder encoder = {0};
  if (CALL(CALLS_ANY, rdm_stream_create(device->index, &stream)) != RDM_OK) return;
  rdm_status status = CALL(CALLS_ANY, rdm_encoder_get(stream, &encoder));
  if (status == RDM_OK) status = submit_evaluation(encoder, device, at, value, by);
  if (status == RDM_OK && !atomic_load(&the_world.held)) {
    status = wait_for_evaluation(stream);
    for (int i = 0; status == RDM_OK && i < CALLS_CELL_BYTES; i++) {
      FUZZ_CHECK(host[i] == (uint8_t)(value + by), "byte %d is %u and not %u", i, host[i], (uint8_t)(value + by));
    }
  }
  FUZZ_CHECK(CALL(CALLS_ANY, rdm_stream_release(stream)) == RDM_OK, "a stream is not released");
  calls_bury(CALLS_STREAM, stream.bits);
  /* Another thread that waits for the whole device may still have the stream pinned, and with it the encoder open. */
  if (encoder.bits != 0 && the_world.thread_count == 1) calls_bury(CALLS_ENCODER, encoder.bits);
  if (status == RDM_OK || atomic_load(&the_world.injected)) return;
  bool is_expected =
      status == RDM_ERROR_STALE_HANDLE || status == RDM_ERROR_DEVICE_FAULT || status == RDM_ERROR_TIMEOUT;
  FUZZ_CHECK(is_expected, "an evaluation is %s: %s", rdm_status_name(status), rdm_last_error_message());
}

/* On whatever encoder, with arguments that may be wrong. */
static void submit(fuzz_input *input) {
  calls_expectation expected;
  calls_device *device = calls_choose_device(input);
  rdm_encoder encoder = {calls_choose(input, CALLS_ENCODER, &expected)};
  uint8_t choice = fuzz_byte(input);
  size_t at = (size_t)take_cell() * CALLS_CELL_BYTES;
  uint8_t *cell = device->cells + at;
  size_t size = choice < 250 ? CALLS_CELL_BYTES : SIZE_MAX;
  /* Of a bad handle and a bad argument either may be told. */
  if (choice >= 250 || choice % 5 == 0 || choice % 5 == 4) expected = CALLS_UNSURE;
  if (choice % 4 == 0) CALL(expected, rdm_encoder_fill(encoder, cell, choice, size));
  if (choice % 4 == 1) CALL(expected, rdm_encoder_copy(encoder, device->host + at, cell, size, choice % 5));
  if (choice % 4 == 2) launch_add(encoder, device->add, cell, 1, choice < 250 ? 32 : 2048, 3, expected);
  if (choice % 4 == 3) launch_add(encoder, device->add, cell, 1, 32, choice % 8, CALLS_ANY);
}

/* ---- Memory, modules, the simulated driver --------------------------------------------------------------------- */

static void allocate_and_free(fuzz_input *input) {
  /* To free memory may wait for the device, and that goes on only at the input's end. */
  if (atomic_load(&the_world.held)) return;
  calls_expectation expected;
  rdm_device device = {calls_choose(input, CALLS_DEVICE, &expected)};
  uint16_t size = (uint16_t)fuzz_number(input, 2);
  void *memory = NULL;
  if (size == 0) expected = CALLS_ANY;
  rdm_status status = size % 2 == 0 ? CALL(expected, rdm_memory_allocate(device, size, &memory))
                                    : CALL(expected, rdm_host_memory_allocate(device, size, &memory));
  FUZZ_CHECK((status == RDM_OK) == (memory != NULL), "memory is %p and the status %s", memory, rdm_status_name(status));
  if (memory == NULL) return;
  /* An injection may refuse it, each one at most four times. */
  for (int i = 0; i < 4 * CALLS_MOST_THREADS * CALLS_MOST_OPERATIONS; i++) {
    status = size % 2 == 0 ? CALL(CALLS_ANY, rdm_memory_free(device, memory))
                           : CALL(CALLS_ANY, rdm_host_memory_free(device, memory));
    if (status == RDM_OK) return;
    FUZZ_CHECK(atomic_load(&the_world.injected), "memory is not freed: %s", rdm_last_error_message());
  }
  FUZZ_CHECK(false, "memory can not be freed: %s", rdm_last_error_message());
}

static void use_module(fuzz_input *input) {
  calls_device *device = calls_choose_device(input);
  uint8_t choice = fuzz_byte(input);
  rdm_kernel kernel = {0};
  const char *name = choice % 4 == 0 ? "nothing" : choice % 4 == 1 ? "" : "add_bytes";
  rdm_module module = choice < 240 ? device->module : (rdm_module){device->handle.bits};
  rdm_status status = CALL(choice < 240 ? CALLS_ANY : CALLS_FOREIGN, rdm_module_get_kernel(module, name, &kernel));
  FUZZ_CHECK(status != RDM_OK || kernel.bits == device->add.bits, "the kernel \"%s\" is another one now", name);
}

static void inject(fuzz_input *input) {
  static const char *const names[] = {
      "hipEventRecord",    "hipEventQuery",         "hipEventCreateWithFlags", "hipStreamCreateWithFlags",
      "hipSetDevice",      "hipModuleLaunchKernel", "hipMemsetAsync",          "hipMemcpyAsync",
      "hipLaunchHostFunc", "hipGetDevice",          "hipStreamWaitEvent",      "hipStreamQuery",
      "hipMalloc",         "hipHostMalloc",         "hipEventElapsedTime"};
  static const int32_t errors[] = {0, 1, 2, 101, 400, 600, 801, 999};
  const char *name = names[fuzz_byte(input) % (sizeof names / sizeof names[0])];
  uint8_t choice = fuzz_byte(input);
  atomic_store(&the_world.injected, true);
  CALL(CALLS_ANY, rdm_sim_inject(name, 1U + (choice >> 5), 1U + (choice >> 3) % 4, errors[choice % 8],
                                 fuzz_byte(input) * UINT64_C(500)));
}

/* Rare, as each one costs the process a device. */
static void fault(fuzz_input *input) {
  if (fuzz_number(input, 2) != 0xfa17 || the_world.next_fresh_device + CALLS_DEVICES > CALLS_SIM_DEVICES) return;
  unsigned device = fuzz_byte(input) % CALLS_DEVICES;
  the_world.lost[device] = true;
  CALL(CALLS_ANY, rdm_sim_fault(the_world.devices[device].index, 700));
}

static void hold(fuzz_input *input) {
  calls_device *device = calls_choose_device(input);
  int32_t on = fuzz_byte(input) % 2;
  /* Other threads may be inside a call that waits for the device. */
  if (the_world.thread_count > 1) on = 0;
  if (on == 1) atomic_store(&the_world.held, true);
  CALL(CALLS_ANY, rdm_sim_hold(device->index, on));
}

void calls_work_operation(fuzz_input *input, uint8_t which) {
  static void (*const operations[])(fuzz_input *) = {
      create_event, create_event, use_event, use_event, use_event_in_stream, use_event_in_stream, use_batch,
      use_batch,    submit,       evaluate,  evaluate,  allocate_and_free,   use_module,          inject,
      hold,         fault,
  };
  operations[which % (sizeof operations / sizeof operations[0])](input);
}
