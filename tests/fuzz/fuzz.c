#include "fuzz.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool fuzz_is_empty(const fuzz_input *input) {
  return input->at == input->end;
}

size_t fuzz_left(const fuzz_input *input) {
  return (size_t)(input->end - input->at);
}

uint8_t fuzz_byte(fuzz_input *input) {
  return fuzz_is_empty(input) ? 0 : *input->at++;
}

uint64_t fuzz_number(fuzz_input *input, unsigned bytes) {
  uint64_t value = 0;
  for (unsigned i = 0; i < bytes; i++) value |= (uint64_t)fuzz_byte(input) << 8 * i;
  return value;
}

static char *take_text(fuzz_input *input, size_t size) {
  char *text = malloc(size + 1);
  FUZZ_CHECK(text != NULL, "no memory for a text of %zu bytes", size);
  if (size > 0) memcpy(text, input->at, size);
  text[size] = '\0';
  input->at += size;
  return text;
}

char *fuzz_rest_as_text(fuzz_input *input) {
  return take_text(input, fuzz_left(input));
}

char *fuzz_line_as_text(fuzz_input *input) {
  const uint8_t *newline = fuzz_is_empty(input) ? NULL : memchr(input->at, '\n', fuzz_left(input));
  char *line = take_text(input, newline == NULL ? fuzz_left(input) : (size_t)(newline - input->at));
  if (newline != NULL) input->at = newline + 1;
  return line;
}

void fuzz_found(const char *file, int line, const char *format, ...) {
  va_list list;
  fprintf(stderr, "%s:%d: finding: ", file, line);
  va_start(list, format);
  vfprintf(stderr, format, list);
  va_end(list);
  fputc('\n', stderr);
  abort();
}
