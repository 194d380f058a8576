/* The functions of the header that steer the simulated driver. */
#include "sim_driver_test.h"

static void configure(const char *name, int device_count) {
  rdm_config config = {.struct_size = sizeof config, .driver = name, .sim_device_count = device_count};
  MUST(rdm_configure(&config));
}

/* The library's own driver, for the checks that need its calls. */
static void open_library(void) {
  configure("sim", 2);
  rdm_driver_info info = {.struct_size = sizeof info};
  MUST(rdm_get_driver_info(&info));
  CHECK(strcmp(info.name, "sim") == 0 && info.compiler_path[0] == '/');
  driver = rdm__sim_prepare(2);
}

static void call_counts_and_log(void) {
  open_library();
  uint64_t count = 0;
  MUST(rdm_sim_call_count("hipInit", &count));
  CHECK(count == 1);
  uint64_t before = 0;
  MUST(rdm_sim_call_count(NULL, &before));
  driver->set_device(1);
  MUST(rdm_sim_call_count(NULL, &count));
  CHECK(count == before + 1);
  rdm_sim_call calls[4];
  size_t copied = 9;
  MUST(rdm_sim_read_calls(before, calls, 4, &copied));
  CHECK(copied == 1 && strcmp(calls[0].entry_point, "hipSetDevice") == 0 && calls[0].named_device == 1);
  MUST(rdm_sim_read_calls(before + 100, calls, 4, &copied));
  CHECK(copied == 0);
  MUST(rdm_sim_read_calls(0, NULL, 0, &copied));
  RETURNS(RDM_ERROR_INVALID_ARGUMENT, rdm_sim_read_calls(0, NULL, 1, &copied));
  RETURNS(RDM_ERROR_INVALID_ARGUMENT, rdm_sim_read_calls(0, calls, 4, NULL));
  RETURNS(RDM_ERROR_INVALID_ARGUMENT, rdm_sim_call_count("hipNothing", &count));
  CHECK(strstr(rdm_last_error_message(), "hipNothing") != NULL);
  RETURNS(RDM_ERROR_INVALID_ARGUMENT, rdm_sim_call_count(NULL, NULL));
}

static void injecting(void) {
  open_library();
  RETURNS(RDM_ERROR_INVALID_ARGUMENT, rdm_sim_inject("hipNothing", 1, 1, 1, 0));
  RETURNS(RDM_ERROR_INVALID_ARGUMENT, rdm_sim_inject("hipSetDevice", 0, 1, 1, 0));
  MUST(rdm_sim_inject("hipSetDevice", 2, 1, 46, 0));
  RETURNS(0, driver->set_device(0));
  RETURNS(46, driver->set_device(0));
  RETURNS(0, driver->set_device(0));
  uint64_t fired = 0;
  MUST(rdm_sim_clear_injections(&fired));
  CHECK(fired == 1);
  MUST(rdm_sim_clear_injections(NULL));
}

static void holding_and_faulting(void) {
  open_library();
  void *stream = create_stream();
  char *memory = allocate(16);
  RETURNS(RDM_ERROR_INVALID_DEVICE, rdm_sim_hold(2, 1));
  RETURNS(RDM_ERROR_INVALID_DEVICE, rdm_sim_hold(-1, 1));
  RETURNS(RDM_ERROR_INVALID_ARGUMENT, rdm_sim_hold(0, 2));
  MUST(rdm_sim_hold(0, 1));
  MUST(driver->memory_set_async(memory, 0, 16, stream));
  sleep_ms(10);
  RETURNS(RDM_HIP_NOT_READY, driver->stream_query(stream));
  MUST(rdm_sim_hold(0, 0));
  RETURNS(0, driver->stream_synchronize(stream));
  RETURNS(RDM_ERROR_INVALID_DEVICE, rdm_sim_fault(2, 700));
  RETURNS(RDM_ERROR_INVALID_ARGUMENT, rdm_sim_fault(0, 0));
  RETURNS(RDM_ERROR_INVALID_ARGUMENT, rdm_sim_fault(0, 1));
  MUST(rdm_sim_fault(0, 700));
  RETURNS(700, driver->stream_query(stream));
}

static void counting_objects(void) {
  open_library();
  void *stream = create_stream();
  void *event = create_event(0);
  void *host = NULL;
  MUST(driver->host_memory_allocate(&host, 16, 0));
  void *memory = allocate(16);
  void *module = load_source("extern \"C\" __global__ void k() {}");
  void *program = NULL;
  MUST(driver->rtc_create_program(&program, "", ""));
  rdm_sim_objects objects = {.struct_size = sizeof objects};
  MUST(rdm_sim_count_objects(&objects));
  CHECK(objects.streams == 1 && objects.events == 1 && objects.modules == 1 && objects.programs == 1);
  CHECK(objects.device_allocations == 1 && objects.host_allocations == 1 && objects.struct_size == sizeof objects);
  MUST(driver->rtc_destroy_program(&program));
  MUST(driver->module_unload(module));
  MUST(driver->memory_free(memory));
  MUST(driver->host_memory_free(host));
  MUST(driver->event_destroy(event));
  MUST(driver->stream_destroy(stream));
  MUST(rdm_sim_count_objects(&objects));
  CHECK(objects.streams == 0 && objects.events == 0 && objects.modules == 0 && objects.programs == 0);
  CHECK(objects.device_allocations == 0 && objects.host_allocations == 0);
  RETURNS(RDM_ERROR_INVALID_ARGUMENT, rdm_sim_count_objects(NULL));
  objects.struct_size = 0;
  RETURNS(RDM_ERROR_INVALID_ARGUMENT, rdm_sim_count_objects(&objects));
  /* An older caller's smaller struct is filled as far as it goes. */
  objects.struct_size = 16;
  objects.events = 99;
  MUST(rdm_sim_count_objects(&objects));
  CHECK(objects.streams == 0 && objects.events == 99);
}

const sim_test control_tests[] = {
    {"call_counts_and_log", call_counts_and_log, NULL, 0},
    {"injecting", injecting, NULL, 0},
    {"holding_and_faulting", holding_and_faulting, NULL, 0},
    {"counting_objects", counting_objects, NULL, 0},
    {NULL, NULL, NULL, 0},
};
