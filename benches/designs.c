#include "designs.h"

#include <stdio.h>
#include <time.h>

static const rdm__bench_design *const designs[] = {
    &rdm__bench_device_lookup,
    &rdm__bench_encoder_lookup,
    &rdm__bench_event_pair,
    &rdm__bench_event_create,
    &rdm__bench_event_release,
    &rdm__bench_event_record,
    &rdm__bench_launch,
    &rdm__bench_make_current,
    &rdm__bench_thread_local,
    &rdm__bench_eager_vector,
    &rdm__bench_mutex_map,
    &rdm__bench_rwlock_array,
    &rdm__bench_shared_mutex_map,
    &rdm__bench_two_locks,
    &rdm__bench_driver_event_pair,
    &rdm__bench_driver_record,
    &rdm__bench_event_locked_pool,
    &rdm__bench_event_first_thread,
    &rdm__bench_driver_launch,
    &rdm__bench_driver_set_device,
    &rdm__bench_driver_evaluation,
    &rdm__bench_graph,
    &rdm__bench_driver_graph,
};

const rdm__bench_design *rdm__bench_design_at(size_t number) {
  return number < sizeof designs / sizeof designs[0] ? designs[number] : NULL;
}

void rdm__bench_check(rdm__bench_state *state, rdm_status status, const char *what) {
  if (status == RDM_OK || state->error[0] != '\0') return;
  snprintf(state->error, sizeof state->error, "%s: %.400s", what, rdm_last_error_message());
}

void rdm__bench_check_raw(rdm__bench_state *state, int error, const char *what) {
  if (error == 0 || state->error[0] != '\0') return;
  snprintf(state->error, sizeof state->error, "%s: the driver's error %d", what, error);
}

uint64_t rdm__bench_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
