/* What the fuzz targets share: reading an input piece by piece, and saying what was found. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What libFuzzer calls. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An input that is consumed from the front. What is read past its end is 0. */
typedef struct fuzz_input {
  const uint8_t *at;
  const uint8_t *end;
} fuzz_input;

bool fuzz_is_empty(const fuzz_input *input);
size_t fuzz_left(const fuzz_input *input);
uint8_t fuzz_byte(fuzz_input *input);
/* A number of `bytes` bytes, the lowest first. */
uint64_t fuzz_number(fuzz_input *input, unsigned bytes);
/* The rest as a text: up to its first NUL. To be freed. */
char *fuzz_rest_as_text(fuzz_input *input);
/* The next line of the rest, without its newline, as a text. To be freed. */
char *fuzz_line_as_text(fuzz_input *input);

/* Ends the process as a finding: libFuzzer keeps the input. */
__attribute__((format(printf, 3, 4), noreturn)) void fuzz_found(const char *file, int line, const char *format, ...);

#define FUZZ_CHECK(condition, ...)                                 \
  do {                                                             \
    if (!(condition)) fuzz_found(__FILE__, __LINE__, __VA_ARGS__); \
  } while (0)

#endif
