/* Events: recorded, queried, waited for on the host and by streams, and the device that each belongs to. */
#include "conformance.h"

static void create(void) {
  void *event = NULL;
  bool made = true;
  for (unsigned flags = 0; flags < 4; flags++) {
    made = made && driver->event_create(&event, flags) == 0 && event != NULL && driver->event_destroy(event) == 0;
  }
  check("event.create", made, "an event with known flags was refused");
  check_error("event.unknown_flag", driver->event_create(&event, 0x100), RDM_HIP_INVALID_VALUE);
  check_error("event.null_result", driver->event_create(NULL, 0), RDM_HIP_INVALID_VALUE);
  check_error("event.error_is_last", driver->get_last_error(), RDM_HIP_INVALID_VALUE);
  check_error("event.destroy_null", driver->event_destroy(NULL), RDM_HIP_INVALID_HANDLE);
  check_error("event.record_null", driver->event_record(NULL, make_stream()), RDM_HIP_INVALID_HANDLE);
  check_error("event.query_null", driver->event_query(NULL), RDM_HIP_INVALID_HANDLE);
  check_error("event.synchronize_null", driver->event_synchronize(NULL), RDM_HIP_INVALID_HANDLE);
}

static void never_recorded(void) {
  void *event = make_event(RDM_HIP_EVENT_DISABLE_TIMING);
  void *stream = make_stream();
  check_error("event.query_never_recorded", driver->event_query(event), 0);
  check_error("event.synchronize_never_recorded", driver->event_synchronize(event), 0);
  check_error("event.wait_never_recorded", driver->stream_wait_event(stream, event, 0), 0);
  check_error("event.stream_goes_on", driver->stream_synchronize(stream), 0);
}

static void record(void) {
  void *event = make_event(RDM_HIP_EVENT_DISABLE_TIMING);
  void *stream = make_stream();
  gate held;
  gate_make(&held);
  gate_hold(&held, stream);
  check_error("event.record", driver->event_record(event, stream), 0);
  check_error("event.query_pending", driver->event_query(event), RDM_HIP_NOT_READY);
  check_error("event.not_ready_is_last_error", driver->get_last_error(), RDM_HIP_NOT_READY);
  for (int i = 0; i < 1000; i++) (void)driver->event_query(event);
  check_error("event.not_ready_is_left_once", driver->get_last_error(), RDM_HIP_NOT_READY);
  check_error("event.nothing_is_left", driver->get_last_error(), 0);
  gate_open(&held);
  check_error("event.synchronize", driver->event_synchronize(event), 0);
  check_error("event.query_done", driver->event_query(event), 0);
  check_error("event.done_leaves_no_error", driver->get_last_error(), 0);
  check_error("event.record_again", driver->event_record(event, stream), 0);
  check_error("event.synchronize_again", driver->event_synchronize(event), 0);
  check_error("event.destroy", driver->event_destroy(event), 0);
}

static void *open_later(void *argument) {
  sleep_milliseconds(100);
  gate_open(argument);
  return NULL;
}

static void blocking(void) {
  void *event = make_event(RDM_HIP_EVENT_BLOCKING_SYNC | RDM_HIP_EVENT_DISABLE_TIMING);
  void *stream = make_stream();
  gate held;
  pthread_t opener;
  int calls = 0;
  gate_make(&held);
  gate_hold(&held, stream);
  need("launch_host_function", driver->launch_host_function(stream, count_call, &calls));
  need("event_record", driver->event_record(event, stream));
  if (pthread_create(&opener, NULL, open_later, &held) != 0) return;
  check_error("event.blocking_synchronize", driver->event_synchronize(event), 0);
  check("event.blocking_synchronize_waits", __atomic_load_n(&calls, __ATOMIC_SEQ_CST) == 1, "it returned too soon");
  pthread_join(opener, NULL);
}

static void elapsed(void) {
  void *start = make_event(0);
  void *end = make_event(0);
  void *untimed = make_event(RDM_HIP_EVENT_DISABLE_TIMING);
  void *stream = make_stream();
  gate held;
  float milliseconds = -1;
  gate_make(&held);
  check_error("elapsed.never_recorded", driver->event_elapsed_time(&milliseconds, start, end), RDM_HIP_INVALID_HANDLE);
  need("event_record", driver->event_record(start, stream));
  gate_hold(&held, stream);
  need("event_record", driver->event_record(end, stream));
  need("event_record", driver->event_record(untimed, stream));
  gate_wait_entered(&held);
  check_error("elapsed.pending", driver->event_elapsed_time(&milliseconds, start, end), RDM_HIP_NOT_READY);
  sleep_milliseconds(50);
  gate_open(&held);
  need("stream_synchronize", driver->stream_synchronize(stream));
  check_error("elapsed", driver->event_elapsed_time(&milliseconds, start, end), 0);
  check("elapsed.value", milliseconds >= 45 && milliseconds < 10000, "is %f", (double)milliseconds);
  check_error("elapsed.untimed", driver->event_elapsed_time(&milliseconds, start, untimed), RDM_HIP_INVALID_HANDLE);
  check_error("elapsed.null_result", driver->event_elapsed_time(NULL, start, end), RDM_HIP_INVALID_VALUE);
  check_error("elapsed.null_event", driver->event_elapsed_time(&milliseconds, NULL, end), RDM_HIP_INVALID_HANDLE);
}

static void wait_errors(void) {
  void *event = make_event(RDM_HIP_EVENT_DISABLE_TIMING);
  void *stream = make_stream();
  check_error("wait.null_event", driver->stream_wait_event(stream, NULL, 0), RDM_HIP_INVALID_HANDLE);
  check_error("wait.unknown_flag", driver->stream_wait_event(stream, event, 0x40), RDM_HIP_INVALID_VALUE);
  check_error("wait.error_is_last", driver->get_last_error(), RDM_HIP_INVALID_VALUE);
  check_error("wait.stream_is_usable", driver->stream_synchronize(stream), 0);
}

/* The second stream's copy sees what the first one wrote, and nothing before. */
static void ordering(void) {
  enum { ROUNDS = 50 };
  void *first = make_stream();
  void *second = make_stream();
  void *event = make_event(RDM_HIP_EVENT_DISABLE_TIMING);
  unsigned char *memory = make_device_memory(1 << 20);
  unsigned char *host = make_host_memory(1 << 20);
  gate held;
  gate_make(&held);
  need("memset", driver->memory_set_async(memory, 0, 1 << 20, first));
  gate_hold(&held, first);
  need("memset", driver->memory_set_async(memory, 0xff, 1 << 20, first));
  need("event_record", driver->event_record(event, first));
  check_error("ordering.wait", driver->stream_wait_event(second, event, 0), 0);
  need("copy", driver->memory_copy_async(host, memory, 1 << 20, 2, second));
  gate_wait_entered(&held);
  sleep_milliseconds(20);
  check_error("ordering.second_waits", driver->stream_query(second), RDM_HIP_NOT_READY);
  gate_open(&held);
  need("stream_synchronize", driver->stream_synchronize(second));
  check("ordering.sees_the_write", host[0] == 0xff && host[(1 << 20) - 1] == 0xff, "it saw %d", host[0]);

  void *back = make_event(RDM_HIP_EVENT_DISABLE_TIMING);
  bool right = true;
  for (int round = 0; round < ROUNDS; round++) {
    need("memset", driver->memory_set_async(memory, round, 1 << 20, first));
    need("event_record", driver->event_record(event, first));
    need("stream_wait_event", driver->stream_wait_event(second, event, 0));
    need("copy", driver->memory_copy_async(host, memory, 1 << 20, 2, second));
    need("event_record", driver->event_record(back, second));
    need("stream_wait_event", driver->stream_wait_event(first, back, 0));
    if (round % 7 == 0) {
      need("stream_synchronize", driver->stream_synchronize(second));
      right = right && host[0] == round && host[(1 << 20) - 1] == round;
    }
  }
  check("ordering.back_and_forth", right, "a round saw another's data");
}

/* A wait is for the record that was the latest when the wait was queued. */
static void wait_is_for_earlier_record(void) {
  void *ready = make_stream();
  void *held_stream = make_stream();
  void *waiting = make_stream();
  void *event = make_event(RDM_HIP_EVENT_DISABLE_TIMING);
  gate held;
  gate_make(&held);
  need("event_record", driver->event_record(event, ready));
  need("stream_wait_event", driver->stream_wait_event(waiting, event, 0));
  gate_hold(&held, held_stream);
  gate_wait_entered(&held);
  need("event_record", driver->event_record(event, held_stream));
  check_error("wait.is_for_the_earlier_record", wait_stream(waiting), 0);
  check_error("wait.event_is_of_the_later_record", driver->event_query(event), RDM_HIP_NOT_READY);
  gate_open(&held);
  check_error("wait.event_ends", driver->event_synchronize(event), 0);
}

static void destroy_pending(void) {
  void *first = make_stream();
  void *second = make_stream();
  void *event = make_event(RDM_HIP_EVENT_DISABLE_TIMING);
  gate held;
  gate_make(&held);
  gate_hold(&held, first);
  need("event_record", driver->event_record(event, first));
  need("stream_wait_event", driver->stream_wait_event(second, event, 0));
  check_error("event.destroy_pending", driver->event_destroy(event), 0);
  sleep_milliseconds(20);
  check_error("event.wait_outlives_it", driver->stream_query(second), RDM_HIP_NOT_READY);
  gate_open(&held);
  check_error("event.work_goes_on", driver->stream_synchronize(second), 0);
}

static void *record_here(void *argument) {
  void **both = argument;
  static int error;
  error = driver->event_record(both[0], both[1]);
  both[2] = &error;
  return NULL;
}

static void from_threads(void) {
  void *event = make_event(RDM_HIP_EVENT_DISABLE_TIMING);
  void *stream = make_stream();
  void *both[3] = {event, stream, NULL};
  on_thread(record_here, both);
  check_error("event.record_from_another_thread", *(int *)both[2], 0);
  check_error("event.synchronize_from_this", driver->event_synchronize(event), 0);
  void *destroyed_stream = make_stream();
  need("event_record", driver->event_record(event, destroyed_stream));
  need("stream_destroy", driver->stream_destroy(destroyed_stream));
  check_error("event.outlives_its_stream", driver->event_synchronize(event), 0);
}

static void across_devices(void) {
  need("set_device", driver->set_device(0));
  void *event = make_event(RDM_HIP_EVENT_DISABLE_TIMING);
  void *stream = make_stream();
  need("set_device", driver->set_device(1));
  void *other_stream = make_stream();
  void *other_event = make_event(RDM_HIP_EVENT_DISABLE_TIMING);
  check_error("event.record_on_other_device", driver->event_record(event, other_stream), RDM_HIP_INVALID_HANDLE);
  check_error("event.record_error_is_last", driver->get_last_error(), RDM_HIP_INVALID_HANDLE);
  check_error("event.record_by_its_device", driver->event_record(event, stream), 0);
  check_error("event.wait_on_other_device", driver->stream_wait_event(other_stream, event, 0), 0);
  check_error("event.query_from_other_device", driver->event_synchronize(event), 0);
  check_error("event.other_record", driver->event_record(other_event, other_stream), 0);
  check_error("event.other_synchronize", driver->event_synchronize(other_event), 0);
  need("set_device", driver->set_device(0));
  check_error("event.destroy_from_other_device", driver->event_destroy(other_event), 0);
}

const conformance_test event_tests[] = {
    {"event_create", create, 1},
    {"event_never_recorded", never_recorded, 1},
    {"event_record", record, 1},
    {"event_blocking", blocking, 1},
    {"event_elapsed", elapsed, 1},
    {"event_wait_errors", wait_errors, 1},
    {"event_ordering", ordering, 1},
    {"event_wait_is_for_earlier_record", wait_is_for_earlier_record, 1},
    {"event_destroy_pending", destroy_pending, 1},
    {"event_from_threads", from_threads, 1},
    {"event_across_devices", across_devices, 2},
    {NULL, NULL, 0},
};
