/* The simulated driver's rules on initialization, devices, memory, the call log, injections and the last error. */
#include "sim_driver_test.h"

static void calls_before_init(void) {
  driver = rdm__sim_prepare(2);
  int count = 0;
  void *stream = NULL;
  RETURNS(RDM_HIP_NOT_INITIALIZED, driver->get_device_count(&count));
  RETURNS(RDM_HIP_NOT_INITIALIZED, driver->set_device(0));
  RETURNS(RDM_HIP_NOT_INITIALIZED, driver->stream_create(&stream, 1));
  RETURNS(RDM_HIP_NOT_INITIALIZED, driver->get_last_error());
  int major = 0;
  int minor = 0;
  RETURNS(RDM_RTC_SUCCESS, driver->rtc_version(&major, &minor));
  RETURNS(RDM_HIP_INVALID_VALUE, driver->init(1));
  RETURNS(0, driver->init(0));
  RETURNS(0, driver->get_device_count(&count));
  CHECK(count == 2);
  RETURNS(RDM_HIP_INVALID_VALUE, driver->get_last_error());
}

static void device_counts(void) {
  const rdm__driver *opened = NULL;
  RETURNS(RDM_ERROR_INVALID_ARGUMENT, rdm__sim_open(-1, &opened));
  RETURNS(RDM_ERROR_INVALID_ARGUMENT, rdm__sim_open(65, &opened));
  CHECK(opened == NULL);
  open_driver(64);
  int count = 0;
  RETURNS(0, driver->get_device_count(&count));
  CHECK(count == 64);
  RETURNS(0, driver->set_device(63));
  RETURNS(RDM_HIP_INVALID_DEVICE, driver->set_device(64));
  RETURNS(RDM_HIP_INVALID_DEVICE, driver->set_device(-1));
  RETURNS(RDM_HIP_INVALID_DEVICE, driver->set_device(2147483647));
  int device = -1;
  RETURNS(0, driver->get_device(&device));
  CHECK(device == 63);
}

static void no_device(void) {
  open_driver(0);
  int count = -1;
  void *event = NULL;
  RETURNS(RDM_HIP_NO_DEVICE, driver->get_device_count(&count));
  CHECK(count == 0);
  RETURNS(RDM_HIP_INVALID_DEVICE, driver->set_device(0));
  RETURNS(RDM_HIP_INVALID_DEVICE, driver->event_create(&event, 0));
  RETURNS(RDM_HIP_INVALID_DEVICE, driver->device_synchronize());
}

static void failing_init(void) {
  RETURNS(RDM_ERROR_DRIVER, rdm__sim_open(2, &driver));
  open_driver(2);
  RETURNS(0, driver->get_last_error());
  CHECK(rdm__sim_call_log_count(RDM__CALL_init) == 2);
}

static void slow_init(void) {
  uint64_t begin = rdm__now_ns();
  open_driver(2);
  CHECK(rdm__now_ns() - begin >= 50 * RDM__NS_PER_MS);
}

static void bad_environment(void) {
  RETURNS(RDM_ERROR_INVALID_ARGUMENT, rdm__sim_open(2, &driver));
}

static void *check_new_thread(void *argument) {
  int *device = argument;
  RETURNS(0, driver->get_device(device));
  RETURNS(0, driver->get_last_error());
  return NULL;
}

static void current_device_is_per_thread(void) {
  open_driver(3);
  RETURNS(0, driver->set_device(2));
  RETURNS(RDM_HIP_INVALID_DEVICE, driver->set_device(7));
  pthread_t thread;
  int seen = -1;
  pthread_create(&thread, NULL, check_new_thread, &seen);
  pthread_join(thread, NULL);
  CHECK(seen == 0);
  RETURNS(0, driver->get_device(&seen));
  CHECK(seen == 2);
  RETURNS(RDM_HIP_INVALID_DEVICE, driver->get_last_error());
}

static void device_flags(void) {
  open_driver(2);
  RETURNS(0, driver->set_device(1));
  RETURNS(0, driver->set_device_flags(RDM_HIP_DEVICE_SCHEDULE_BLOCKING_SYNC));
  RETURNS(RDM_HIP_INVALID_VALUE, driver->set_device_flags(3));
  RETURNS(RDM_HIP_INVALID_VALUE, driver->set_device_flags(0x100));
  void *stream = create_stream();
  RETURNS(RDM_HIP_SET_ON_ACTIVE_PROCESS, driver->set_device_flags(RDM_HIP_DEVICE_SCHEDULE_BLOCKING_SYNC));
  /* The other device has no context yet: naming it and reading its properties makes none. */
  rdm__device_properties properties;
  RETURNS(0, driver->set_device(0));
  RETURNS(0, driver->get_device_properties(&properties, 0));
  RETURNS(0, driver->set_device_flags(RDM_HIP_DEVICE_SCHEDULE_BLOCKING_SYNC));
  RETURNS(0, driver->memory_free(NULL));
  RETURNS(RDM_HIP_SET_ON_ACTIVE_PROCESS, driver->set_device_flags(0));
  RETURNS(0, driver->stream_destroy(stream));
}

static void properties(void) {
  open_driver(2);
  rdm__device_properties found;
  RETURNS(0, driver->get_device_properties(&found, 1));
  CHECK(strcmp(found.name, "Simulated GPU") == 0);
  CHECK(strcmp(found.architecture, "sim") == 0);
  CHECK(found.max_threads_per_block == 1024 && found.warp_size == 64 && found.multiprocessor_count > 0);
  CHECK(found.total_memory_bytes == UINT64_C(1) << 30);
  RETURNS(RDM_HIP_INVALID_DEVICE, driver->get_device_properties(&found, 2));
  RETURNS(RDM_HIP_INVALID_VALUE, driver->get_device_properties(NULL, 0));
  int version = 0;
  RETURNS(0, driver->driver_get_version(&version));
  CHECK(version > 0);
  RETURNS(0, driver->runtime_get_version(&version));
  CHECK(version > 0);
  CHECK(strcmp(driver->name, "sim") == 0 && strcmp(driver->architecture_option, "--offload-arch=") == 0);
  CHECK(!driver->fault_is_process_wide && !driver->compiles_one_at_a_time);
  CHECK(strcmp(driver->call_name(RDM__CALL_event_record), "hipEventRecord") == 0);
  CHECK(strcmp(driver->error_name(700), "hipErrorIllegalAddress") == 0);
  CHECK(strcmp(driver->error_name(424242), "hipErrorUnrecognized") == 0);
  CHECK(driver->error_string(-5) != NULL && driver->rtc_error_string(-1) != NULL);
  static const int faults[] = {214, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719};
  static const int others[] = {0, 1, 2, 9, 100, 400, 500, 600, 701, 708, 800, 801, 999, -1};
  for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) CHECK(rdm__driver_error_is_fault(faults[i]));
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) CHECK(!rdm__driver_error_is_fault(others[i]));
}

static void memory(void) {
  open_driver(2);
  char *pointer = allocate(100);
  CHECK((uintptr_t)pointer % 256 == 0);
  void *none = &none;
  RETURNS(0, driver->memory_allocate(&none, 0));
  CHECK(none == NULL);
  RETURNS(RDM_HIP_INVALID_VALUE, driver->memory_allocate(NULL, 1));
  RETURNS(RDM_HIP_OUT_OF_MEMORY, driver->memory_allocate(&none, (size_t)1 << 31));
  RETURNS(RDM_HIP_OUT_OF_MEMORY, driver->memory_allocate(&none, SIZE_MAX));
  /* The limit is each device's own, and memory that is freed can be had again. */
  void *most = allocate(((size_t)1 << 30) - 4096);
  RETURNS(RDM_HIP_OUT_OF_MEMORY, driver->memory_allocate(&none, 8192));
  RETURNS(0, driver->set_device(1));
  void *other = allocate(8192);
  RETURNS(0, driver->memory_free(most));
  RETURNS(0, driver->memory_free(other));
  RETURNS(0, driver->set_device(0));
  other = allocate(8192);
  RETURNS(0, driver->memory_free(other));
  int local = 0;
  RETURNS(RDM_HIP_INVALID_VALUE, driver->memory_free(&local));
  RETURNS(RDM_HIP_INVALID_VALUE, driver->memory_free(pointer + 1));
  void *host = NULL;
  RETURNS(0, driver->host_memory_allocate(&host, 64, 0));
  RETURNS(RDM_HIP_INVALID_VALUE, driver->host_memory_allocate(&none, 64, 0x100));
  memset(host, 7, 64);
  RETURNS(RDM_HIP_INVALID_VALUE, driver->memory_free(host));
  RETURNS(RDM_HIP_INVALID_VALUE, driver->host_memory_free(pointer));
  CHECK(rdm__sim_memory_device_allocation_count() == 1 && rdm__sim_memory_host_allocation_count() == 1);
  RETURNS(0, driver->host_memory_free(host));
  RETURNS(0, driver->memory_free(pointer));
  RETURNS(RDM_HIP_INVALID_VALUE, driver->memory_free(pointer));
  CHECK(rdm__sim_memory_device_allocation_count() == 0 && rdm__sim_memory_host_allocation_count() == 0);
}

static void copies(void) {
  open_driver(2);
  void *stream = create_stream();
  char *device = allocate(100);
  char *second = allocate(100);
  char text[100] = "before";
  char back[100] = "";
  hold(0, true);
  RETURNS(0, driver->memory_copy_async(device, text, 100, RDM_COPY_HOST_TO_DEVICE, stream));
  RETURNS(0, driver->memory_copy_async(second, device, 100, RDM_COPY_DEVICE_TO_DEVICE, stream));
  RETURNS(0, driver->memory_set_async(device, 'x', 3, stream));
  RETURNS(0, driver->memory_copy_async(back, second, 100, RDM_COPY_DEVICE_TO_HOST, stream));
  /* Host memory is read when the copy runs. */
  strcpy(text, "after");
  CHECK(strcmp(back, "") == 0);
  hold(0, false);
  RETURNS(0, driver->stream_synchronize(stream));
  CHECK(strcmp(back, "after") == 0);
  RETURNS(0, driver->memory_copy_async(back, device, 100, 4, stream));
  RETURNS(0, driver->stream_synchronize(stream));
  CHECK(strcmp(back, "xxxer") == 0);

  RETURNS(RDM_HIP_INVALID_VALUE, driver->memory_copy_async(device, text, 101, 1, stream));
  RETURNS(RDM_HIP_INVALID_VALUE, driver->memory_copy_async(device + 1, text, 100, 1, stream));
  RETURNS(RDM_HIP_INVALID_VALUE, driver->memory_copy_async(back, text, 10, 2, stream));
  RETURNS(RDM_HIP_INVALID_VALUE, driver->memory_copy_async(text, back, 10, 1, stream));
  RETURNS(RDM_HIP_INVALID_VALUE, driver->memory_copy_async(device, text, 10, 3, stream));
  RETURNS(RDM_HIP_INVALID_VALUE, driver->memory_copy_async(device, NULL, 10, 1, stream));
  RETURNS(21, driver->memory_copy_async(device, text, 10, 5, stream));
  RETURNS(21, driver->memory_copy_async(device, text, 10, -1, stream));
  RETURNS(RDM_HIP_NOT_SUPPORTED, driver->memory_copy_async(back, text, 10, 0, stream));
  RETURNS(RDM_HIP_INVALID_VALUE, driver->memory_set_async(text, 0, 10, stream));
  RETURNS(RDM_HIP_INVALID_VALUE, driver->memory_set_async(device, 0, SIZE_MAX, stream));
  RETURNS(RDM_HIP_NOT_SUPPORTED, driver->memory_set_async(device, 0, 1, NULL));
  RETURNS(0, driver->memory_set_async(device, 0, 0, stream));
  RETURNS(0, driver->memory_free(second));
  RETURNS(RDM_HIP_INVALID_VALUE, driver->memory_copy_async(back, second, 10, 2, stream));
  RETURNS(0, driver->memory_free(device));
  RETURNS(0, driver->stream_destroy(stream));
}

static void last_error_stays(void) {
  open_driver(2);
  void *event = create_event(0);
  void *stream = create_stream();
  hold(0, true);
  RETURNS(0, driver->event_record(event, stream));
  RETURNS(RDM_HIP_NOT_READY, driver->event_query(event));
  RETURNS(0, driver->set_device(0));
  RETURNS(RDM_HIP_NOT_READY, driver->peek_at_last_error());
  RETURNS(RDM_HIP_NOT_READY, driver->get_last_error());
  RETURNS(0, driver->get_last_error());
  void *module = NULL;
  RETURNS(RDM_HIP_INVALID_IMAGE, driver->module_load_data(&module, "garbage", 7));
  RETURNS(RDM_HIP_INVALID_IMAGE, driver->get_last_error());
  void *program = NULL;
  RETURNS(RDM_RTC_INVALID_INPUT, driver->rtc_create_program(&program, NULL, NULL));
  RETURNS(0, driver->get_last_error());
  hold(0, false);
  RETURNS(0, driver->stream_destroy(stream));
  RETURNS(0, driver->event_destroy(event));
}

static void last_error_legacy(void) {
  open_driver(2);
  RETURNS(RDM_HIP_INVALID_DEVICE, driver->set_device(5));
  RETURNS(RDM_HIP_INVALID_DEVICE, driver->peek_at_last_error());
  RETURNS(0, driver->set_device(1));
  RETURNS(0, driver->peek_at_last_error());
}

static void injections(void) {
  open_driver(2);
  void *event = create_event(0);
  inject("hipEventQuery", 2, 2, 777, 0);
  RETURNS(0, driver->event_query(event));
  RETURNS(777, driver->event_query(event));
  RETURNS(777, driver->event_query(event));
  RETURNS(0, driver->event_query(event));
  RETURNS(777, driver->get_last_error());
  CHECK(rdm__sim_injections_clear(rdm__sim_state()->injections) == 2);
  /* Of several the one set first wins, and all of them count. */
  inject(NULL, 2, 0, 5, 0);
  inject("hipEventQuery", 1, 2, 6, 0);
  RETURNS(6, driver->event_query(event));
  RETURNS(5, driver->event_query(event));
  RETURNS(5, driver->set_device(0));
  RETURNS(5, driver->rtc_version(NULL, NULL));
  CHECK(rdm__sim_injections_clear(rdm__sim_state()->injections) == 4);
  inject("hipEventQuery", 1, 1, 0, 20 * RDM__NS_PER_MS);
  uint64_t begin = rdm__now_ns();
  RETURNS(0, driver->event_query(event));
  CHECK(rdm__now_ns() - begin >= 20 * RDM__NS_PER_MS);
  begin = rdm__now_ns();
  RETURNS(0, driver->event_query(event));
  CHECK(rdm__now_ns() - begin < 15 * RDM__NS_PER_MS);
  /* An injected failure does nothing: the event is still there. */
  inject("hipEventDestroy", 1, 1, 1, 0);
  RETURNS(1, driver->event_destroy(event));
  RETURNS(0, driver->event_destroy(event));
  CHECK(rdm__sim_call_by_name("hipNothing") == RDM__CALL_COUNT);
}

static void *call_under_stall(void *argument) {
  (void)argument;
  driver->get_device_count(NULL);
  return NULL;
}

static void call_log(void) {
  open_driver(3);
  int value = 0;
  driver->get_device(&value);
  CHECK(last_call().named_device == -1 && last_call().handle == 0 && last_call().current_device == 0);
  CHECK(strcmp(last_call().entry_point, "hipGetDevice") == 0 && last_call().result == 0);
  driver->set_device(2);
  CHECK(last_call().named_device == 2 && last_call().current_device == 0);
  void *event = create_event(0);
  CHECK(last_call().named_device == 2 && last_call().current_device == 2);
  CHECK(last_call().handle == (uint64_t)(uintptr_t)event);
  void *stream = create_stream();
  void *memory_of_2 = allocate(10);
  CHECK(last_call().handle == (uint64_t)(uintptr_t)memory_of_2 && last_call().named_device == 2);
  driver->set_device(1);
  /* By handle and by address, whatever the current device. */
  driver->event_query(event);
  CHECK(last_call().named_device == 2 && last_call().current_device == 1 && last_call().in_callback == 0);
  driver->stream_synchronize(stream);
  CHECK(last_call().named_device == 2 && last_call().handle == (uint64_t)(uintptr_t)stream);
  driver->memory_free(memory_of_2);
  CHECK(last_call().named_device == 2 && last_call().handle == (uint64_t)(uintptr_t)memory_of_2);
  driver->get_device_properties(NULL, 0);
  CHECK(last_call().named_device == 0 && last_call().result == RDM_HIP_INVALID_VALUE);
  uint64_t own_thread = last_call().thread;
  CHECK(own_thread == 1 && last_call().time_ns <= rdm__now_ns());

  /* A call is in the log before it ends, and the log keeps the latest ones. */
  inject("hipGetDeviceCount", 1, 1, 0, 200 * RDM__NS_PER_MS);
  pthread_t thread;
  uint64_t before = rdm__sim_call_log_count(RDM__CALL_COUNT);
  pthread_create(&thread, NULL, call_under_stall, NULL);
  while (rdm__sim_call_log_count(RDM__CALL_COUNT) == before) sleep_ms(1);
  CHECK(last_call().result == -1 && last_call().thread == 2);
  pthread_join(thread, NULL);
  CHECK(last_call().result == RDM_HIP_INVALID_VALUE);
  for (int i = 0; i < 70000; i++) driver->get_device(&value);
  rdm_sim_call *calls = calloc(70000, sizeof *calls);
  CHECK(rdm__sim_call_log_read(0, calls, 70000) == 65536);
  CHECK(rdm__sim_call_log_read(before + 70000, calls, 70000) == 1);
  CHECK(rdm__sim_call_log_read(before + 70001, calls, 70000) == 0);
  CHECK(rdm__sim_call_log_count(RDM__CALL_get_device) == 70001);
  free(calls);
  driver->stream_destroy(stream);
  driver->event_destroy(event);
}

/* The process must end although work is held, a callback never ends and a call is stalled for ever. */
static void sleep_for_ever(void *user_data) {
  (void)user_data;
  for (;;) sleep_ms(1000);
}

static void exit_while_busy(void) {
  open_driver(2);
  RETURNS(0, driver->launch_host_function(create_stream(), sleep_for_ever, NULL));
  RETURNS(0, driver->set_device(1));
  void *stream = create_stream();
  char *device = allocate(10);
  hold(1, true);
  RETURNS(0, driver->memory_set_async(device, 1, 10, stream));
  RETURNS(0, driver->stream_destroy(stream));
  inject("hipGetDeviceCount", 1, 0, 0, UINT64_MAX);
  pthread_t thread;
  pthread_create(&thread, NULL, call_under_stall, NULL);
  pthread_detach(thread);
  sleep_ms(20);
}

const sim_test driver_tests[] = {
    {"calls_before_init", calls_before_init, NULL, 0},
    {"device_counts", device_counts, NULL, 0},
    {"no_device", no_device, NULL, 0},
    {"failing_init", failing_init, "RDM_SIM_INJECT=hipInit:1:1:999:0", 0},
    {"slow_init", slow_init, "RDM_SIM_INJECT=hipGetDevice:1:1:0:0,hipInit:1:1:0:50000000", 0},
    {"bad_inject", bad_environment, "RDM_SIM_INJECT=hipInit:0:1:0:0", 0},
    {"bad_inject_end", bad_environment, "RDM_SIM_INJECT=hipInit:1:1:0:0,", 0},
    {"bad_inject_name", bad_environment, "RDM_SIM_INJECT=hipNothing:1:1:0:0", 0},
    {"bad_fault_scope", bad_environment, "RDM_SIM_FAULT_SCOPE=all", 0},
    {"bad_last_error", bad_environment, "RDM_SIM_LAST_ERROR=old", 0},
    {"bad_serial_compiler", bad_environment, "RDM_SIM_SERIAL_COMPILER=yes", 0},
    {"current_device_is_per_thread", current_device_is_per_thread, NULL, 0},
    {"device_flags", device_flags, NULL, 0},
    {"properties", properties, NULL, 0},
    {"memory", memory, NULL, 0},
    {"copies", copies, NULL, 0},
    {"last_error_stays", last_error_stays, NULL, 0},
    {"last_error_legacy", last_error_legacy, "RDM_SIM_LAST_ERROR=legacy", 0},
    {"injections", injections, NULL, 0},
    {"call_log", call_log, NULL, 0},
    {"exit_while_busy", exit_while_busy, NULL, 0},
    {NULL, NULL, NULL, 0},
};
