/* Log lines, to the installed handler or standard error. Never called with a leaf lock held. */
#ifndef RDM_LOG_H
#define RDM_LOG_H

#include "rocm_device_map.h"

#include <stdbool.h>

/* Whether a line of this level goes anywhere: for what is costly to put into words. */
bool rdm__log_takes(rdm_log_level level);

__attribute__((format(printf, 2, 3))) void rdm__log(rdm_log_level level, const char *format, ...);

#endif
