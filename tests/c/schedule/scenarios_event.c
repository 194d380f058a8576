/* Events and their pool. */
#include "driver.h"
#include "scenario.h"

static rdm_device device;
static rdm_event event;
static rdm_status statuses[MOST_BODIES];
/* The driver events that a thread has. */
static void *in_use[8];

static void prepare(void) {
  rdm_set_log_handler(NULL, NULL, RDM_LOG_ERROR);
  rdm_device_get(1, &device);
}

static void prepare_event(void) {
  prepare();
  rdm_event_create(device, RDM_EVENT_DEFAULT, &event);
}

static void prepare_pooled(void) {
  prepare_event();
  rdm_event_release(event);
}

static void mark(void *native) {
  schedule_driver_point("an event is used", in_use);
  int free_place = -1;
  for (int i = 0; i < 8; i++) {
    EXPECT(in_use[i] != native);
    if (in_use[i] == NULL) free_place = i;
  }
  EXPECT(free_place >= 0);
  in_use[free_place] = native;
}

static void unmark(const void *native) {
  schedule_driver_point("an event is used no more", in_use);
  for (int i = 0; i < 8; i++) {
    if (in_use[i] == native) in_use[i] = NULL;
  }
}

static void use_event(uint32_t flags) {
  rdm_event mine = {0};
  void *native = NULL;
  EXPECT_STATUS(RDM_OK, rdm_event_create(device, flags, &mine));
  EXPECT_STATUS(RDM_OK, rdm_event_get_native(mine, &native));
  mark(native);
  EXPECT(rdm_event_query(mine) == RDM_NOT_READY);
  unmark(native);
  EXPECT_STATUS(RDM_OK, rdm_event_release(mine));
  EXPECT(rdm_event_release(mine) == RDM_ERROR_STALE_HANDLE);
}

static void use_one(void) {
  use_event(RDM_EVENT_DEFAULT);
}

static void use_two(void) {
  use_event(RDM_EVENT_DEFAULT);
  use_event(RDM_EVENT_TIMING);
}

static void check_few_events(void) {
  EXPECT(driver_count(RDM__CALL_event_create) <= 4);
  EXPECT(driver_count(RDM__CALL_event_destroy) == 0);
}

/* What threads that have ended had is there for the next: no event is made for it. */
static void check_given_back(void) {
  int made = driver_count(RDM__CALL_event_create);
  EXPECT(made <= 3);
  rdm_event taken[3];
  for (int i = 0; i < made; i++) EXPECT_STATUS(RDM_OK, rdm_event_create(device, RDM_EVENT_DEFAULT, &taken[i]));
  EXPECT(driver_count(RDM__CALL_event_create) == made);
}

static void release_first(void) {
  statuses[0] = rdm_event_release(event);
}

static void release_second(void) {
  statuses[1] = rdm_event_release(event);
}

static void check_released_once(void) {
  EXPECT((statuses[0] == RDM_OK) != (statuses[1] == RDM_OK));
  EXPECT(statuses[0] == RDM_OK || statuses[0] == RDM_ERROR_STALE_HANDLE);
  EXPECT(statuses[1] == RDM_OK || statuses[1] == RDM_ERROR_STALE_HANDLE);
}

static void query(void) {
  rdm_status status = rdm_event_query(event);
  EXPECT(status == RDM_NOT_READY || status == RDM_ERROR_STALE_HANDLE);
}

static void release_and_reuse(void) {
  EXPECT_STATUS(RDM_OK, rdm_event_release(event));
  use_one();
}

const scenario event_scenarios[] = {
    {"event_pool", prepare_pooled, {use_one, use_two}, check_few_events, SCENARIO_IS_LARGE},
    {"event_pool_takes_back", prepare_pooled, {use_one, use_one}, check_given_back, 0},
    {"event_released_twice", prepare_event, {release_first, release_second}, check_released_once, 0},
    {"event_used_and_released", prepare_event, {query, release_and_reuse}, NULL, 0},
    {.name = NULL},
};
