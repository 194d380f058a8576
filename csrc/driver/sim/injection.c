#include "driver/sim/injection.h"

#include "clock.h"
#include "driver/sim/call_name.h"
#include "driver/sim/state.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef struct injection {
  rdm__call call;
  /* The calls that match it are counted from 1; those from `first` on, `times` of them, are changed. */
  uint64_t first;
  uint64_t times;
  uint64_t seen;
  int error;
  uint64_t stall_ns;
} injection;

struct rdm__sim_injections {
  pthread_mutex_t lock;
  /* The number of items, so that a call takes no lock while there are none. */
  atomic_size_t count;
  size_t capacity;
  injection *items;
  uint64_t fired;
};

rdm__sim_injections *rdm__sim_injections_create(void) {
  rdm__sim_injections *injections = calloc(1, sizeof *injections);
  if (injections != NULL) pthread_mutex_init(&injections->lock, NULL);
  return injections;
}

void rdm__sim_injections_destroy(rdm__sim_injections *injections) {
  if (injections == NULL) return;
  pthread_mutex_destroy(&injections->lock);
  free(injections->items);
  free(injections);
}

bool rdm__sim_injections_add(rdm__sim_injections *injections, rdm__call call, uint64_t nth, uint64_t times, int error,
                             uint64_t stall_ns) {
  bool added = true;
  pthread_mutex_lock(&injections->lock);
  size_t count = atomic_load_explicit(&injections->count, memory_order_relaxed);
  if (count == injections->capacity) {
    size_t capacity = count == 0 ? 8 : count * 2;
    injection *items = realloc(injections->items, capacity * sizeof *items);
    added = items != NULL;
    if (added) {
      injections->items = items;
      injections->capacity = capacity;
    }
  }
  if (added) {
    injections->items[count] =
        (injection){.call = call, .first = nth, .times = times, .error = error, .stall_ns = stall_ns};
    atomic_store_explicit(&injections->count, count + 1, memory_order_release);
  }
  pthread_mutex_unlock(&injections->lock);
  return added;
}

uint64_t rdm__sim_injections_clear(rdm__sim_injections *injections) {
  pthread_mutex_lock(&injections->lock);
  uint64_t fired = injections->fired;
  injections->fired = 0;
  atomic_store_explicit(&injections->count, 0, memory_order_release);
  pthread_mutex_unlock(&injections->lock);
  return fired;
}

static void stall(uint64_t ns) {
  uint64_t deadline = rdm__deadline_ns(rdm__now_ns(), ns);
  struct timespec until = rdm__timespec(deadline == UINT64_MAX ? (uint64_t)INT64_MAX : deadline);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
  }
}

int rdm__sim_injection_apply(rdm__call call) {
  rdm__sim_injections *injections = rdm__sim_state()->injections;
  if (atomic_load_explicit(&injections->count, memory_order_acquire) == 0) return 0;
  injection chosen = {.error = 0};
  bool found = false;
  pthread_mutex_lock(&injections->lock);
  size_t count = atomic_load_explicit(&injections->count, memory_order_relaxed);
  for (size_t index = 0; index < count; index++) {
    injection *item = &injections->items[index];
    if (item->call != RDM__CALL_COUNT && item->call != call) continue;
    item->seen++;
    /* The one set first wins, but every one counts the call. */
    if (found || item->seen < item->first) continue;
    if (item->times != 0 && item->seen - item->first >= item->times) continue;
    chosen = *item;
    found = true;
  }
  if (found) injections->fired++;
  pthread_mutex_unlock(&injections->lock);
  if (!found) return 0;
  if (chosen.stall_ns != 0) stall(chosen.stall_ns);
  return chosen.error;
}

static bool parse_number(const char **text, char end, uint64_t *out_value) {
  char *stop = NULL;
  if (**text < '0' || **text > '9') return false;
  errno = 0;
  unsigned long long value = strtoull(*text, &stop, 10);
  if (errno != 0 || (*stop != end && !(end == ',' && *stop == '\0'))) return false;
  /* A comma stands between items. */
  if (*stop == ',' && stop[1] == '\0') return false;
  *out_value = value;
  *text = *stop == '\0' ? stop : stop + 1;
  return true;
}

bool rdm__sim_injections_parse(rdm__sim_injections *injections, const char *text) {
  while (*text != '\0') {
    char name[64];
    const char *colon = strchr(text, ':');
    if (colon == NULL || (size_t)(colon - text) >= sizeof name) return false;
    memcpy(name, text, (size_t)(colon - text));
    name[colon - text] = '\0';
    rdm__call call = strcmp(name, "*") == 0 ? RDM__CALL_COUNT : rdm__sim_call_by_name(name);
    if (call == RDM__CALL_COUNT && strcmp(name, "*") != 0) return false;
    text = colon + 1;
    uint64_t nth;
    uint64_t times;
    uint64_t error;
    uint64_t stall_ns;
    if (!parse_number(&text, ':', &nth) || !parse_number(&text, ':', &times) || !parse_number(&text, ':', &error) ||
        !parse_number(&text, ',', &stall_ns) || nth == 0 || error > INT32_MAX) {
      return false;
    }
    if (!rdm__sim_injections_add(injections, call, nth, times, (int)error, stall_ns)) return false;
  }
  return true;
}
