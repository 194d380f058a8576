/* Log lines, to the installed handler or standard error. Never called with a leaf lock held. */
#ifndef RDM_LOG_H
#define RDM_LOG_H

#include "rocm_device_map.h"

__attribute__((format(printf, 2, 3))) void rdm__log(rdm_log_level level, const char *format, ...);

#endif
