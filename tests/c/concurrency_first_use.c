/* The first calls of a process, and the first use of each device, from many threads. */
#include "calls.h"
#include "concurrency.h"
#include "log_lines.h"
#include "work.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_barrier_t barrier;

/* ---- The runtime is initialized once --------------------------------------------------------------------------- */

enum { ENTRANCE_COUNT = 12, FIRST_THREADS = 64 };

/* Enters the library by one of the functions that load the driver. */
static rdm_status enter(unsigned entrance) {
  union {
    rdm_driver_info info;
    rdm_device device;
    rdm_stream stream;
    rdm_thread_local_stream thread_local_stream;
    rdm_sim_objects objects;
    uint64_t number;
    int32_t index;
  } out;
  memset(&out, 0, sizeof out);
  switch (entrance) {
    case 0:
      out.info.struct_size = sizeof out.info;
      return rdm_get_driver_info(&out.info);
    case 1:
      return rdm_device_count(&out.index);
    case 2:
      return rdm_device_get(0, &out.device);
    case 3:
      return rdm_device_get(1, &out.device);
    case 4:
      return rdm_stream_create(0, &out.stream);
    case 5:
      return rdm_stream_get(1, 3, &out.stream);
    case 6:
      return rdm_thread_local_stream_create(0, &out.thread_local_stream);
    case 7:
      return rdm_thread_local_stream_get_shared(1, &out.thread_local_stream);
    case 8:
      return rdm_device_construction_count(0, &out.number);
    case 9:
      return rdm_sim_call_count(NULL, &out.number);
    case 10:
      return rdm_clear_encoders();
    default:
      out.objects.struct_size = sizeof out.objects;
      return rdm_sim_count_objects(&out.objects);
  }
}

static void enter_with_the_others(unsigned number) {
  pthread_barrier_wait(&barrier);
  CHECK_OK(enter(number % ENTRANCE_COUNT));
}

/* Until the last call of loading, the log holds calls of one thread alone, and the first one is hipInit. */
static void check_one_initialization(uint64_t stall_ns) {
  call_list list = calls_read(0);
  CHECK(list.count > 0 && call_is(&list.calls[0], "hipInit"));
  uint64_t initialized_ns = list.calls[0].time_ns + stall_ns;
  size_t count_calls = 0;
  for (size_t i = 0; i < list.count; i++) {
    const rdm_sim_call *call = &list.calls[i];
    if (i > 0) CHECK_THAT(!call_is(call, "hipInit"), "call %zu of the log is a second hipInit", i);
    if (i > 0) CHECK_THAT(call->time_ns >= initialized_ns, "%s began before hipInit had returned", call->entry_point);
    count_calls += call_is(call, "hipGetDeviceCount");
    if (count_calls == 0) CHECK_THAT(call->thread == list.calls[0].thread, "%s in between", call->entry_point);
  }
  CHECK_THAT(count_calls == 1, "the devices were counted %zu times", count_calls);
  calls_free(&list);
}

static void field_log_01_first_calls_of_64_threads_initialize_once(void) {
  extern char **environ;
  size_t entries = 0;
  /* hipInit takes 50 ms, which leaves every thread the time to come in. */
  setenv("RDM_SIM_INJECT", "hipInit:1:1:0:50000000", 1);
  while (environ[entries] != NULL) entries++;
  char **before = malloc((entries + 1) * sizeof *before);
  CHECK(before != NULL);
  memcpy(before, environ, (entries + 1) * sizeof *before);
  char **environment = environ;
  test_use_sim(2);
  pthread_barrier_init(&barrier, NULL, FIRST_THREADS);
  test_run_threads(FIRST_THREADS, enter_with_the_others);
  check_one_initialization(50 * TEST_MILLISECOND);
  CHECK_THAT(environ == environment && memcmp(before, environ, (entries + 1) * sizeof *before) == 0,
             "the library changed the environment");
  free(before);
  CHECK_OK(work_on_new_stream(0, 1));
}

/* ---- Only the devices asked for -------------------------------------------------------------------------------- */

static void field_log_02_counting_devices_touches_none(void) {
  test_use_sim(4);
  int32_t count = 0;
  CHECK(rdm_version() == RDM_VERSION && strlen(rdm_version_string()) > 0);
  CHECK_OK(rdm_device_count(&count));
  CHECK(count == 4);
  rdm_driver_info info = {.struct_size = sizeof info};
  CHECK_OK(rdm_get_driver_info(&info));
  rdm_thread_local_stream stream;
  CHECK_OK(rdm_thread_local_stream_get_shared(3, &stream));
  CHECK_OK(rdm_thread_local_stream_create(2, &stream));
  CHECK_OK(rdm_clear_encoders());
  call_list list = calls_read(0);
  for (size_t i = 0; i < list.count; i++) {
    CHECK_THAT(call_touches_no_device(&list.calls[i]), "%s was called", list.calls[i].entry_point);
  }
  calls_free(&list);
}

static void field_log_02_asking_for_device_1_names_no_other(void) {
  test_use_sim(4);
  log_lines_capture();
  CHECK_OK(work_on_new_stream(1, 3));
  rdm_device device;
  CHECK_OK(rdm_device_get(1, &device));
  CHECK_OK(rdm_device_synchronize(device, RDM_WAIT_FOREVER));
  CHECK_OK(rdm_clear_encoders());
  CHECK_OK(work_on_new_stream(1, 1));
  call_list list = calls_read(0);
  calls_check_only_device(&list, 1);
  calls_free(&list);
  CHECK(log_lines_with("bound HIP device 1:") == 1 && log_lines_with("bound HIP device") == 1);
}

static void *use_device_3(void *argument) {
  (void)argument;
  CHECK_OK(work_on_new_stream(3, 1));
  return NULL;
}

/* Evaluates on device 1 and on a device built before, while a first use of device 3 stands still in a driver call. */
static void check_others_go_on(const char *stalled_call, uint64_t expected_constructions) {
  const uint64_t stall_ns = 3 * TEST_SECOND;
  test_use_sim(4);
  CHECK_OK(work_on_new_stream(0, 1));
  CHECK_OK(rdm_sim_inject(stalled_call, 1, 1, 0, stall_ns));
  uint64_t start = test_now_ns();
  pthread_t thread = test_start_thread(use_device_3, NULL);
  calls_wait_until_inside(stalled_call, TEST_SECOND);
  rdm_device device;
  CHECK_OK(rdm_device_get(0, &device));
  CHECK_OK(work_on_new_stream(0, 1));
  CHECK_THAT(test_now_ns() - start < stall_ns / 2, "device 0, built before, waited for device 3");
  uint64_t constructions = 99;
  CHECK_OK(rdm_device_construction_count(3, &constructions));
  CHECK(constructions == expected_constructions);
  uint64_t asked = test_now_ns();
  CHECK_OK(rdm_device_get(1, &device));
  CHECK_THAT(test_now_ns() - asked < TEST_SECOND, "the first use of device 1 waited %.1f s for device 3",
             (double)(test_now_ns() - asked) * 1e-9);
  CHECK_OK(work_on_new_stream(1, 1));
  CHECK_THAT(test_now_ns() - start < stall_ns, "device 1 waited for device 3");
  test_join_thread(thread);
}

static void a_device_stuck_in_its_construction_holds_up_no_other(void) {
  check_others_go_on("hipGetDeviceProperties", 0);
}

static void a_device_stuck_in_set_device_holds_up_no_other(void) {
  check_others_go_on("hipSetDeviceFlags", 0);
}

static void a_device_stuck_in_stream_creation_holds_up_no_other(void) {
  check_others_go_on("hipStreamCreateWithFlags", 1);
}

/* ---- One construction for each index --------------------------------------------------------------------------- */

enum { EVERY_DEVICES = 8, EVERY_THREADS = 16 };
static _Atomic(uint64_t) first_bits[EVERY_DEVICES];

static void use_every_device(unsigned number) {
  uint64_t state = number + 1;
  pthread_barrier_wait(&barrier);
  for (unsigned i = 0; i < EVERY_DEVICES; i++) {
    int32_t index = (int32_t)((number * 3 + i * (number % 2 == 0 ? 1 : 7)) % EVERY_DEVICES);
    rdm_device device;
    CHECK_OK(rdm_device_get(index, &device));
    uint64_t expected = 0;
    if (!atomic_compare_exchange_strong(&first_bits[index], &expected, device.bits)) CHECK(expected == device.bits);
    if (test_random(&state) % 2 == 0) CHECK_OK(work_on_new_stream(index, 1));
  }
}

static void check_each_was_constructed_once(void) {
  for (int32_t i = 0; i < EVERY_DEVICES; i++) {
    uint64_t constructions = 0;
    char line[64];
    CHECK_OK(rdm_device_construction_count(i, &constructions));
    CHECK_THAT(constructions == 1, "device %d was constructed %llu times", i, (unsigned long long)constructions);
    snprintf(line, sizeof line, "bound HIP device %d:", i);
    CHECK_THAT(log_lines_with(line) == 1, "%u lines on device %d", log_lines_with(line), i);
  }
}

static void every_device_first_used_by_every_thread_is_built_once(void) {
  test_use_sim(EVERY_DEVICES);
  log_lines_capture();
  pthread_barrier_init(&barrier, NULL, EVERY_THREADS);
  test_run_threads(EVERY_THREADS, use_every_device);
  check_each_was_constructed_once();
  call_list list = calls_read(0);
  calls_check_current_device(&list);
  calls_free(&list);
}

/* ---- A construction that fails --------------------------------------------------------------------------------- */

static void a_failed_construction_leaves_nothing_and_is_tried_again(void) {
  test_use_sim(2);
  log_lines_capture();
  static const char *const calls[] = {"hipSetDevice", "hipGetDeviceProperties"};
  for (int i = 0; i < 2; i++) {
    rdm_device device = {123};
    CHECK_OK(rdm_sim_inject(calls[i], 1, 1, 2, 0));
    rdm_status status = rdm_device_get(1, &device);
    CHECK_THAT(status == RDM_ERROR_OUT_OF_MEMORY || status == RDM_ERROR_DRIVER, "%s", rdm_status_name(status));
    CHECK(device.bits == 123);
    rdm_error error = {.struct_size = sizeof error};
    CHECK_OK(rdm_last_error(&error));
    CHECK_THAT(error.driver_code == 2 && error.device_index == 1 && strcmp(error.call, calls[i]) == 0,
               "code %d, device %d, call %s", error.driver_code, error.device_index, error.call);
    uint64_t constructions = 1;
    uint64_t fired = 0;
    CHECK_OK(rdm_device_construction_count(1, &constructions));
    CHECK_OK(rdm_sim_clear_injections(&fired));
    CHECK(constructions == 0 && fired == 1 && log_lines_with("bound HIP device") == 0);
  }
  CHECK_OK(work_on_new_stream(1, 1));
  CHECK(log_lines_with("bound HIP device 1:") == 1);
}

static void get_device_until_it_works(unsigned number) {
  (void)number;
  rdm_device device;
  pthread_barrier_wait(&barrier);
  for (int failures = 0; rdm_device_get(0, &device) != RDM_OK; failures++) CHECK(failures < 5);
  uint64_t expected = 0;
  if (!atomic_compare_exchange_strong(&first_bits[0], &expected, device.bits)) CHECK(expected == device.bits);
}

static void failed_constructions_race_and_one_succeeds(void) {
  test_use_sim(1);
  log_lines_capture();
  CHECK_OK(rdm_sim_inject("hipGetDeviceProperties", 1, 5, 1, 0));
  pthread_barrier_init(&barrier, NULL, EVERY_THREADS);
  test_run_threads(EVERY_THREADS, get_device_until_it_works);
  uint64_t constructions = 0;
  CHECK_OK(rdm_device_construction_count(0, &constructions));
  CHECK(constructions == 1 && log_lines_with("bound HIP device 0:") == 1);
}

static void flags_that_are_refused_give_one_line(void) {
  test_use_sim(2);
  log_lines_capture();
  CHECK_OK(rdm_sim_inject("hipSetDeviceFlags", 1, 1, 708, 0));
  CHECK_OK(work_on_new_stream(1, 1));
  CHECK_OK(work_on_new_stream(1, 1));
  CHECK(calls_made("hipSetDeviceFlags") == 1);
  CHECK(log_lines_with("hipSetDeviceFlags") == 1 && log_lines_with("708") == 1);
  CHECK(log_lines_with("bound HIP device 1:") == 1);
}

/* The runtime's count is trusted whatever the masks say; an error about an index names those that are set. */
static int use_under_a_mask(void) {
  static const char *const variables[] = {"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"};
  const char *mask = getenv("TEST_MASK");
  const char *count_text = getenv("TEST_COUNT");
  CHECK(mask != NULL && count_text != NULL);
  int32_t count = atoi(count_text);
  rdm_device device;
  uint64_t constructed = 1;
  char named[128];
  setenv("RDM_SIM_DEVICES", count_text, 1);
  for (int i = 0; i < 3; i++) setenv(variables[i], mask, 1);
  int32_t counted = -1;
  CHECK_OK(rdm_device_count(&counted));
  CHECK(counted == count);
  uint64_t before = calls_made(NULL);
  CHECK_STATUS(rdm_device_get(count, &device), count == 0 ? RDM_ERROR_NO_DEVICE : RDM_ERROR_INVALID_DEVICE);
  for (int i = 0; i < 3; i++) {
    snprintf(named, sizeof named, "%s=\"%s\"", variables[i], mask);
    CHECK_THAT(strstr(rdm_last_error_message(), named) != NULL, "\"%s\" does not name %s", rdm_last_error_message(),
               named);
  }
  CHECK(calls_made(NULL) == before);
  /* A change after the first use changes nothing but the text. */
  setenv("HIP_VISIBLE_DEVICES", "changed", 1);
  CHECK_OK(rdm_device_count(&counted));
  CHECK(counted == count);
  if (count > 0) {
    CHECK_OK(rdm_device_get(count - 1, &device));
    CHECK_OK(rdm_device_construction_count(count - 1, &constructed));
  }
  CHECK(constructed == 1);
  return 0;
}

static void field_log_26_masks_are_the_runtimes_and_errors_name_them(void) {
  static const char *const masks[] = {"", "-1", "99", "0,99,1", "0,0", "GPU-0123456789abcdef"};
  for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++) {
    for (int count = 0; count <= 2; count += 2) {
      char mask[64];
      char count_text[32];
      snprintf(mask, sizeof mask, "TEST_MASK=%s", masks[i]);
      snprintf(count_text, sizeof count_text, "TEST_COUNT=%d", count);
      const char *environment[] = {"RDM_DRIVER=sim", mask, count_text, NULL};
      process_outcome outcome;
      test_run_body("use_under_a_mask", environment, 20, &outcome);
      CHECK_THAT(outcome.exit_code == 0, "mask \"%s\", %d devices: %s", masks[i], count, outcome.standard_error);
    }
  }
}

const test_body first_use_bodies[] = {{"use_under_a_mask", use_under_a_mask}, {0}};

const test_case first_use_tests[] = {
    {.name = "field_log_26_masks_are_the_runtimes_and_errors_name_them",
     .function = field_log_26_masks_are_the_runtimes_and_errors_name_them},
    {.name = "field_log_01_first_calls_of_64_threads_initialize_once",
     .function = field_log_01_first_calls_of_64_threads_initialize_once},
    {.name = "field_log_02_counting_devices_touches_none", .function = field_log_02_counting_devices_touches_none},
    {.name = "field_log_02_asking_for_device_1_names_no_other",
     .function = field_log_02_asking_for_device_1_names_no_other},
    {.name = "a_device_stuck_in_its_construction_holds_up_no_other",
     .function = a_device_stuck_in_its_construction_holds_up_no_other},
    {.name = "a_device_stuck_in_set_device_holds_up_no_other",
     .function = a_device_stuck_in_set_device_holds_up_no_other},
    {.name = "a_device_stuck_in_stream_creation_holds_up_no_other",
     .function = a_device_stuck_in_stream_creation_holds_up_no_other},
    {.name = "every_device_first_used_by_every_thread_is_built_once",
     .function = every_device_first_used_by_every_thread_is_built_once},
    {.name = "a_failed_construction_leaves_nothing_and_is_tried_again",
     .function = a_failed_construction_leaves_nothing_and_is_tried_again},
    {.name = "failed_constructions_race_and_one_succeeds", .function = failed_constructions_race_and_one_succeeds},
    {.name = "flags_that_are_refused_give_one_line", .function = flags_that_are_refused_give_one_line},
    {0},
};
