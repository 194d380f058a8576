#include "driver/sim/call_log.h"

#include "driver/sim/state.h"

#include <pthread.h>
#include <stdlib.h>

enum { KEPT_CALLS = 65536 };

struct rdm__sim_call_log {
  pthread_mutex_t lock;
  uint64_t total;
  uint64_t counts[RDM__CALL_COUNT];
  rdm_sim_call calls[KEPT_CALLS];
};

rdm__sim_call_log *rdm__sim_call_log_create(void) {
  rdm__sim_call_log *log = calloc(1, sizeof *log);
  if (log != NULL) pthread_mutex_init(&log->lock, NULL);
  return log;
}

uint64_t rdm__sim_call_log_add(rdm__call call, const rdm_sim_call *entry) {
  rdm__sim_call_log *log = rdm__sim_state()->calls;
  pthread_mutex_lock(&log->lock);
  uint64_t number = log->total++;
  log->counts[call]++;
  log->calls[number % KEPT_CALLS] = *entry;
  pthread_mutex_unlock(&log->lock);
  return number;
}

void rdm__sim_call_log_finish(uint64_t number, int result, uint64_t handle) {
  rdm__sim_call_log *log = rdm__sim_state()->calls;
  pthread_mutex_lock(&log->lock);
  if (log->total - number <= KEPT_CALLS) {
    rdm_sim_call *call = &log->calls[number % KEPT_CALLS];
    call->result = result;
    if (handle != 0) call->handle = handle;
  }
  pthread_mutex_unlock(&log->lock);
}

size_t rdm__sim_call_log_read(uint64_t first, rdm_sim_call *out_calls, size_t capacity) {
  rdm__sim_call_log *log = rdm__sim_state()->calls;
  size_t count = 0;
  pthread_mutex_lock(&log->lock);
  if (log->total > KEPT_CALLS && first < log->total - KEPT_CALLS) first = log->total - KEPT_CALLS;
  for (uint64_t number = first; number < log->total && count < capacity; number++) {
    out_calls[count++] = log->calls[number % KEPT_CALLS];
  }
  pthread_mutex_unlock(&log->lock);
  return count;
}

uint64_t rdm__sim_call_log_count(rdm__call call) {
  rdm__sim_call_log *log = rdm__sim_state()->calls;
  pthread_mutex_lock(&log->lock);
  uint64_t count = call == RDM__CALL_COUNT ? log->total : log->counts[call];
  pthread_mutex_unlock(&log->lock);
  return count;
}
