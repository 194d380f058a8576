#include "driver/sim/compiler_options.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static bool begins_with(const char *text, const char *prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

static bool begins_with_one_of(const char *text, const char *const *prefixes, size_t count) {
  for (size_t index = 0; index < count; index++) {
    if (begins_with(text, prefixes[index])) return true;
  }
  return false;
}

#define BEGINS_WITH_ONE_OF(text, prefixes) begins_with_one_of(text, prefixes, sizeof prefixes / sizeof prefixes[0])

/* Meant for a GPU, and without meaning here. */
static bool is_left_out(const char *option, bool cxx) {
  static const char *const prefixes[] = {
      "--offload-arch=", "--gpu-architecture=", "-arch=", "--gpu-max-threads-per-block="};
  if (BEGINS_WITH_ONE_OF(option, prefixes)) return true;
  /* A kernel that is compiled as C has no use for a standard of C++. */
  return !cxx &&
         (begins_with(option, "-std=c++") || begins_with(option, "-std=gnu++") || begins_with(option, "--std=c++"));
}

static bool is_passed_on(const char *option) {
  static const char *const prefixes[] = {"-D", "-U", "-I", "-std=", "--std=", "-O"};
  static const char *const whole[] = {"-w", "-Wall", "-Wextra", "-Werror", "-g", "-ffast-math", "-fno-fast-math"};
  for (size_t index = 0; index < sizeof whole / sizeof whole[0]; index++) {
    if (strcmp(option, whole[index]) == 0) return true;
  }
  return BEGINS_WITH_ONE_OF(option, prefixes);
}

static bool takes_the_next(const char *option) {
  return strcmp(option, "-D") == 0 || strcmp(option, "-I") == 0 || strcmp(option, "-U") == 0;
}

bool rdm__sim_options_check(int option_count, const char *const *options, bool cxx, rdm__sim_options *out_options) {
  out_options->passed_count = 0;
  for (int index = 0; index < option_count; index++) {
    const char *option = options[index];
    if (option == NULL) {
      snprintf(out_options->message, sizeof out_options->message, "option %d is a null pointer\n", index);
      return false;
    }
    if (is_left_out(option, cxx)) continue;
    bool pair = takes_the_next(option);
    if (!is_passed_on(option) || (pair && (index + 1 == option_count || options[index + 1] == NULL))) {
      snprintf(out_options->message, sizeof out_options->message, "the option \"%.160s\" is not supported%s\n", option,
               pair ? " without a value" : "");
      return false;
    }
    if (out_options->passed_count + 2 > RDM__SIM_MAX_OPTIONS) {
      snprintf(out_options->message, sizeof out_options->message, "more than %d options\n", RDM__SIM_MAX_OPTIONS);
      return false;
    }
    out_options->passed[out_options->passed_count++] = option;
    if (pair) out_options->passed[out_options->passed_count++] = options[++index];
  }
  return true;
}
