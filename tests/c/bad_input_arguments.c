/* Arguments outside what a function takes, and objects of two devices used together. */
#include "bad_input.h"
#include "calls.h"
#include "expect.h"
#include "work.h"

#include <stdlib.h>
#include <string.h>

typedef struct bench {
  work_kernels kernels;
  work_kernels other_kernels;
  rdm_stream stream;
  rdm_stream other_stream;
  rdm_encoder encoder;
  rdm_encoder other_encoder;
  rdm_event event;
  void *memory;
} bench;

static bench set_up(void) {
  bench all = {0};
  test_use_sim(2);
  CHECK_OK(work_load(0, &all.kernels));
  CHECK_OK(work_load(1, &all.other_kernels));
  CHECK_OK(rdm_stream_create(0, &all.stream));
  CHECK_OK(rdm_stream_create(1, &all.other_stream));
  CHECK_OK(rdm_encoder_get(all.stream, &all.encoder));
  CHECK_OK(rdm_encoder_get(all.other_stream, &all.other_encoder));
  CHECK_OK(rdm_event_create(all.kernels.device, RDM_EVENT_DEFAULT, &all.event));
  CHECK_OK(rdm_memory_allocate(all.kernels.device, 1024, &all.memory));
  return all;
}

/* Nothing was submitted, nothing recorded, and everything still works. */
static void check_unchanged(const bench *all) {
  rdm_error error = {.struct_size = sizeof error};
  CHECK_OK(rdm_stream_take_error(all->stream, &error));
  CHECK_THAT(error.status == RDM_OK, "a refused call was recorded for the stream: %s", error.message);
  CHECK_OK(work_on_new_stream(0, 1));
  CHECK_OK(work_on_new_stream(1, 1));
  CHECK_OK(rdm_stream_synchronize(all->stream, RDM_WAIT_FOREVER));
  CHECK_OK(rdm_stream_synchronize(all->other_stream, RDM_WAIT_FOREVER));
}

static void null_out_pointers(void) {
  bench all = set_up();
  rdm_thread_local_stream thread_local_stream;
  CHECK_OK(rdm_thread_local_stream_create(0, &thread_local_stream));
  const rdm_status expected = RDM_ERROR_INVALID_ARGUMENT;
  rdm_sim_objects before = calls_count_objects();
  const void *code = &all;
  size_t size = 123;
  EXPECT_ERROR(rdm_get_driver_info(NULL), expected, "null");
  expect_watch_driver_calls();
  EXPECT_ERROR(rdm_device_count(NULL), expected, "null");
  EXPECT_ERROR(rdm_device_get(0, NULL), expected, "null");
  EXPECT_ERROR(rdm_device_construction_count(0, NULL), expected, "null");
  EXPECT_ERROR(rdm_device_get_info(all.kernels.device, NULL), expected, "null");
  EXPECT_ERROR(rdm_stream_create(0, NULL), expected, "null");
  EXPECT_ERROR(rdm_stream_get(0, 1000, NULL), expected, "null");
  EXPECT_ERROR(rdm_stream_get_info(all.stream, NULL), expected, "null");
  EXPECT_ERROR(rdm_stream_take_error(all.stream, NULL), expected, "null");
  EXPECT_ERROR(rdm_take_unattributed_error(NULL), expected, "null");
  EXPECT_ERROR(rdm_thread_local_stream_create(0, NULL), expected, "null");
  EXPECT_ERROR(rdm_thread_local_stream_get_shared(0, NULL), expected, "null");
  EXPECT_ERROR(rdm_thread_local_stream_get_device_index(thread_local_stream, NULL), expected, "null");
  EXPECT_ERROR(rdm_thread_local_stream_resolve(thread_local_stream, NULL), expected, "null");
  EXPECT_ERROR(rdm_default_stream_get(NULL), expected, "null");
  EXPECT_ERROR(rdm_encoder_get(all.stream, NULL), expected, "null");
  EXPECT_ERROR(rdm_encoder_get_native_stream(all.encoder, NULL), expected, "null");
  EXPECT_ERROR(rdm_event_create(all.kernels.device, 0, NULL), expected, "null");
  EXPECT_ERROR(rdm_event_elapsed(all.event, all.event, NULL), expected, "null");
  EXPECT_ERROR(rdm_event_get_native(all.event, NULL), expected, "null");
  EXPECT_ERROR(rdm_memory_allocate(all.kernels.device, 16, NULL), expected, "null");
  EXPECT_ERROR(rdm_host_memory_allocate(all.kernels.device, 16, NULL), expected, "null");
  EXPECT_ERROR(rdm_module_get(all.kernels.device, &work_source, NULL), expected, "null");
  EXPECT_ERROR(rdm_module_get_kernel(all.kernels.module, "arange", NULL), expected, "null");
  EXPECT_ERROR(rdm_module_compile_count(NULL), expected, "null");
  EXPECT_ERROR(rdm_module_disk_hit_count(NULL), expected, "null");
  EXPECT_ERROR(rdm_module_load(all.kernels.device, "x", "x", 1, NULL), expected, "null");
  EXPECT_ERROR(rdm_code_get("sim", &work_source, NULL, &size), expected, "null");
  EXPECT_ERROR(rdm_code_get("sim", &work_source, &code, NULL), expected, "null");
  EXPECT_ERROR(rdm_probe_driver("sim", NULL), expected, "null");
  rdm_sim_objects after = calls_count_objects();
  CHECK(memcmp(&before, &after, sizeof before) == 0);
  CHECK(code == &all && size == 123);
  check_unchanged(&all);
}

static void null_inputs(void) {
  bench all = set_up();
  const rdm_status expected = RDM_ERROR_INVALID_ARGUMENT;
  rdm_module module = {123};
  rdm_kernel kernel = {123};
  const void *code = &all;
  size_t size = 123;
  int32_t count = 123;
  rdm_module_source source = work_source;
  const rdm_launch_config config = {.struct_size = sizeof config, .grid = {1, 1, 1}, .block = {1, 1, 1}};
  expect_watch_driver_calls();
  EXPECT_ERROR(rdm_module_get(all.kernels.device, NULL, &module), expected, "null");
  source.name = NULL;
  EXPECT_ERROR(rdm_module_get(all.kernels.device, &source, &module), expected, "name");
  source = work_source;
  source.source = NULL;
  EXPECT_ERROR(rdm_module_get(all.kernels.device, &source, &module), expected, "source");
  source = work_source;
  source.option_count = 2;
  EXPECT_ERROR(rdm_module_get(all.kernels.device, &source, &module), expected, "options");
  EXPECT_ERROR(rdm_module_get_kernel(all.kernels.module, NULL, &kernel), expected, "null");
  EXPECT_ERROR(rdm_module_load(all.kernels.device, "x", NULL, 1, &module), expected, "null");
  EXPECT_ERROR(rdm_code_get(NULL, &work_source, &code, &size), expected, "null");
  EXPECT_ERROR(rdm_code_get("sim", NULL, &code, &size), expected, "null");
  EXPECT_ERROR(rdm_probe_driver(NULL, &count), expected, "null");
  EXPECT_ERROR(rdm_encoder_launch(all.encoder, all.kernels.step, NULL, NULL, 0), expected, "null");
  EXPECT_ERROR(rdm_encoder_launch(all.encoder, all.kernels.step, &config, NULL, 2), expected, "null");
  EXPECT_ERROR(rdm_encoder_copy(all.encoder, NULL, all.memory, 4, RDM_COPY_DEVICE_TO_DEVICE), expected, "null");
  EXPECT_ERROR(rdm_encoder_copy(all.encoder, all.memory, NULL, 4, RDM_COPY_DEVICE_TO_DEVICE), expected, "null");
  EXPECT_ERROR(rdm_encoder_fill(all.encoder, NULL, 1, 4), expected, "null");
  EXPECT_ERROR(rdm_encoder_add_completion_handler(all.encoder, NULL, NULL), expected, "null");
  CHECK(module.bits == 123 && kernel.bits == 123 && code == &all && size == 123 && count == 123);
  check_unchanged(&all);
}

static void struct_size_zero(void) {
  bench all = set_up();
  const rdm_status expected = RDM_ERROR_INVALID_ARGUMENT;
  rdm_driver_info driver_info = {.runtime_version = 123};
  rdm_device_info device_info = {.device_index = 123};
  rdm_stream_info stream_info = {.device_index = 123};
  rdm_error error = {.status = 123};
  rdm_module module = {123};
  rdm_module_source source = work_source;
  source.struct_size = 0;
  rdm_launch_config config = {.grid = {1, 1, 1}, .block = {1, 1, 1}};
  float *memory = all.memory;
  uint32_t count = 1;
  void *arguments[] = {&memory, &count};
  CHECK_OK(rdm_stream_record_error(all.stream, RDM_ERROR_LAUNCH, "kept"));
  EXPECT_ERROR(rdm_get_driver_info(&driver_info), expected, "struct_size");
  expect_watch_driver_calls();
  EXPECT_ERROR(rdm_device_get_info(all.kernels.device, &device_info), expected, "struct_size");
  EXPECT_ERROR(rdm_stream_get_info(all.stream, &stream_info), expected, "struct_size");
  EXPECT_ERROR(rdm_stream_take_error(all.stream, &error), expected, "struct_size");
  EXPECT_ERROR(rdm_take_unattributed_error(&error), expected, "struct_size");
  EXPECT_ERROR(rdm_module_get(all.kernels.device, &source, &module), expected, "struct_size");
  EXPECT_ERROR(rdm_encoder_launch(all.encoder, all.kernels.step, &config, arguments, 2), expected, "struct_size");
  CHECK(driver_info.runtime_version == 123 && device_info.device_index == 123 && stream_info.device_index == 123);
  CHECK(error.status == 123 && module.bits == 123);
  error.struct_size = sizeof error;
  CHECK_OK(rdm_stream_take_error(all.stream, &error));
  CHECK_STATUS(error.status, RDM_ERROR_LAUNCH);
  CHECK_THAT(strstr(error.message, "kept") != NULL, "the message is \"%s\"", error.message);
  check_unchanged(&all);
}

static void unknown_flags_and_kinds(void) {
  bench all = set_up();
  const rdm_status expected = RDM_ERROR_INVALID_ARGUMENT;
  rdm_event event = {123};
  rdm_stream stream = {123};
  void *pointer = &event;
  expect_watch_driver_calls();
  EXPECT_ERROR(rdm_event_create(all.kernels.device, 2, &event), expected, "2");
  EXPECT_ERROR(rdm_event_create(all.kernels.device, 0x80000000u, &event), expected, "80000000");
  EXPECT_ERROR(rdm_encoder_copy(all.encoder, all.memory, all.memory, 4, 0), expected, "0");
  EXPECT_ERROR(rdm_encoder_copy(all.encoder, all.memory, all.memory, 4, 77), expected, "77");
  EXPECT_ERROR(rdm_stream_get(0, -5, &stream), expected, "-5");
  EXPECT_ERROR(rdm_memory_allocate(all.kernels.device, 0, &pointer), expected, "0");
  EXPECT_ERROR(rdm_stream_record_error(all.stream, RDM_OK, "x"), expected, "RDM_OK");
  EXPECT_ERROR(rdm_stream_record_error(all.stream, RDM_NOT_READY, "x"), expected, "RDM_NOT_READY");
  CHECK(event.bits == 123 && stream.bits == 123 && pointer == &event);
  CHECK_OK(rdm_memory_free(all.kernels.device, NULL));
  CHECK_OK(rdm_host_memory_free(all.kernels.device, NULL));
  check_unchanged(&all);
}

static void registered_stream_is_not_owned(void) {
  bench all = set_up();
  rdm_stream registered;
  rdm_stream again;
  CHECK_OK(rdm_stream_get(0, 4711, &registered));
  expect_watch_driver_calls();
  EXPECT_ERROR(rdm_stream_release(registered), RDM_ERROR_INVALID_ARGUMENT, "4711");
  CHECK_OK(rdm_stream_get(0, 4711, &again));
  CHECK(again.bits == registered.bits);
  check_unchanged(&all);
}

static void event_not_recorded(void) {
  bench all = set_up();
  rdm_event timed[2];
  float milliseconds = 123;
  for (int i = 0; i < 2; i++) CHECK_OK(rdm_event_create(all.kernels.device, RDM_EVENT_TIMING, &timed[i]));
  expect_watch_driver_calls();
  EXPECT_ERROR(rdm_event_wait(all.event, RDM_WAIT_FOREVER), RDM_ERROR_NOT_RECORDED, "never recorded");
  EXPECT_ERROR(rdm_event_wait(all.event, 0), RDM_ERROR_NOT_RECORDED, "never recorded");
  EXPECT_ERROR(rdm_encoder_wait_event(all.encoder, all.event), RDM_ERROR_NOT_RECORDED, "never recorded");
  EXPECT_ERROR(rdm_event_elapsed(timed[0], timed[1], &milliseconds), RDM_ERROR_NOT_RECORDED, "never recorded");
  CHECK(milliseconds == 123);
  CHECK_STATUS(rdm_event_query(all.event), RDM_NOT_READY);
  /* A pooled event that was recorded under an earlier handle is not recorded under the next one. */
  CHECK_OK(rdm_encoder_record_event(all.encoder, all.event));
  CHECK_OK(rdm_event_wait(all.event, RDM_WAIT_FOREVER));
  CHECK_OK(rdm_event_release(all.event));
  CHECK_OK(rdm_event_create(all.kernels.device, RDM_EVENT_DEFAULT, &all.event));
  expect_watch_driver_calls();
  EXPECT_ERROR(rdm_event_wait(all.event, RDM_WAIT_FOREVER), RDM_ERROR_NOT_RECORDED, "never recorded");
  CHECK_STATUS(rdm_event_query(all.event), RDM_NOT_READY);
  check_unchanged(&all);
}

static void event_without_timing(void) {
  bench all = set_up();
  rdm_event untimed;
  float milliseconds = 123;
  CHECK_OK(rdm_event_create(all.kernels.device, RDM_EVENT_DEFAULT, &untimed));
  CHECK_OK(rdm_encoder_record_event(all.encoder, all.event));
  CHECK_OK(rdm_encoder_record_event(all.encoder, untimed));
  CHECK_OK(rdm_event_wait(untimed, RDM_WAIT_FOREVER));
  EXPECT_ERROR(rdm_event_elapsed(all.event, untimed, &milliseconds), RDM_ERROR_INVALID_ARGUMENT, "RDM_EVENT_TIMING");
  CHECK(milliseconds == 123);
  check_unchanged(&all);
}

static void event_of_another_device(void) {
  bench all = set_up();
  expect_watch_driver_calls();
  EXPECT_ERROR(rdm_encoder_record_event(all.other_encoder, all.event), RDM_ERROR_WRONG_DEVICE, "1");
  CHECK_STATUS(rdm_event_query(all.event), RDM_NOT_READY);
  EXPECT_ERROR(rdm_event_wait(all.event, 0), RDM_ERROR_NOT_RECORDED, "never recorded");
  CHECK_OK(rdm_encoder_record_event(all.encoder, all.event));
  CHECK_OK(rdm_event_wait(all.event, RDM_WAIT_FOREVER));
  check_unchanged(&all);
}

static void kernel_of_another_device(void) {
  bench all = set_up();
  expect_watch_driver_calls();
  EXPECT_ERROR(work_submit_step(all.encoder, &all.other_kernels, all.memory, 256), RDM_ERROR_WRONG_DEVICE, "step");
  check_unchanged(&all);
}

static void launch_sizes(void) {
  bench all = set_up();
  float *memory = all.memory;
  uint32_t count = 256;
  void *arguments[] = {&memory, &count};
  rdm_launch_config config = {.struct_size = sizeof config, .grid = {1, 0, 1}, .block = {64, 1, 1}};
  expect_watch_driver_calls();
  EXPECT_ERROR(rdm_encoder_launch(all.encoder, all.kernels.step, &config, arguments, 2), RDM_ERROR_INVALID_ARGUMENT,
               "0");
  config = (rdm_launch_config){.struct_size = sizeof config, .grid = {1, 1, 1}, .block = {64, 1, 0}};
  EXPECT_ERROR(rdm_encoder_launch(all.encoder, all.kernels.step, &config, arguments, 2), RDM_ERROR_INVALID_ARGUMENT,
               "0");
  config.block[2] = 1;
  EXPECT_ERROR(rdm_encoder_launch(all.encoder, all.kernels.step, &config, arguments, 3), RDM_ERROR_INVALID_ARGUMENT,
               "3");
  check_unchanged(&all);
}

static void block_of_2048_threads(void) {
  bench all = set_up();
  float *memory = all.memory;
  uint32_t count = 256;
  void *arguments[] = {&memory, &count};
  rdm_launch_config config = {.struct_size = sizeof config, .grid = {1, 1, 1}, .block = {2048, 1, 1}};
  EXPECT_ERROR(rdm_encoder_launch(all.encoder, all.kernels.step, &config, arguments, 2), RDM_ERROR_LAUNCH, "2048");
  EXPECT_ERROR(rdm_encoder_launch(all.encoder, all.kernels.step, &config, arguments, 2), RDM_ERROR_LAUNCH, "step");
  rdm_error error = {.struct_size = sizeof error};
  CHECK_OK(rdm_last_error(&error));
  CHECK(error.driver_code == 1 || error.driver_code == 9);
  CHECK(strcmp(error.call, "hipModuleLaunchKernel") == 0 && strlen(error.driver_name) > 0);
  CHECK(error.device_index == 0);
  CHECK_OK(rdm_stream_take_error(all.stream, &error));
  check_unchanged(&all);
}

static void source_that_does_not_compile(void) {
  bench all = set_up();
  rdm_module module = {123};
  rdm_module_source source = work_source;
  source.name = "broken";
  source.source = "extern \"C\" __global__ void broken(float *out) { out[0] = no_such_name; }\n";
  rdm_sim_objects before = calls_count_objects();
  uint64_t compiles = 0;
  uint64_t compiles_after = 0;
  CHECK_OK(rdm_module_compile_count(&compiles));
  for (int i = 0; i < 2; i++) {
    EXPECT_ERROR(rdm_module_get(all.kernels.device, &source, &module), RDM_ERROR_COMPILE, "no_such_name");
    EXPECT_ERROR(rdm_module_get(all.kernels.device, &source, &module), RDM_ERROR_COMPILE, "broken");
  }
  CHECK_OK(rdm_module_compile_count(&compiles_after));
  CHECK_THAT(compiles_after == compiles + 4, "a failed compile was kept: %llu compiles",
             (unsigned long long)(compiles_after - compiles));
  rdm_sim_objects after = calls_count_objects();
  CHECK(memcmp(&before, &after, sizeof before) == 0);
  CHECK(module.bits == 123);
  check_unchanged(&all);
}

static void code_that_is_none(void) {
  bench all = set_up();
  rdm_module module = {123};
  static const char garbage[] = "this is no code object";
  for (int i = 0; i < 3; i++) {
    rdm_status status = rdm_module_load(all.kernels.device, "garbage", garbage, sizeof garbage, &module);
    CHECK_STATUS(status, RDM_ERROR_DRIVER);
    CHECK_THAT(strstr(rdm_last_error_message(), "garbage") != NULL, "%s", rdm_last_error_message());
    CHECK_OK(work_on_new_stream(0, 1));
  }
  CHECK(module.bits == 123);
  check_unchanged(&all);
}

static void kernel_that_is_not_there(void) {
  bench all = set_up();
  rdm_kernel kernel = {123};
  for (int i = 0; i < 3; i++) {
    EXPECT_ERROR(rdm_module_get_kernel(all.kernels.module, "no_such_kernel", &kernel), RDM_ERROR_KERNEL_NOT_FOUND,
                 "no_such_kernel");
  }
  CHECK(kernel.bits == 123);
  check_unchanged(&all);
}

const test_case argument_tests[] = {
    {.name = "null_out_pointers", .function = null_out_pointers},
    {.name = "null_inputs", .function = null_inputs},
    {.name = "struct_size_zero", .function = struct_size_zero},
    {.name = "unknown_flags_and_kinds", .function = unknown_flags_and_kinds},
    {.name = "registered_stream_is_not_owned", .function = registered_stream_is_not_owned},
    {.name = "event_not_recorded", .function = event_not_recorded},
    {.name = "event_without_timing", .function = event_without_timing},
    {.name = "event_of_another_device", .function = event_of_another_device},
    {.name = "kernel_of_another_device", .function = kernel_of_another_device},
    {.name = "launch_sizes", .function = launch_sizes},
    {.name = "block_of_2048_threads", .function = block_of_2048_threads},
    {.name = "source_that_does_not_compile", .function = source_that_does_not_compile},
    {.name = "code_that_is_none", .function = code_that_is_none},
    {.name = "kernel_that_is_not_there", .function = kernel_that_is_not_there},
    {0},
};
