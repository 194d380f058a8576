/* A text that grows, and steps over a C or C++ source. */
#ifndef RDM_SIM_TEXT_H
#define RDM_SIM_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Begins as all zeros. Once memory was short it stays failed, and takes nothing more. */
typedef struct rdm__sim_text {
  char *bytes;
  size_t length;
  size_t capacity;
  bool failed;
} rdm__sim_text;

void rdm__sim_text_append_bytes(rdm__sim_text *text, const char *bytes, size_t size);
void rdm__sim_text_append(rdm__sim_text *text, const char *string);
__attribute__((format(printf, 2, 3))) void rdm__sim_text_format(rdm__sim_text *text, const char *format, ...);

/* The whole text, ended by a NUL and the caller's to free; NULL where memory was short. */
char *rdm__sim_text_take(rdm__sim_text *text);

/* Past spaces and comments. */
const char *rdm__sim_skip_space(const char *at);

/* Past the comment, string or character that begins here; `at` itself where none does. */
const char *rdm__sim_skip_comment_or_literal(const char *at);

#endif
