#include "log.h"

#include "lock.h"
#include "status.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* What lines go to. Never changed once published, so a thread that logs reads it without a lock. */
typedef struct log_sink {
  rdm_log_handler handler;
  void *user_data;
  rdm_log_level max_level;
  /* Replaced sinks stay, since a thread may still be logging to them; the chain keeps them reachable. */
  struct log_sink *replaced;
} log_sink;

static const log_sink standard_error = {.max_level = RDM_LOG_INFO};
static _Atomic(log_sink *) installed;

rdm_status rdm_set_log_handler(rdm_log_handler handler, void *user_data, rdm_log_level max_level) {
  if (max_level < RDM_LOG_ERROR || max_level > RDM_LOG_DEBUG) {
    return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "max_level is %d; it is RDM_LOG_ERROR (1) to RDM_LOG_DEBUG (4)",
                     max_level);
  }
  log_sink *sink = malloc(sizeof *sink);
  if (sink == NULL) return rdm__fail(RDM_ERROR_OUT_OF_MEMORY, "no memory for a log handler");
  *sink = (log_sink){.handler = handler, .user_data = user_data, .max_level = max_level};
  sink->replaced = atomic_load_explicit(&installed, memory_order_acquire);
  while (!atomic_compare_exchange_weak_explicit(&installed, &sink->replaced, sink, memory_order_acq_rel,
                                                memory_order_acquire)) {
  }
  return RDM_OK;
}

void rdm__log(rdm_log_level level, const char *format, ...) {
  const log_sink *sink = atomic_load_explicit(&installed, memory_order_acquire);
  if (sink == NULL) sink = &standard_error;
  if (level > sink->max_level) return;
  rdm__assert_no_leaf_held();
  char line[2304];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (sink->handler != NULL) {
    sink->handler(level, line, sink->user_data);
  } else {
    /* One call for one line, so that lines of several threads do not mix. */
    fprintf(stderr, "[rdm] %s\n", line);
  }
}
