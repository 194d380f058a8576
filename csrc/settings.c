#include "settings.h"

#include "clock.h"
#include "environment.h"
#include "log.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint64_t watchdog_ns = UINT64_MAX;
static bool waits_block;

static void read_watchdog(void) {
  const char *text = getenv("RDM_WATCHDOG_SECS");
  if (text == NULL) return;
  uint64_t seconds = 0;
  if (!rdm__parse_whole_number(text, &seconds)) {
    rdm__log(RDM_LOG_WARNING,
             "RDM_WATCHDOG_SECS is \"%s\", which is not a whole number of seconds; there is no watchdog", text);
    return;
  }
  if (seconds == 0) return;
  watchdog_ns = seconds > UINT64_MAX / RDM__NS_PER_SECOND ? UINT64_MAX : seconds * RDM__NS_PER_SECOND;
}

static void read_blocking(void) {
  const char *text = getenv("RDM_EVENT_BLOCKING");
  if (text == NULL) return;
  uint64_t value = 0;
  if (!rdm__parse_whole_number(text, &value) || value > 1) {
    rdm__log(RDM_LOG_WARNING, "RDM_EVENT_BLOCKING is \"%s\", which is neither 0 nor 1; waits spin before they sleep",
             text);
    return;
  }
  waits_block = value == 1;
}

static void read_all(void) {
  read_watchdog();
  read_blocking();
}

uint64_t rdm__watchdog_ns(void) {
  pthread_once(&once, read_all);
  return watchdog_ns;
}

bool rdm__waits_block(void) {
  pthread_once(&once, read_all);
  return waits_block;
}
