#include "driver/sim/kernel_signature.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool is_identifier(char character) {
  return isalnum((unsigned char)character) || character == '_' || character == '$';
}

/* Past the parenthesis that closes the one at `at`. */
static const char *skip_parentheses(const char *at) {
  int depth = 0;
  while (*at != '\0') {
    const char *skipped = rdm__sim_skip_comment_or_literal(at);
    if (skipped != at) {
      at = skipped;
      continue;
    }
    if (*at == '(') depth++;
    if (*at == ')' && --depth == 0) return at + 1;
    at++;
  }
  return at;
}

static bool word_is(const char *word, size_t length, const char *text) {
  return strlen(text) == length && strncmp(word, text, length) == 0;
}

/* These are followed by parentheses and are no kernel's name. */
static bool is_attribute(const char *word, size_t length) {
  return word_is(word, length, "__launch_bounds__") || word_is(word, length, "__attribute__") ||
         word_is(word, length, "alignas");
}

const char *rdm__sim_signature_read(const char *after_global, rdm__sim_signature *out_signature) {
  const char *at = rdm__sim_skip_space(after_global);
  while (*at != '\0' && *at != ';' && *at != '{' && *at != '}') {
    if (!is_identifier(*at)) {
      at = rdm__sim_skip_space(at + 1);
      continue;
    }
    const char *word = at;
    while (is_identifier(*at)) at++;
    size_t length = (size_t)(at - word);
    at = rdm__sim_skip_space(at);
    if (*at != '(') continue;
    const char *end = skip_parentheses(at);
    if (is_attribute(word, length)) {
      at = rdm__sim_skip_space(end);
      continue;
    }
    const char *body = rdm__sim_skip_space(end);
    if (*body != '{' || length >= sizeof out_signature->name) return NULL;
    memcpy(out_signature->name, word, length);
    out_signature->name[length] = '\0';
    out_signature->parameters = at + 1;
    out_signature->parameters_end = end - 1;
    return body;
  }
  return NULL;
}

/* ---- Parameters ------------------------------------------------------------------------------------------------ */

/* The parameters without comments and line ends. NULL where memory is short. */
static char *plain_parameters(const rdm__sim_signature *signature) {
  rdm__sim_text text = {0};
  const char *at = signature->parameters;
  while (at < signature->parameters_end) {
    const char *skipped = rdm__sim_skip_comment_or_literal(at);
    bool comment = skipped != at && *at == '/';
    if (skipped == at) skipped = at + 1;
    if (comment || isspace((unsigned char)*at)) {
      rdm__sim_text_append(&text, " ");
    } else {
      /* A literal may go on after a line's end. */
      for (; at < skipped; at++) rdm__sim_text_append_bytes(&text, *at == '\n' ? " " : at, 1);
    }
    at = skipped;
  }
  return rdm__sim_text_take(&text);
}

static char *trim(char *text) {
  while (isspace((unsigned char)*text)) text++;
  size_t length = strlen(text);
  while (length > 0 && isspace((unsigned char)text[length - 1])) length--;
  text[length] = '\0';
  return text;
}

/* Splits at the commas outside every bracket. Returns the number of parameters, -1 for too many. */
static int split(char *text, char **out_parameters) {
  int count = 0;
  int depth = 0;
  char *begin = text;
  for (char *at = text;; at++) {
    if (strchr("([{<", *at) != NULL && *at != '\0') depth++;
    if (strchr(")]}>", *at) != NULL && *at != '\0') depth--;
    if (*at != '\0' && (*at != ',' || depth > 0)) continue;
    if (count == RDM__SIM_MAX_ARGUMENTS) return -1;
    bool last = *at == '\0';
    *at = '\0';
    out_parameters[count++] = trim(begin);
    begin = at + 1;
    if (last) break;
  }
  if (count == 1 && (out_parameters[0][0] == '\0' || strcmp(out_parameters[0], "void") == 0)) return 0;
  return count;
}

/* A word that is, or may end, a type without a parameter's name behind it. */
static bool ends_type(const char *word, size_t length) {
  static const char *const words[] = {"char",   "short",  "int",      "long",  "float",        "double",
                                      "signed", "bool",   "unsigned", "const", "volatile",     "size_t",
                                      "_Bool",  "struct", "enum",     "union", "__restrict__", "__restrict"};
  for (size_t index = 0; index < sizeof words / sizeof words[0]; index++) {
    if (word_is(word, length, words[index])) return true;
  }
  return false;
}

/* True where the text says no more than qualifiers, so that the word behind it is the type and not a name. */
static bool only_qualifies(const char *text) {
  while (*text != '\0') {
    const char *word = text;
    while (is_identifier(*text)) text++;
    size_t length = (size_t)(text - word);
    if (!word_is(word, length, "const") && !word_is(word, length, "volatile") && !word_is(word, length, "struct") &&
        !word_is(word, length, "enum") && !word_is(word, length, "union")) {
      return false;
    }
    while (isspace((unsigned char)*text)) text++;
  }
  return true;
}

/* Makes a parameter's declaration into its type, in place. False where it is of a form that is not read here. */
static bool strip_name(char *parameter, bool *out_array) {
  *out_array = false;
  int angles = 0;
  for (char *at = parameter; *at != '\0'; at++) {
    if (*at == '<') angles++;
    if (*at == '>') angles--;
    if (*at == '=' && angles == 0) {
      *at = '\0';
      break;
    }
    /* A pointer to a function, a reference, or an ellipsis. */
    if (*at == '(' || *at == '&' || *at == '.') return false;
  }
  trim(parameter);
  size_t length = strlen(parameter);
  if (length > 0 && parameter[length - 1] == ']') {
    char *open = strchr(parameter, '[');
    if (open == NULL || strchr(open + 1, '[') != NULL) return false;
    *open = '\0';
    *out_array = true;
    trim(parameter);
    length = strlen(parameter);
  }
  size_t begin = length;
  while (begin > 0 && is_identifier(parameter[begin - 1])) begin--;
  if (begin == 0 || begin == length || ends_type(parameter + begin, length - begin)) return length > 0;
  if (begin >= 2 && parameter[begin - 1] == ':') return true;
  char kept = parameter[begin];
  parameter[begin] = '\0';
  if (only_qualifies(parameter)) {
    parameter[begin] = kept;
  } else {
    trim(parameter);
  }
  return true;
}

static void write_function(const char *name, char *const *types, const bool *arrays, int count, rdm__sim_text *out) {
  rdm__sim_text_format(out, " static const unsigned rdm_sim_sizes_%s[] = {", name);
  for (int index = 0; index < count; index++) {
    rdm__sim_text_format(out, "sizeof(__typeof__(%s%s)), ", types[index], arrays[index] ? " *" : "");
  }
  rdm__sim_text_format(out, "0}; static void rdm_sim_row_%s(void **rdm_a, unsigned rdm_n) { (void)rdm_a; ", name);
  rdm__sim_text_format(out, "RDM_SIM_FOR_EACH_THREAD(rdm_n) %s(", name);
  for (int index = 0; index < count; index++) {
    rdm__sim_text_format(out, "%s*(__typeof__(%s%s) *)rdm_a[%d]", index == 0 ? "" : ", ", types[index],
                         arrays[index] ? " *" : "", index);
  }
  rdm__sim_text_format(out, "); } RDM_SIM_C_BEGIN RDM_SIM_EXPORT struct rdm_sim_kernel rdm_sim_kernel_%s = ", name);
  rdm__sim_text_format(out, "{%d, rdm_sim_sizes_%s, rdm_sim_row_%s}; RDM_SIM_C_END ", count, name, name);
}

void rdm__sim_signature_write(const rdm__sim_signature *signature, rdm__sim_text *out) {
  char *parameters[RDM__SIM_MAX_ARGUMENTS];
  bool arrays[RDM__SIM_MAX_ARGUMENTS];
  char *text = plain_parameters(signature);
  if (text == NULL) {
    out->failed = true;
    return;
  }
  int count = split(text, parameters);
  bool readable = count >= 0;
  for (int index = 0; index < count && readable; index++) readable = strip_name(parameters[index], &arrays[index]);
  if (readable) {
    write_function(signature->name, parameters, arrays, count, out);
  } else {
    rdm__sim_text_format(out,
                         " _Pragma(\"GCC error \\\"the simulated GPU can not read the parameters of the kernel "
                         "%s\\\"\") ",
                         signature->name);
  }
  free(text);
}
