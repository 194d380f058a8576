/* The settings of host waits, read anew for each input. */
#include "settings.c"

#include "fuzz.h"
#include "fuzz_environment.h"

void environment_fuzz_watchdog(const char *text) {
  setenv("RDM_WATCHDOG_SECS", text, 1);
  watchdog_ns = UINT64_MAX;
  environment_take_log_lines();
  read_watchdog();
  unsigned lines = environment_take_log_lines();
  unsetenv("RDM_WATCHDOG_SECS");
  uint64_t seconds = 0;
  bool is_number = environment_expect_number(text, &seconds);
  unsigned __int128 nanoseconds = (unsigned __int128)seconds * 1000000000U;
  uint64_t expected = nanoseconds > UINT64_MAX ? UINT64_MAX : (uint64_t)nanoseconds;
  if (!is_number || seconds == 0) expected = UINT64_MAX;
  FUZZ_CHECK(watchdog_ns == expected, "RDM_WATCHDOG_SECS=\"%s\" is %llu ns and not %llu", text,
             (unsigned long long)watchdog_ns, (unsigned long long)expected);
  FUZZ_CHECK(lines == (is_number ? 0 : 1), "RDM_WATCHDOG_SECS=\"%s\" logged %u lines", text, lines);
}

void environment_fuzz_blocking(const char *text) {
  setenv("RDM_EVENT_BLOCKING", text, 1);
  waits_block = false;
  environment_take_log_lines();
  read_blocking();
  unsigned lines = environment_take_log_lines();
  unsetenv("RDM_EVENT_BLOCKING");
  uint64_t value = 0;
  bool is_valid = environment_expect_number(text, &value) && value <= 1;
  FUZZ_CHECK(waits_block == (is_valid && value == 1), "RDM_EVENT_BLOCKING=\"%s\" is %d", text, waits_block);
  FUZZ_CHECK(lines == (is_valid ? 0 : 1), "RDM_EVENT_BLOCKING=\"%s\" logged %u lines", text, lines);
}
