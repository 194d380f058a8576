/* Wrong configuration, wrong environment, and device indices that are not there. */
#include "bad_input.h"
#include "calls.h"
#include "expect.h"
#include "work.h"

#include <stdlib.h>
#include <string.h>

static void check_index_is_refused(int32_t index, const char *text) {
  rdm_device device = {123};
  rdm_stream stream = {123};
  rdm_thread_local_stream thread_local_stream = {123};
  uint64_t constructions = 123;
  EXPECT_ERROR(rdm_device_get(index, &device), RDM_ERROR_INVALID_DEVICE, text);
  EXPECT_ERROR(rdm_stream_create(index, &stream), RDM_ERROR_INVALID_DEVICE, text);
  EXPECT_ERROR(rdm_stream_get(index, 0, &stream), RDM_ERROR_INVALID_DEVICE, text);
  EXPECT_ERROR(rdm_thread_local_stream_create(index, &thread_local_stream), RDM_ERROR_INVALID_DEVICE, text);
  EXPECT_ERROR(rdm_thread_local_stream_get_shared(index, &thread_local_stream), RDM_ERROR_INVALID_DEVICE, text);
  EXPECT_ERROR(rdm_device_construction_count(index, &constructions), RDM_ERROR_INVALID_DEVICE, text);
  EXPECT_ERROR(rdm_device_get(index, &device), RDM_ERROR_INVALID_DEVICE, "2");
  CHECK(device.bits == 123 && stream.bits == 123 && thread_local_stream.bits == 123 && constructions == 123);
}

static void check_nothing_was_constructed(void) {
  for (int32_t i = 0; i < 2; i++) {
    uint64_t constructions = 123;
    CHECK_OK(rdm_device_construction_count(i, &constructions));
    CHECK(constructions == 0);
  }
  CHECK_OK(work_on_new_stream(1, 1));
}

static void device_index_minus_one(void) {
  test_use_sim(2);
  expect_watch_driver_calls();
  check_index_is_refused(-1, "-1");
  check_nothing_was_constructed();
}

static void device_index_equal_to_count(void) {
  test_use_sim(2);
  expect_watch_driver_calls();
  check_index_is_refused(2, "2");
  check_nothing_was_constructed();
}

static void device_index_largest(void) {
  test_use_sim(2);
  expect_watch_driver_calls();
  check_index_is_refused(INT32_MAX, "2147483647");
  check_index_is_refused(INT32_MIN, "-2147483648");
  check_nothing_was_constructed();
}

static void zero_devices(void) {
  unsetenv("RDM_DRIVER");
  setenv("RDM_SIM_DEVICES", "0", 1);
  test_use_sim(0);
  int32_t count = 123;
  CHECK_OK(rdm_device_count(&count));
  CHECK(count == 0);
  rdm_driver_info info = {.struct_size = sizeof info};
  CHECK_OK(rdm_get_driver_info(&info));
  CHECK(strcmp(info.name, "sim") == 0);
  rdm_device device = {123};
  rdm_stream stream = {123};
  rdm_thread_local_stream thread_local_stream = {123};
  expect_watch_driver_calls();
  EXPECT_ERROR(rdm_device_get(0, &device), RDM_ERROR_NO_DEVICE, "sim");
  EXPECT_ERROR(rdm_stream_create(0, &stream), RDM_ERROR_NO_DEVICE, "sim");
  EXPECT_ERROR(rdm_stream_get(0, 0, &stream), RDM_ERROR_NO_DEVICE, "sim");
  EXPECT_ERROR(rdm_thread_local_stream_create(0, &thread_local_stream), RDM_ERROR_NO_DEVICE, "sim");
  EXPECT_ERROR(rdm_thread_local_stream_get_shared(0, &thread_local_stream), RDM_ERROR_NO_DEVICE, "sim");
  CHECK(device.bits == 123 && stream.bits == 123 && thread_local_stream.bits == 123);
  CHECK_OK(rdm_clear_encoders());
}

static void unknown_driver_in_the_environment(void) {
  setenv("RDM_DRIVER", "no-such-driver", 1);
  int32_t count = 123;
  rdm_device device = {123};
  for (int i = 0; i < 2; i++) {
    EXPECT_ERROR(rdm_device_count(&count), RDM_ERROR_UNKNOWN_DRIVER, "no-such-driver");
    EXPECT_ERROR(rdm_device_get(0, &device), RDM_ERROR_UNKNOWN_DRIVER, "no-such-driver");
  }
  CHECK(count == 123 && device.bits == 123);
  setenv("RDM_DRIVER", "sim", 1);
  CHECK_OK(work_on_new_stream(0, 1));
}

static void unknown_driver_in_the_configuration(void) {
  test_use_sim(3);
  rdm_config config = {.struct_size = sizeof config, .driver = "no-such-driver", .sim_device_count = 1};
  EXPECT_ERROR(rdm_configure(&config), RDM_ERROR_UNKNOWN_DRIVER, "no-such-driver");
  int32_t count = 0;
  CHECK_OK(rdm_device_count(&count));
  CHECK_THAT(count == 3, "%d devices: the failed call changed the configuration", count);
}

static void unknown_driver_probed(void) {
  test_use_sim(3);
  int32_t count = 123;
  EXPECT_ERROR(rdm_probe_driver("no-such-driver", &count), RDM_ERROR_UNKNOWN_DRIVER, "no-such-driver");
  CHECK(count == 123);
  CHECK_OK(rdm_probe_driver("sim", &count));
  CHECK_THAT(count == 3, "%d devices", count);
  /* A look chooses nothing. */
  test_use_sim(4);
  CHECK_OK(rdm_device_count(&count));
  CHECK(count == 4);
}

static void simulated_device_count_out_of_range(void) {
  test_use_sim(3);
  rdm_config config = {.struct_size = sizeof config, .driver = "sim", .sim_device_count = -1};
  EXPECT_ERROR(rdm_configure(&config), RDM_ERROR_INVALID_ARGUMENT, "-1");
  config.sim_device_count = 65;
  EXPECT_ERROR(rdm_configure(&config), RDM_ERROR_INVALID_ARGUMENT, "65");
  config.struct_size = 0;
  EXPECT_ERROR(rdm_configure(&config), RDM_ERROR_INVALID_ARGUMENT, "struct_size");
  int32_t count = 0;
  CHECK_OK(rdm_device_count(&count));
  CHECK(count == 3);
}

static void simulated_device_count_in_the_environment(void) {
  static const char *const wrong[] = {"65", "-1", "two", "2 ", "0x2", "99999999999999999999"};
  setenv("RDM_DRIVER", "sim", 1);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    setenv("RDM_SIM_DEVICES", wrong[i], 1);
    int32_t count = 123;
    EXPECT_ERROR(rdm_device_count(&count), RDM_ERROR_INVALID_ARGUMENT, wrong[i]);
    EXPECT_ERROR(rdm_device_count(&count), RDM_ERROR_INVALID_ARGUMENT, "RDM_SIM_DEVICES");
    CHECK(count == 123);
  }
  setenv("RDM_SIM_DEVICES", "5", 1);
  int32_t count = 0;
  CHECK_OK(rdm_device_count(&count));
  CHECK(count == 5);
}

static void configured_late(void) {
  test_use_sim(2);
  int32_t count = 0;
  CHECK_OK(rdm_device_count(&count));
  rdm_config config = {.struct_size = sizeof config, .driver = "sim", .sim_device_count = 5};
  expect_watch_driver_calls();
  EXPECT_ERROR(rdm_configure(&config), RDM_ERROR_ALREADY_CONFIGURED, "sim");
  EXPECT_ERROR(rdm_configure(NULL), RDM_ERROR_ALREADY_CONFIGURED, "sim");
  CHECK_OK(rdm_device_count(&count));
  CHECK(count == 2);
}

static void simulated_driver_functions(void) {
  test_use_sim(2);
  int32_t count = 0;
  CHECK_OK(rdm_device_count(&count));
  uint64_t made = 123;
  expect_watch_driver_calls();
  EXPECT_ERROR(rdm_sim_call_count("hipNoSuchCall", &made), RDM_ERROR_INVALID_ARGUMENT, "hipNoSuchCall");
  EXPECT_ERROR(rdm_sim_inject("hipNoSuchCall", 1, 1, 1, 0), RDM_ERROR_INVALID_ARGUMENT, "hipNoSuchCall");
  EXPECT_ERROR(rdm_sim_inject("hipEventRecord", 0, 1, 1, 0), RDM_ERROR_INVALID_ARGUMENT, "0");
  EXPECT_ERROR(rdm_sim_hold(7, 1), RDM_ERROR_INVALID_DEVICE, "7");
  EXPECT_ERROR(rdm_sim_fault(-1, 700), RDM_ERROR_INVALID_DEVICE, "-1");
  EXPECT_ERROR(rdm_sim_call_count(NULL, NULL), RDM_ERROR_INVALID_ARGUMENT, "null");
  EXPECT_ERROR(rdm_sim_read_calls(0, NULL, 5, NULL), RDM_ERROR_INVALID_ARGUMENT, "null");
  EXPECT_ERROR(rdm_sim_count_objects(NULL), RDM_ERROR_INVALID_ARGUMENT, "null");
  rdm_sim_objects objects = {.struct_size = 0};
  EXPECT_ERROR(rdm_sim_count_objects(&objects), RDM_ERROR_INVALID_ARGUMENT, "struct_size");
  CHECK(made == 123);
}

static void log_level_out_of_range(void) {
  EXPECT_ERROR(rdm_set_log_handler(NULL, NULL, 0), RDM_ERROR_INVALID_ARGUMENT, "0");
  EXPECT_ERROR(rdm_set_log_handler(NULL, NULL, 99), RDM_ERROR_INVALID_ARGUMENT, "99");
}

static void last_error_asked_for_wrongly(void) {
  test_use_sim(2);
  rdm_error error = {.struct_size = sizeof error};
  CHECK_OK(rdm_last_error(&error));
  CHECK(error.status == RDM_OK && error.message[0] == '\0' && error.device_index == -1);
  rdm_device device = {0};
  EXPECT_ERROR(rdm_device_get(9, &device), RDM_ERROR_INVALID_DEVICE, "9");
  CHECK_STATUS(rdm_last_error(NULL), RDM_ERROR_INVALID_ARGUMENT);
  rdm_error small = {.struct_size = 4, .status = 123};
  CHECK_STATUS(rdm_last_error(&small), RDM_ERROR_INVALID_ARGUMENT);
  CHECK(small.status == 123);
  CHECK_OK(rdm_device_get(0, &device));
  CHECK_OK(rdm_last_error(&error));
  CHECK_THAT(error.status == RDM_ERROR_INVALID_DEVICE, "the last error did not outlive a success");
  CHECK(strcmp(rdm_status_name(-5), "RDM_ERROR_UNKNOWN") == 0);
  CHECK(strcmp(rdm_status_name(RDM_ERROR_TIMEOUT), "RDM_ERROR_TIMEOUT") == 0);
  CHECK(strlen(rdm_status_description(12345)) > 0);
}

static void *read_fresh_last_error(void *argument) {
  rdm_error *error = argument;
  CHECK_OK(rdm_last_error(error));
  return NULL;
}

static void last_error_is_of_the_thread(void) {
  test_use_sim(2);
  rdm_device device = {0};
  EXPECT_ERROR(rdm_device_get(9, &device), RDM_ERROR_INVALID_DEVICE, "9");
  rdm_error error = {.struct_size = sizeof error, .status = 123};
  test_join_thread(test_start_thread(read_fresh_last_error, &error));
  CHECK(error.status == RDM_OK && error.message[0] == '\0');
}

const test_case configuration_tests[] = {
    {.name = "device_index_minus_one", .function = device_index_minus_one},
    {.name = "device_index_equal_to_count", .function = device_index_equal_to_count},
    {.name = "device_index_largest", .function = device_index_largest},
    {.name = "zero_devices", .function = zero_devices},
    {.name = "unknown_driver_in_the_environment", .function = unknown_driver_in_the_environment},
    {.name = "unknown_driver_in_the_configuration", .function = unknown_driver_in_the_configuration},
    {.name = "unknown_driver_probed", .function = unknown_driver_probed},
    {.name = "simulated_device_count_out_of_range", .function = simulated_device_count_out_of_range},
    {.name = "simulated_device_count_in_the_environment", .function = simulated_device_count_in_the_environment},
    {.name = "configured_late", .function = configured_late},
    {.name = "simulated_driver_functions", .function = simulated_driver_functions},
    {.name = "log_level_out_of_range", .function = log_level_out_of_range},
    {.name = "last_error_asked_for_wrongly", .function = last_error_asked_for_wrongly},
    {.name = "last_error_is_of_the_thread", .function = last_error_is_of_the_thread},
    {0},
};
