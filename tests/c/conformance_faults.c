/* What is left after a kernel's wild write. */
#include "conformance.h"

/* No allocation of anyone is there. */
enum { WILD_ADDRESS = 0x10 };

static void fault(void) {
  void *module = make_module();
  void *poke = make_kernel(module, "poke");
  void *stream = make_stream();
  void *other_stream = make_stream();
  void *event = make_event(RDM_HIP_EVENT_DISABLE_TIMING);
  void *pointer = NULL;
  int calls = 0;
  need("event_record", driver->event_record(event, other_stream));
  need("event_synchronize", driver->event_synchronize(event));
  check_error("fault.launch_is_accepted", launch_poke(poke, stream, WILD_ADDRESS), 0);
  int queued = driver->launch_host_function(stream, count_call, &calls);
  check_either("fault.queue_after", queued, 0, RDM_HIP_ILLEGAL_ADDRESS);
  check_error("fault.synchronize", driver->stream_synchronize(stream), RDM_HIP_ILLEGAL_ADDRESS);
  check_error("fault.synchronize_again", driver->stream_synchronize(stream), RDM_HIP_ILLEGAL_ADDRESS);
  check_error("fault.other_stream", driver->stream_synchronize(other_stream), RDM_HIP_ILLEGAL_ADDRESS);
  check_error("fault.query", driver->stream_query(stream), RDM_HIP_ILLEGAL_ADDRESS);
  check_error("fault.memory", driver->memory_allocate(&pointer, 64), RDM_HIP_ILLEGAL_ADDRESS);
  check_error("fault.stream_create", driver->stream_create(&pointer, RDM_HIP_STREAM_NON_BLOCKING),
              RDM_HIP_ILLEGAL_ADDRESS);
  check_error("fault.event_record", driver->event_record(event, other_stream), RDM_HIP_ILLEGAL_ADDRESS);
  check_error("fault.launch", launch_poke(poke, other_stream, WILD_ADDRESS), RDM_HIP_ILLEGAL_ADDRESS);
  check_error("fault.device_synchronize", driver->device_synchronize(), RDM_HIP_ILLEGAL_ADDRESS);
  check_error("fault.last_error", driver->get_last_error(), RDM_HIP_ILLEGAL_ADDRESS);
  sleep_milliseconds(100);
  check("fault.host_function_never_runs", __atomic_load_n(&calls, __ATOMIC_SEQ_CST) == 0, "it did");
}

typedef struct fault_view {
  void *stream;
  int error;
} fault_view;

static void *see_fault(void *argument) {
  fault_view *view = argument;
  view->error = driver->stream_synchronize(view->stream);
  return NULL;
}

static void fault_on_threads(void) {
  void *poke = make_kernel(make_module(), "poke");
  fault_view view = {.stream = make_stream()};
  need("launch", launch_poke(poke, view.stream, WILD_ADDRESS));
  on_thread(see_fault, &view);
  check_error("fault.on_another_thread", view.error, RDM_HIP_ILLEGAL_ADDRESS);
  check_error("fault.on_this_thread", driver->stream_synchronize(view.stream), RDM_HIP_ILLEGAL_ADDRESS);
}

/* A wait that has begun ends with the fault. */
static void fault_under_waits(void) {
  void *poke = make_kernel(make_module(), "poke");
  void *stream = make_stream();
  void *waiting = make_stream();
  void *event = make_event(RDM_HIP_EVENT_DISABLE_TIMING);
  gate held;
  pthread_t thread;
  fault_view view = {.stream = waiting, .error = -1};
  gate_make(&held);
  gate_hold(&held, stream);
  need("launch", launch_poke(poke, stream, WILD_ADDRESS));
  need("event_record", driver->event_record(event, stream));
  need("stream_wait_event", driver->stream_wait_event(waiting, event, 0));
  need("pthread_create", pthread_create(&thread, NULL, see_fault, &view));
  gate_wait_entered(&held);
  sleep_milliseconds(20);
  gate_open(&held);
  check_error("fault.event_wait_ends", driver->event_synchronize(event), RDM_HIP_ILLEGAL_ADDRESS);
  pthread_join(thread, NULL);
  check_error("fault.stream_wait_ends", view.error, RDM_HIP_ILLEGAL_ADDRESS);
  check_error("fault.event_query", driver->event_query(event), RDM_HIP_ILLEGAL_ADDRESS);
}

static void fault_and_other_device(void) {
  need("set_device", driver->set_device(1));
  void *healthy = make_stream();
  need("set_device", driver->set_device(0));
  void *poke = make_kernel(make_module(), "poke");
  void *stream = make_stream();
  need("launch", launch_poke(poke, stream, WILD_ADDRESS));
  check_error("fault.of_first_device", driver->stream_synchronize(stream), RDM_HIP_ILLEGAL_ADDRESS);
  int expected = driver->fault_is_process_wide ? RDM_HIP_ILLEGAL_ADDRESS : 0;
  check_error("fault.set_other_device", driver->set_device(1), expected);
  check_error("fault.other_device_stream", driver->stream_synchronize(healthy), expected);
  void *pointer = NULL;
  check_error("fault.other_device_memory", driver->memory_allocate(&pointer, 64), expected);
}

const conformance_test fault_tests[] = {
    {"fault", fault, 1},
    {"fault_on_threads", fault_on_threads, 1},
    {"fault_under_waits", fault_under_waits, 1},
    {"fault_and_other_device", fault_and_other_device, 2},
    {NULL, NULL, 0},
};
