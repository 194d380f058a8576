#include "environment.h"

#include <stddef.h>
#include <stdlib.h>

const char *rdm__environment_text(const char *name) {
  const char *text = getenv(name);
  return text != NULL && text[0] != '\0' ? text : NULL;
}

bool rdm__parse_whole_number(const char *text, uint64_t *out_value) {
  uint64_t value = 0;
  if (text[0] == '\0') return false;
  for (const char *digit = text; *digit != '\0'; digit++) {
    if (*digit < '0' || *digit > '9') return false;
    if (value > (UINT64_MAX - (uint64_t)(*digit - '0')) / 10) return false;
    value = value * 10 + (uint64_t)(*digit - '0');
  }
  *out_value = value;
  return true;
}
