/*
 * The simulated driver's model of stream capture: who may call what meanwhile, and what becomes of the capture. The
 * numbers are those of CUDA 13.0 on a real GPU, but for module loads, which are refused here, too.
 */
#include "sim_driver_test.h"

enum { GLOBAL = RDM_HIP_CAPTURE_MODE_GLOBAL, LOCAL = RDM_HIP_CAPTURE_MODE_THREAD_LOCAL };
enum { RELAXED = RDM_HIP_CAPTURE_MODE_RELAXED };
enum { ACTIVE = RDM_HIP_CAPTURE_ACTIVE, INVALID = RDM_HIP_CAPTURE_IS_INVALID };

static void *captured;
static void *other;
static void *event;
static void *memory;

static void set_up(void) {
  open_driver(1);
  captured = create_stream();
  other = create_stream();
  event = create_event(0);
  memory = allocate(64);
  RETURNS(0, driver->event_record(event, other));
  RETURNS(0, driver->stream_synchronize(other));
}

static int status_of(void *stream) {
  int status = -1;
  RETURNS(0, driver->stream_is_capturing(stream, &status));
  return status;
}

static int end(void) {
  void *graph = NULL;
  int result = driver->stream_end_capture(captured, &graph);
  CHECK((graph != NULL) == (result == 0));
  if (graph != NULL) RETURNS(0, driver->graph_destroy(graph));
  return result;
}

static void exchange(int mode, int before) {
  RETURNS(0, driver->thread_exchange_capture_mode(&mode));
  CHECK(mode == before);
}

/* ---- What may be called ------------------------------------------------------------------------------------------ */

static int call_malloc(void) {
  void *made = NULL;
  return driver->memory_allocate(&made, 16);
}
static int call_free(void) {
  return driver->memory_free(NULL);
}
static int call_host_malloc(void) {
  void *made = NULL;
  return driver->host_memory_allocate(&made, 16, 0);
}
static int call_event_query(void) {
  return driver->event_query(event);
}
static int call_event_synchronize(void) {
  return driver->event_synchronize(event);
}
static int call_stream_query(void) {
  return driver->stream_query(other);
}
static int call_stream_synchronize(void) {
  return driver->stream_synchronize(other);
}
static int call_event_create(void) {
  void *made = NULL;
  return driver->event_create(&made, 0);
}
static int call_event_record(void) {
  return driver->event_record(event, other);
}
static int call_stream_create(void) {
  void *made = NULL;
  return driver->stream_create(&made, RDM_HIP_STREAM_NON_BLOCKING);
}
static int call_memset(void) {
  return driver->memory_set_async(memory, 0, 16, other);
}

static int (*const unsafe[])(void) = {call_malloc,
                                      call_free,
                                      call_host_malloc,
                                      call_event_query,
                                      call_event_synchronize,
                                      call_stream_query,
                                      call_stream_synchronize};
static int (*const safe[])(void) = {call_event_create, call_event_record, call_stream_create, call_memset};
enum { UNSAFE = sizeof unsafe / sizeof unsafe[0], SAFE = sizeof safe / sizeof safe[0] };

typedef struct caller {
  int (*call)(void);
  int mode;
  int result;
} caller;

static void *call_with_mode(void *argument) {
  caller *this_caller = argument;
  int mode = this_caller->mode;
  RETURNS(0, driver->thread_exchange_capture_mode(&mode));
  this_caller->result = this_caller->call();
  RETURNS(0, driver->thread_exchange_capture_mode(&mode));
  CHECK(mode == this_caller->mode);
  return NULL;
}

static int call_on_another_thread(int (*call)(void), int mode) {
  caller one = {.call = call, .mode = mode, .result = -1};
  pthread_t thread;
  pthread_create(&thread, NULL, call_with_mode, &one);
  pthread_join(thread, NULL);
  return one.result;
}

/* A capture of a mode, and a call by a thread of a mode, the capturing one or another. */
static void check_call(int (*call)(void), int capture_mode, int thread_mode, bool is_own, bool refused) {
  RETURNS(0, driver->stream_begin_capture(captured, capture_mode));
  int result;
  if (is_own) {
    caller one = {.call = call, .mode = thread_mode};
    call_with_mode(&one);
    result = one.result;
  } else {
    result = call_on_another_thread(call, thread_mode);
  }
  RETURNS(refused ? RDM_HIP_CAPTURE_UNSUPPORTED : 0, result);
  CHECK(status_of(captured) == (refused ? INVALID : ACTIVE));
  RETURNS(refused ? RDM_HIP_CAPTURE_INVALIDATED : 0, end());
  CHECK(status_of(captured) == RDM_HIP_CAPTURE_NONE);
  RETURNS(0, driver->stream_synchronize(other));
}

static void field_log_16_capture_modes(void) {
  set_up();
  for (int capture_mode = GLOBAL; capture_mode <= RELAXED; capture_mode++) {
    for (int mode = GLOBAL; mode <= RELAXED; mode++) {
      for (int i = 0; i < UNSAFE; i++) {
        check_call(unsafe[i], capture_mode, mode, true, capture_mode != RELAXED && mode != RELAXED);
        check_call(unsafe[i], capture_mode, mode, false, capture_mode == GLOBAL && mode == GLOBAL);
      }
      for (int i = 0; i < SAFE; i++) {
        check_call(safe[i], capture_mode, mode, true, false);
        check_call(safe[i], capture_mode, mode, false, false);
      }
    }
  }
}

static int call_load(void) {
  void *made = NULL;
  return driver->module_load_data(&made, "x", 1);
}

static int call_device_synchronize(void) {
  return driver->device_synchronize();
}

static void field_log_16_whatever_the_mode(void) {
  set_up();
  /* A module is loaded from what is none, so the thread that may do it is told so. */
  RETURNS(0, driver->stream_begin_capture(captured, GLOBAL));
  RETURNS(RDM_HIP_INVALID_IMAGE, call_on_another_thread(call_load, RELAXED));
  CHECK(status_of(captured) == ACTIVE);
  RETURNS(RDM_HIP_CAPTURE_UNSUPPORTED, call_on_another_thread(call_load, GLOBAL));
  RETURNS(RDM_HIP_CAPTURE_INVALIDATED, end());
  /* To wait for the whole device is to wait for the captured stream. */
  RETURNS(0, driver->stream_begin_capture(captured, RELAXED));
  RETURNS(RDM_HIP_CAPTURE_UNSUPPORTED, call_on_another_thread(call_device_synchronize, RELAXED));
  RETURNS(RDM_HIP_CAPTURE_INVALIDATED, end());
  /* What is asked of the captured stream, or of an event in it, conflicts with it. */
  exchange(RELAXED, GLOBAL);
  RETURNS(0, driver->stream_begin_capture(captured, RELAXED));
  RETURNS(RDM_HIP_CAPTURE_UNSUPPORTED, driver->stream_query(captured));
  RETURNS(RDM_HIP_CAPTURE_INVALIDATED, driver->memory_set_async(memory, 1, 16, captured));
  RETURNS(RDM_HIP_CAPTURE_INVALIDATED, end());
  RETURNS(0, driver->stream_begin_capture(captured, RELAXED));
  RETURNS(0, driver->event_record(event, captured));
  RETURNS(RDM_HIP_CAPTURED_EVENT, driver->event_query(event));
  RETURNS(RDM_HIP_CAPTURE_INVALIDATED, end());
  RETURNS(RDM_HIP_CAPTURED_EVENT, driver->event_query(event));
  RETURNS(0, driver->event_record(event, other));
  RETURNS(0, driver->event_synchronize(event));
  exchange(GLOBAL, RELAXED);
}

/* ---- What a capture does to its streams -------------------------------------------------------------------------- */

static void *end_elsewhere(void *argument) {
  (void)argument;
  RETURNS(RDM_HIP_CAPTURE_WRONG_THREAD, end());
  return NULL;
}

static void field_log_16_captured_streams(void) {
  set_up();
  char back[16] = {0};
  void *graph = NULL;
  int status = 0;
  int mode = 3;
  RETURNS(RDM_HIP_INVALID_VALUE, driver->thread_exchange_capture_mode(&mode));
  RETURNS(RDM_HIP_INVALID_VALUE, driver->thread_exchange_capture_mode(NULL));
  RETURNS(RDM_HIP_INVALID_VALUE, driver->stream_begin_capture(captured, 3));
  RETURNS(RDM_HIP_INVALID_HANDLE, driver->stream_begin_capture(event, GLOBAL));
  RETURNS(RDM_HIP_INVALID_VALUE, driver->stream_is_capturing(captured, NULL));
  RETURNS(RDM_HIP_INVALID_HANDLE, driver->stream_is_capturing(event, &status));
  RETURNS(401, driver->stream_end_capture(captured, &graph));
  RETURNS(RDM_HIP_INVALID_VALUE, driver->graph_destroy(event));

  RETURNS(0, driver->memory_set_async(memory, 1, 16, captured));
  RETURNS(0, driver->stream_synchronize(captured));
  RETURNS(0, driver->stream_begin_capture(captured, GLOBAL));
  RETURNS(401, driver->stream_begin_capture(captured, GLOBAL));
  RETURNS(0, driver->memory_set_async(memory, 2, 16, captured));
  /* Another stream joins by waiting for an event of the capture, and leaves with its end. */
  RETURNS(0, driver->event_record(event, captured));
  RETURNS(0, driver->stream_wait_event(other, event, 0));
  CHECK(status_of(other) == ACTIVE);
  RETURNS(0, driver->memory_set_async(memory, 3, 16, other));
  RETURNS(RDM_HIP_CAPTURE_UNMATCHED, driver->stream_end_capture(other, &graph));
  pthread_t thread;
  pthread_create(&thread, NULL, end_elsewhere, NULL);
  pthread_join(thread, NULL);
  RETURNS(0, end());
  CHECK(status_of(other) == RDM_HIP_CAPTURE_NONE);
  RETURNS(RDM_HIP_CAPTURED_EVENT, driver->stream_wait_event(other, event, 0));

  /* What was captured did not run. */
  RETURNS(0, driver->memory_copy_async(back, memory, 16, RDM_COPY_DEVICE_TO_HOST, other));
  RETURNS(0, driver->stream_synchronize(other));
  CHECK(back[0] == 1 && back[15] == 1);
  RETURNS(0, driver->memory_free(memory));
}

const sim_test capture_tests[] = {
    {.name = "field_log_16_capture_modes", .run = field_log_16_capture_modes},
    {.name = "field_log_16_whatever_the_mode", .run = field_log_16_whatever_the_mode},
    {.name = "field_log_16_captured_streams", .run = field_log_16_captured_streams},
    {0},
};
