/*
 * What the simulated driver's compiler reads before the system's compiler does: kernel sources and compiler options.
 * An input's first byte chooses: the rest is a kernel source (as C++ or as C), or a list of options, one a line.
 */
#include "driver/sim/compiler_options.h"
#include "driver/sim/kernel_signature.h"
#include "driver/sim/kernel_source.h"
#include "driver/sim/text.h"
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_OPTIONS = 300 };

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc, (void)argv;
  return 0;
}

static size_t count_lines(const char *text) {
  size_t lines = 0;
  for (; *text != '\0'; text++) lines += *text == '\n';
  return lines;
}

/* The source's own lines keep their numbers, and a source without a kernel stays as it is. */
static void translate(const char *source, bool cxx) {
  static const char marker[] = "#line 1 \"fuzz\"\n";
  char *text = rdm__sim_kernel_source(source, "fuzz", cxx);
  FUZZ_CHECK(text != NULL, "no translation");
  const char *body = strstr(text, marker);
  FUZZ_CHECK(body != NULL, "the translation has no line that names the source");
  body += sizeof marker - 1;
  FUZZ_CHECK(count_lines(body) == count_lines(source) + 1, "%zu lines became %zu", count_lines(source),
             count_lines(body) - 1);
  if (cxx && strstr(source, "__global__") == NULL) {
    size_t size = strlen(source);
    FUZZ_CHECK(strlen(body) == size + 1 && memcmp(body, source, size) == 0, "a source without a kernel was changed");
  }
  free(text);
}

/* What follows `__global__`: the name is one of C's, and the parameters lie within the text. */
static void read_signature(const char *text) {
  rdm__sim_signature signature;
  const char *end = text + strlen(text);
  const char *body = rdm__sim_signature_read(text, &signature);
  if (body == NULL) return;
  FUZZ_CHECK(body >= text && body < end && *body == '{', "the body begins outside the text");
  FUZZ_CHECK(signature.name[0] != '\0' && strchr(signature.name, '(') == NULL, "the name is \"%s\"", signature.name);
  FUZZ_CHECK(signature.parameters > text && signature.parameters <= signature.parameters_end &&
                 signature.parameters_end < body && *signature.parameters_end == ')',
             "the parameters lie outside the text");
  rdm__sim_text written = {0};
  rdm__sim_signature_write(&signature, &written);
  char *taken = rdm__sim_text_take(&written);
  FUZZ_CHECK(taken != NULL && count_lines(taken) == 0, "a kernel's function is not on one line");
  free(taken);
}

/* Every option that is passed on is one of the caller's, in order; a refusal has a message that names an option. */
static void check_options(fuzz_input *input, bool cxx) {
  static rdm__sim_options options;
  char *texts[MOST_OPTIONS];
  int count = 0;
  while (!fuzz_is_empty(input) && count < MOST_OPTIONS) texts[count++] = fuzz_line_as_text(input);
  memset(&options, 0xaa, sizeof options);
  options.message[0] = '\0';
  bool accepted = rdm__sim_options_check(count, (const char *const *)texts, cxx, &options);
  int next = 0;
  FUZZ_CHECK(options.passed_count >= 0 && options.passed_count <= RDM__SIM_MAX_OPTIONS, "%d options are passed on",
             options.passed_count);
  for (int i = 0; i < options.passed_count; i++) {
    while (next < count && texts[next] != options.passed[i]) next++;
    FUZZ_CHECK(next < count, "option %d of those passed on is not the caller's next", i);
    next++;
  }
  FUZZ_CHECK(accepted || (options.message[0] != '\0' && memchr(options.message, '\0', sizeof options.message) != NULL),
             "options were refused without a message");
  for (int i = 0; accepted && i < count; i++) {
    bool is_value = i > 0 && strlen(texts[i - 1]) == 2 && texts[i - 1][0] == '-';
    FUZZ_CHECK(is_value || texts[i][0] == '-', "what is no option was accepted: \"%s\"", texts[i]);
    FUZZ_CHECK(is_value || strncmp(texts[i], "-fplugin", 8) != 0, "a plugin was accepted: \"%s\"", texts[i]);
  }
  while (count > 0) free(texts[--count]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  fuzz_input input = {.at = data, .end = data + size};
  uint8_t choice = fuzz_byte(&input);
  if (choice % 4 == 3) {
    check_options(&input, (choice & 4) != 0);
    return 0;
  }
  char *text = fuzz_rest_as_text(&input);
  if (choice % 4 == 2) {
    read_signature(text);
  } else {
    translate(text, choice % 4 == 1);
  }
  free(text);
  return 0;
}
