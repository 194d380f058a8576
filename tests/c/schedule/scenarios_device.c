/* First uses of devices. */
#include "driver.h"
#include "scenario.h"

#include <string.h>

static rdm_status statuses[MOST_BODIES];
static rdm_device devices[MOST_BODIES];
static int bound_lines[DRIVER_DEVICES];

static void count_line(rdm_log_level level, const char *message, void *user_data) {
  (void)level, (void)user_data;
  static const char *const lines[DRIVER_DEVICES] = {"bound HIP device 0", "bound HIP device 1", "bound HIP device 2",
                                                    "bound HIP device 3"};
  for (int i = 0; i < DRIVER_DEVICES; i++) {
    if (strncmp(message, lines[i], strlen(lines[i])) == 0) bound_lines[i]++;
  }
}

static void prepare_unloaded(void) {
  rdm_set_log_handler(count_line, NULL, RDM_LOG_INFO);
}

static void prepare_none(void) {
  int32_t count = 0;
  prepare_unloaded();
  rdm_device_count(&count);
}

/* With the tables there that the process's first device makes, so that a schedule is short. */
static void prepare(void) {
  rdm_device ready = {0};
  prepare_none();
  rdm_device_get(3, &ready);
}

static void prepare_failure(void) {
  prepare();
  driver_fail(RDM__CALL_get_device_properties, 1, RDM_HIP_OUT_OF_MEMORY);
}

static void get(int thread, int32_t index) {
  statuses[thread] = rdm_device_get(index, &devices[thread]);
}

static void get_0_first(void) {
  get(0, 0);
}

static void get_0_second(void) {
  get(1, 0);
}

static void get_0_third(void) {
  get(2, 0);
}

static void get_1(void) {
  get(1, 1);
}

static void check_device(int index, int wanted) {
  uint64_t count = 0;
  EXPECT_STATUS(RDM_OK, rdm_device_construction_count(index, &count));
  EXPECT((int)count == wanted);
  EXPECT(driver_constructions(index) == wanted);
  EXPECT(bound_lines[index] == wanted);
}

static void check_one(void) {
  EXPECT(statuses[0] == RDM_OK && statuses[1] == RDM_OK && statuses[2] == RDM_OK);
  EXPECT(devices[0].bits == devices[1].bits);
  EXPECT(devices[2].bits == 0 || devices[2].bits == devices[0].bits);
  check_device(0, 1);
  check_device(1, 0);
}

static void check_two(void) {
  EXPECT(statuses[0] == RDM_OK && statuses[1] == RDM_OK);
  EXPECT(devices[0].bits != devices[1].bits);
  check_device(0, 1);
  check_device(1, 1);
}

/* Looks while another thread builds: either is not there yet, and the call builds or waits, or it is whole. */
static void look_at_0(void) {
  for (int i = 0; i < 2; i++) {
    rdm_device_info info = {.struct_size = sizeof info};
    get(1, 0);
    EXPECT(statuses[1] == RDM_OK);
    EXPECT_STATUS(RDM_OK, rdm_device_get_info(devices[1], &info));
    EXPECT(strcmp(info.name, "device 0") == 0);
  }
}

static void get_again(int thread) {
  get(thread, 0);
  if (statuses[thread] == RDM_OK) return;
  EXPECT(statuses[thread] == RDM_ERROR_OUT_OF_MEMORY);
  get(thread, 0);
}

static void get_again_first(void) {
  get_again(0);
}

static void get_again_second(void) {
  get_again(1);
}

static void clear(void) {
  EXPECT_STATUS(RDM_OK, rdm_clear_encoders());
}

static void check_0(void) {
  check_device(0, 1);
}

const scenario device_scenarios[] = {
    {"device_one_index", prepare, {get_0_first, get_0_second}, check_one, 0},
    {"device_two_indices", prepare, {get_0_first, get_1}, check_two, 0},
    {"device_first_insert", prepare_none, {get_0_first, look_at_0}, check_one, 0},
    {"device_lookup_and_insert", prepare, {get_0_first, look_at_0}, check_one, 0},
    {"device_failure_and_retry", prepare_failure, {get_again_first, get_again_second}, check_one, 0},
    {"device_each_and_insert", prepare, {get_0_first, clear}, check_0, 0},
    {"device_load_and_first_use", prepare_unloaded, {get_0_first, get_0_second}, check_one, SCENARIO_IS_LARGE},
    {"device_three_threads", prepare, {get_0_first, get_0_second, get_0_third}, check_one, 0},
    {.name = NULL},
};
