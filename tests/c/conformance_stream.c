/* Streams, their order among each other, and host functions. */
#include "conformance.h"

#include <string.h>

static void create(void) {
  void *stream = NULL;
  check_error("stream.create", driver->stream_create(&stream, RDM_HIP_STREAM_NON_BLOCKING), 0);
  check("stream.handle", stream != NULL, "is null");
  check_error("stream.destroy", driver->stream_destroy(stream), 0);
  check_error("stream.unknown_flag", driver->stream_create(&stream, 0x40), RDM_HIP_INVALID_VALUE);
  check_error("stream.null_result", driver->stream_create(NULL, RDM_HIP_STREAM_NON_BLOCKING), RDM_HIP_INVALID_VALUE);
  check_error("stream.error_is_last", driver->get_last_error(), RDM_HIP_INVALID_VALUE);
  check_error("stream.destroy_null", driver->stream_destroy(NULL), RDM_HIP_INVALID_HANDLE);
}

static void query(void) {
  void *stream = make_stream();
  gate held;
  gate_make(&held);
  check_error("query.idle", driver->stream_query(stream), 0);
  check_error("synchronize.idle", driver->stream_synchronize(stream), 0);
  gate_hold(&held, stream);
  check_error("query.busy", driver->stream_query(stream), RDM_HIP_NOT_READY);
  check_error("query.not_ready_is_last_error", driver->get_last_error(), RDM_HIP_NOT_READY);
  gate_open(&held);
  check_error("query.becomes_ready", wait_stream(stream), 0);
  check_error("query.ready_leaves_no_error", driver->get_last_error(), 0);
}

static void *open_later(void *argument) {
  sleep_milliseconds(100);
  gate_open(argument);
  return NULL;
}

static void synchronize(void) {
  void *stream = make_stream();
  gate held;
  int calls = 0;
  pthread_t opener;
  gate_make(&held);
  gate_hold(&held, stream);
  need("launch_host_function", driver->launch_host_function(stream, count_call, &calls));
  if (pthread_create(&opener, NULL, open_later, &held) != 0) return;
  check_error("synchronize", driver->stream_synchronize(stream), 0);
  check("synchronize.waits", __atomic_load_n(&calls, __ATOMIC_SEQ_CST) == 1, "it returned before the work was done");
  pthread_join(opener, NULL);
}

/* A stream that is held does not hold another. */
static void independent(void) {
  void *first = make_stream();
  void *second = make_stream();
  unsigned char *memory = make_device_memory(4096);
  gate held;
  gate_make(&held);
  gate_hold(&held, first);
  gate_wait_entered(&held);
  need("memset", driver->memory_set_async(memory, 1, 4096, second));
  check_error("independent.second_goes_on", wait_stream(second), 0);
  check_error("independent.first_is_held", driver->stream_query(first), RDM_HIP_NOT_READY);
  gate_open(&held);
  check_error("independent.first_ends", driver->stream_synchronize(first), 0);
}

/* Every call that takes a stream takes the null stream. */
static void null_stream(void) {
  void *kernel = make_kernel(make_module(), "fill");
  void *event = make_event(RDM_HIP_EVENT_DISABLE_TIMING);
  float *memory = make_device_memory(sizeof(float) * 64);
  float *host = make_host_memory(sizeof(float) * 64);
  int calls = 0;
  check_error("null_stream.query", driver->stream_query(NULL), 0);
  check_error("null_stream.memset", driver->memory_set_async(memory, 0, sizeof(float) * 64, NULL), 0);
  check_error("null_stream.launch", launch_fill(kernel, NULL, memory, 1.5f, 63), 0);
  check_error("null_stream.copy", driver->memory_copy_async(host, memory, sizeof(float) * 64, 2, NULL), 0);
  check_error("null_stream.host_function", driver->launch_host_function(NULL, count_call, &calls), 0);
  check_error("null_stream.event_record", driver->event_record(event, NULL), 0);
  check_error("null_stream.event_synchronize", driver->event_synchronize(event), 0);
  check_error("null_stream.wait_event", driver->stream_wait_event(NULL, event, 0), 0);
  check_error("null_stream.synchronize", driver->stream_synchronize(NULL), 0);
  check("null_stream.data", host[0] == 1.5f && host[62] == 1.5f && host[63] == 0.0f, "it differs");
  check("null_stream.host_function_ran", calls == 1, "it did not");
}

/* The null stream waits for streams made without the non-blocking flag, and they for it. */
static void blocking_stream(void) {
  void *blocking = NULL;
  check_error("blocking_stream.create", driver->stream_create(&blocking, 0), 0);
  void *free_stream = make_stream();
  unsigned char *memory = make_device_memory(4096);
  gate held;
  gate_make(&held);
  gate_hold(&held, blocking);
  gate_wait_entered(&held);
  need("memset", driver->memory_set_async(memory, 1, 4096, NULL));
  sleep_milliseconds(50);
  check_error("blocking_stream.null_stream_waits_for_blocking", driver->stream_query(NULL), RDM_HIP_NOT_READY);
  need("memset", driver->memory_set_async(memory, 1, 4096, free_stream));
  check_error("blocking_stream.non_blocking_goes_on", wait_stream(free_stream), 0);
  gate_open(&held);
  check_error("blocking_stream.ends", driver->stream_synchronize(NULL), 0);

  gate second;
  gate_make(&second);
  gate_hold(&second, free_stream);
  gate_wait_entered(&second);
  need("memset", driver->memory_set_async(memory, 1, 4096, NULL));
  check_error("blocking_stream.no_wait_for_non_blocking", wait_stream(NULL), 0);
  gate_open(&second);
  need("stream_synchronize", driver->stream_synchronize(free_stream));
}

static void destroy_busy(void) {
  void *stream = make_stream();
  int calls = 0;
  gate held;
  gate_make(&held);
  unsigned char *memory = make_device_memory(4096);
  unsigned char *host = make_host_memory(4096);
  gate_hold(&held, stream);
  need("memset", driver->memory_set_async(memory, 0x77, 4096, stream));
  need("copy", driver->memory_copy_async(host, memory, 4096, 2, stream));
  need("launch_host_function", driver->launch_host_function(stream, count_call, &calls));
  gate_open(&held);
  check_error("destroy.busy", driver->stream_destroy(stream), 0);
  check_error("destroy.then_synchronize", driver->device_synchronize(), 0);
  check("destroy.work_is_done", host[0] == 0x77 && host[4095] == 0x77, "the copy did not run");
  check("destroy.host_function_ran", __atomic_load_n(&calls, __ATOMIC_SEQ_CST) == 1, "it did not");
}

/* ---- Host functions -------------------------------------------------------------------------------------------- */

typedef struct order_note {
  int number;
  int *next;
  bool in_order;
  pthread_t thread;
} order_note;

static void note_order(void *argument) {
  order_note *note = argument;
  note->in_order = *note->next == note->number;
  (*note->next)++;
  note->thread = pthread_self();
}

static void callback_order(void) {
  enum { COUNT = 200 };
  static order_note notes[COUNT];
  int next = 0;
  void *stream = make_stream();
  bool queued = true;
  for (int i = 0; i < COUNT; i++) {
    notes[i] = (order_note){.number = i, .next = &next};
    queued = queued && driver->launch_host_function(stream, note_order, &notes[i]) == 0;
  }
  check("callback.queued", queued, "one was refused");
  check_error("callback.synchronize", driver->stream_synchronize(stream), 0);
  bool in_order = next == COUNT;
  bool elsewhere = true;
  for (int i = 0; i < COUNT; i++) {
    in_order = in_order && notes[i].in_order;
    elsewhere = elsewhere && !pthread_equal(notes[i].thread, pthread_self());
  }
  check("callback.in_order", in_order, "%d ran, or not in order", next);
  check("callback.on_another_thread", elsewhere, "one ran on the caller's thread");
  check_error("callback.null", driver->launch_host_function(stream, NULL, NULL), RDM_HIP_INVALID_VALUE);
}

typedef struct memory_note {
  unsigned char *memory;
  unsigned char seen;
} memory_note;

static void note_memory(void *argument) {
  memory_note *note = argument;
  note->seen = *(volatile unsigned char *)note->memory;
  *note->memory = 0x22;
}

/* A host function sees the work before it, and the work after it sees what the function wrote. */
static void callback_data(void) {
  void *stream = make_stream();
  unsigned char *memory = make_device_memory(64);
  memory_note note = {.memory = make_host_memory(64)};
  unsigned char *after = make_host_memory(64);
  need("memset", driver->memory_set_async(memory, 0x11, 64, stream));
  need("copy", driver->memory_copy_async(note.memory, memory, 64, 2, stream));
  need("launch_host_function", driver->launch_host_function(stream, note_memory, &note));
  need("copy", driver->memory_copy_async(memory, note.memory, 64, 1, stream));
  need("copy", driver->memory_copy_async(after, memory, 64, 2, stream));
  need("stream_synchronize", driver->stream_synchronize(stream));
  check("callback.sees_before", note.seen == 0x11, "it saw %d", note.seen);
  check("callback.is_seen_after", after[0] == 0x22 && after[1] == 0x11, "it was not");
}

typedef struct driver_note {
  void *event;
  int create;
  int synchronize;
} driver_note;

static void call_driver(void *argument) {
  driver_note *note = argument;
  note->create = driver->event_create(&note->event, RDM_HIP_EVENT_DISABLE_TIMING);
  note->synchronize = driver->device_synchronize();
}

static void callback_calls_driver(void) {
  void *stream = make_stream();
  driver_note note = {.create = -1, .synchronize = -1};
  need("launch_host_function", driver->launch_host_function(stream, call_driver, &note));
  need("stream_synchronize", driver->stream_synchronize(stream));
  check_error("callback.create_is_refused", note.create, RDM_HIP_NOT_PERMITTED);
  check_error("callback.synchronize_is_refused", note.synchronize, RDM_HIP_NOT_PERMITTED);
  check_error("callback.stream_lives_on", driver->stream_synchronize(stream), 0);
  check_error("callback.refusal_is_not_the_submitters", driver->get_last_error(), 0);
}

static void across_devices(void) {
  need("set_device", driver->set_device(0));
  void *stream = make_stream();
  need("set_device", driver->set_device(1));
  check_error("across.query", driver->stream_query(stream), 0);
  check_error("across.synchronize", driver->stream_synchronize(stream), 0);
  int calls = 0;
  check_error("across.host_function", driver->launch_host_function(stream, count_call, &calls), 0);
  need("stream_synchronize", driver->stream_synchronize(stream));
  check("across.host_function_ran", calls == 1, "it did not");
  int device = -1;
  need("get_device", driver->get_device(&device));
  check("across.current_device_is_kept", device == 1, "is %d", device);
  check_error("across.destroy", driver->stream_destroy(stream), 0);
}

const conformance_test stream_tests[] = {
    {"stream_create", create, 1},
    {"stream_query", query, 1},
    {"stream_synchronize", synchronize, 1},
    {"streams_independent", independent, 1},
    {"null_stream", null_stream, 1},
    {"blocking_stream", blocking_stream, 1},
    {"stream_destroy_busy", destroy_busy, 1},
    {"callback_order", callback_order, 1},
    {"callback_data", callback_data, 1},
    {"callback_calls_driver", callback_calls_driver, 1},
    {"streams_across_devices", across_devices, 2},
    {NULL, NULL, 0},
};
