#include "log.h"

#include "count.h"
#include "environment.h"
#include "lock.h"
#include "status.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What lines go to. Never changed once published, so a thread that logs reads it without a lock. */
typedef struct log_sink {
  rdm_log_handler handler;
  void *user_data;
  rdm_log_level max_level;
  /* Replaced sinks stay, since a thread may still be logging to them; the chain keeps them reachable. */
  struct log_sink *replaced;
} log_sink;

static _Atomic(log_sink *) installed;

/* Where lines go until a handler is set; RDM_LOG_LEVEL is read once, as the first of them comes. */
static log_sink standard_error = {.max_level = RDM_LOG_INFO};
static pthread_once_t environment_is_read = PTHREAD_ONCE_INIT;
static char refused_level[64];
static atomic_bool refusal_is_told;

static void read_environment(void) {
  static const char *const names[] = {"error", "warning", "info", "debug"};
  const char *text = rdm__environment_text("RDM_LOG_LEVEL");
  if (text == NULL) return;
  for (int i = 0; i <= RDM_LOG_DEBUG - RDM_LOG_ERROR; i++) {
    if (strcmp(text, names[i]) != 0) continue;
    standard_error.max_level = RDM_LOG_ERROR + i;
    return;
  }
  snprintf(refused_level, sizeof refused_level, "%s", text);
}

static const log_sink *default_sink(void) {
  pthread_once(&environment_is_read, read_environment);
  if (refused_level[0] != '\0' && !atomic_exchange_explicit(&refusal_is_told, true, memory_order_relaxed)) {
    rdm__log(RDM_LOG_WARNING, "RDM_LOG_LEVEL is \"%s\", which is none of error, warning, info, debug; it is info",
             refused_level);
  }
  return &standard_error;
}

rdm_log_level rdm_default_log_level(void) {
  return default_sink()->max_level;
}

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

static const log_sink *current_sink(void) {
  const log_sink *sink = atomic_load_explicit(&installed, memory_order_acquire);
  return sink != NULL ? sink : default_sink();
}

bool rdm__log_takes(rdm_log_level level) {
  return level <= current_sink()->max_level;
}

void rdm__log(rdm_log_level level, const char *format, ...) {
  if (level <= RDM_LOG_WARNING) {
    rdm__count(level == RDM_LOG_ERROR ? RDM__COUNT_LOG_ERRORS : RDM__COUNT_LOG_WARNINGS, 1);
  }
  rdm__assert_no_leaf_held();
  const log_sink *sink = current_sink();
  if (level > sink->max_level) return;
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
