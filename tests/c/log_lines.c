#include "log_lines.h"

#include "test.h"

#include <stdio.h>
#include <string.h>

enum { MAX_LINES = 512, LINE_SIZE = 512 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char lines[MAX_LINES][LINE_SIZE];
static uint32_t line_count;

static void keep(rdm_log_level level, const char *message, void *user_data) {
  (void)level;
  (void)user_data;
  pthread_mutex_lock(&lock);
  if (line_count < MAX_LINES) snprintf(lines[line_count++], LINE_SIZE, "%s", message);
  pthread_mutex_unlock(&lock);
}

void log_lines_capture(void) {
  CHECK_OK(rdm_set_log_handler(keep, NULL, RDM_LOG_INFO));
}

uint32_t log_lines_with(const char *text) {
  uint32_t count = 0;
  pthread_mutex_lock(&lock);
  for (uint32_t i = 0; i < line_count; i++) count += strstr(lines[i], text) != NULL;
  pthread_mutex_unlock(&lock);
  return count;
}
