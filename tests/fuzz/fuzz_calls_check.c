/* What holds after every call, whatever it was given. */
#include "fuzz_calls.h"
#include "lock.h"

#include <string.h>

enum { LAST_STATUS = RDM_ERROR_CAPTURING };

static _Thread_local rdm_error before;

void calls_begin(void) {
  before = (rdm_error){.struct_size = sizeof before};
  FUZZ_CHECK(rdm_last_error(&before) == RDM_OK, "the last error can not be read");
}

bool calls_is_possible(rdm_status status) {
  switch (status) {
    case RDM_ERROR_NO_DEVICE:
    case RDM_ERROR_NO_DRIVER:
    case RDM_ERROR_UNKNOWN_DRIVER:
    case RDM_ERROR_DRIVER_VERSION:
    case RDM_ERROR_PERMISSION:
    case RDM_ERROR_WATCHDOG:
    case RDM_ERROR_SHUTTING_DOWN:
    case RDM_ERROR_FORKED:
      return false;
    default:
      return status >= RDM_OK && status <= LAST_STATUS;
  }
}

static void check_handle_status(const char *call, rdm_status status, calls_expectation expected) {
  bool is_right = true;
  if (expected == CALLS_NULL) is_right = status == RDM_ERROR_NULL_HANDLE;
  if (expected == CALLS_STALE) is_right = status == RDM_ERROR_STALE_HANDLE;
  if (expected == CALLS_FOREIGN) is_right = status == RDM_ERROR_FOREIGN_HANDLE;
  if (expected == CALLS_BAD) is_right = status == RDM_ERROR_FOREIGN_HANDLE || status == RDM_ERROR_STALE_HANDLE;
  FUZZ_CHECK(is_right, "%s is %s for a handle that is %s", call, rdm_status_name(status),
             expected == CALLS_NULL    ? "null"
             : expected == CALLS_STALE ? "stale"
                                       : "not one of ours");
}

rdm_status calls_end(const char *call, rdm_status status, calls_expectation expected) {
  static _Thread_local rdm_error after;
  rdm__assert_no_lock_held();
  after = (rdm_error){.struct_size = sizeof after};
  FUZZ_CHECK(rdm_last_error(&after) == RDM_OK, "the last error can not be read");
  FUZZ_CHECK(calls_is_possible(status), "%s is %s: %s", call, rdm_status_name(status), after.message);
  FUZZ_CHECK(strcmp(rdm_status_name(status), "RDM_ERROR_UNKNOWN") != 0, "%s gave the status %d", call, status);
  if (status == RDM_OK || status == RDM_NOT_READY) {
    FUZZ_CHECK(memcmp(&before, &after, sizeof after) == 0, "%s is %s and changed the last error to: %s", call,
               rdm_status_name(status), after.message);
  } else {
    FUZZ_CHECK(after.status == status, "%s is %s and the last error %s", call, rdm_status_name(status),
               rdm_status_name(after.status));
    FUZZ_CHECK(after.message[0] != '\0', "%s is %s without a message", call, rdm_status_name(status));
    FUZZ_CHECK(memchr(after.message, '\0', sizeof after.message) != NULL, "%s gave a message without an end", call);
    FUZZ_CHECK(strcmp(after.message, rdm_last_error_message()) == 0, "%s gave two messages", call);
    FUZZ_CHECK((after.driver_code != 0) == (after.call[0] != '\0'), "%s gave the driver's error %d of the call \"%s\"",
               call, after.driver_code, after.call);
  }
  if (expected > CALLS_UNSURE) check_handle_status(call, status, expected);
  return status;
}
