#include "driver/sim/text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool reserve(rdm__sim_text *text, size_t more) {
  if (text->failed) return false;
  if (text->length + more < text->capacity) return true;
  size_t capacity = text->capacity * 2 + more + 1;
  char *bytes = realloc(text->bytes, capacity);
  text->failed = bytes == NULL;
  if (text->failed) return false;
  text->bytes = bytes;
  text->capacity = capacity;
  return true;
}

void rdm__sim_text_append_bytes(rdm__sim_text *text, const char *bytes, size_t size) {
  if (!reserve(text, size)) return;
  memcpy(text->bytes + text->length, bytes, size);
  text->length += size;
}

void rdm__sim_text_append(rdm__sim_text *text, const char *string) {
  rdm__sim_text_append_bytes(text, string, strlen(string));
}

void rdm__sim_text_format(rdm__sim_text *text, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(NULL, 0, format, arguments);
  va_end(arguments);
  if (length < 0 || !reserve(text, (size_t)length)) return;
  va_start(arguments, format);
  vsnprintf(text->bytes + text->length, (size_t)length + 1, format, arguments);
  va_end(arguments);
  text->length += (size_t)length;
}

char *rdm__sim_text_take(rdm__sim_text *text) {
  rdm__sim_text_append_bytes(text, "", 1);
  if (text->failed) {
    free(text->bytes);
    return NULL;
  }
  return text->bytes;
}

const char *rdm__sim_skip_space(const char *at) {
  for (;;) {
    if (isspace((unsigned char)*at)) {
      at++;
    } else if (at[0] == '/' && (at[1] == '/' || at[1] == '*')) {
      at = rdm__sim_skip_comment_or_literal(at);
    } else {
      return at;
    }
  }
}

/* Past a raw string of C++, whose quote is at `at`. */
static const char *skip_raw_string(const char *at) {
  const char *open = strchr(at + 1, '(');
  if (open == NULL) return at + strlen(at);
  size_t length = (size_t)(open - at - 1);
  for (const char *close = strchr(open, ')'); close != NULL; close = strchr(close + 1, ')')) {
    if (strncmp(close + 1, at + 1, length) == 0 && close[1 + length] == '"') return close + length + 2;
  }
  return at + strlen(at);
}

static const char *skip_quoted(const char *at) {
  char quote = *at++;
  while (*at != '\0' && *at != quote && *at != '\n') at += at[0] == '\\' && at[1] != '\0' ? 2 : 1;
  return *at == quote ? at + 1 : at;
}

const char *rdm__sim_skip_comment_or_literal(const char *at) {
  if (at[0] == '/' && at[1] == '*') {
    const char *end = strstr(at + 2, "*/");
    return end == NULL ? at + strlen(at) : end + 2;
  }
  if (at[0] == '/' && at[1] == '/') {
    while (*at != '\0' && *at != '\n') at += at[0] == '\\' && at[1] != '\0' ? 2 : 1;
    return at;
  }
  if (at[0] == 'R' && at[1] == '"') return skip_raw_string(at + 1);
  if (*at == '"' || *at == '\'') return skip_quoted(at);
  return at;
}
