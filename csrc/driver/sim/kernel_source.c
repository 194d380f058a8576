#include "driver/sim/kernel_source.h"

#include "driver/sim/kernel_prelude.h"
#include "driver/sim/kernel_signature.h"
#include "driver/sim/text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 256 };

/* Reads the source once from front to back, and writes what it becomes. */
typedef struct scanner {
  const char *at;
  bool cxx;
  rdm__sim_text *out;
  int depth;
  /* For each open brace: whether it opened an extern "C" block, and whether C must not see its closing one. */
  bool linkage_block[MAX_DEPTH];
  bool blanked[MAX_DEPTH];
  int linkage_blocks;
  /* An extern "C" was read and holds for the declaration that follows. */
  bool linkage_pending;
  /* The kernel whose body is to come or open: where its brace is, and the depth inside it. */
  rdm__sim_signature kernel;
  const char *body;
  int body_depth;
  unsigned kernel_count;
} scanner;

static bool is_identifier(char character) {
  return isalnum((unsigned char)character) || character == '_' || character == '$';
}

static void copy(scanner *scan, const char *end) {
  rdm__sim_text_append_bytes(scan->out, scan->at, (size_t)(end - scan->at));
  scan->at = end;
}

/* Writes spaces in place of what is skipped, so that the columns in messages stay right. */
static void blank(scanner *scan, const char *end) {
  for (; scan->at < end; scan->at++) rdm__sim_text_append_bytes(scan->out, *scan->at == '\n' ? "\n" : " ", 1);
}

/* After `extern "C"`, the end of the string literal; NULL where it is another kind of extern. */
static const char *linkage_end(const char *after_extern) {
  const char *at = rdm__sim_skip_space(after_extern);
  return strncmp(at, "\"C\"", 3) == 0 ? at + 3 : NULL;
}

static void scan_linkage(scanner *scan, const char *end) {
  const char *next = rdm__sim_skip_space(end);
  bool block = *next == '{' && scan->depth < MAX_DEPTH - 1;
  if (!scan->cxx) {
    blank(scan, block ? next + 1 : end);
  } else {
    copy(scan, block ? next + 1 : end);
  }
  if (!block) {
    scan->linkage_pending = true;
    return;
  }
  scan->linkage_block[scan->depth] = true;
  scan->blanked[scan->depth] = !scan->cxx;
  scan->depth++;
  scan->linkage_blocks++;
}

static void scan_identifier(scanner *scan) {
  const char *end = scan->at;
  while (is_identifier(*end)) end++;
  size_t length = (size_t)(end - scan->at);
  if (length == 6 && strncmp(scan->at, "extern", 6) == 0 && linkage_end(end) != NULL) {
    scan_linkage(scan, linkage_end(end));
    return;
  }
  if (length == 10 && strncmp(scan->at, "__global__", 10) == 0 && scan->body == NULL) {
    bool named_as_written = scan->linkage_pending || scan->linkage_blocks > 0;
    /* Without C linkage a kernel's name is another one, which nobody asks for here. */
    if (named_as_written) scan->body = rdm__sim_signature_read(end, &scan->kernel);
  }
  copy(scan, end);
}

static void scan_open_brace(scanner *scan) {
  bool kernel = scan->at == scan->body;
  scan->linkage_block[scan->depth] = false;
  scan->blanked[scan->depth] = false;
  scan->depth++;
  if (kernel) scan->body_depth = scan->depth;
  /* The body of another function ends what `extern "C"` held for. */
  scan->linkage_pending = false;
  copy(scan, scan->at + 1);
}

static void scan_close_brace(scanner *scan) {
  bool kernel = scan->body != NULL && scan->at > scan->body && scan->depth == scan->body_depth;
  bool blanked = false;
  if (scan->depth > 0) {
    scan->depth--;
    blanked = scan->blanked[scan->depth];
    if (scan->linkage_block[scan->depth]) scan->linkage_blocks--;
  }
  if (blanked) {
    blank(scan, scan->at + 1);
  } else {
    copy(scan, scan->at + 1);
  }
  if (kernel) {
    rdm__sim_signature_write(&scan->kernel, scan->out);
    scan->body = NULL;
    scan->kernel_count++;
  }
}

static void scan_token(scanner *scan) {
  char character = *scan->at;
  const char *skipped = rdm__sim_skip_comment_or_literal(scan->at);
  if (skipped != scan->at) {
    copy(scan, skipped);
  } else if (isdigit((unsigned char)character)) {
    /* A number is taken whole, as C++ may write a quote in it. */
    const char *end = scan->at;
    while (is_identifier(*end) || *end == '.' || (*end == '\'' && is_identifier(end[1]))) end++;
    copy(scan, end);
  } else if (is_identifier(character)) {
    scan_identifier(scan);
  } else if (character == '{' && scan->depth < MAX_DEPTH - 1) {
    scan_open_brace(scan);
  } else if (character == '}') {
    scan_close_brace(scan);
  } else {
    if (character == ';') scan->linkage_pending = false;
    copy(scan, scan->at + 1);
  }
}

static const char *skip_directive(const char *at) {
  while (*at != '\0' && *at != '\n') {
    if (at[0] == '\\' && at[1] == '\n') {
      at += 2;
      continue;
    }
    const char *skipped = strncmp(at, "/*", 2) == 0 ? rdm__sim_skip_comment_or_literal(at) : at + 1;
    at = skipped;
  }
  return at;
}

static void append_name(rdm__sim_text *out, const char *name) {
  for (; *name != '\0'; name++) {
    if (*name == '"' || *name == '\\') rdm__sim_text_append(out, "\\");
    rdm__sim_text_append_bytes(out, (unsigned char)*name < ' ' ? "?" : name, 1);
  }
}

char *rdm__sim_kernel_source(const char *source, const char *name, bool cxx) {
  rdm__sim_text out = {0};
  for (int part = 0; rdm__sim_kernel_prelude[part] != NULL; part++) {
    rdm__sim_text_append(&out, rdm__sim_kernel_prelude[part]);
  }
  rdm__sim_text_append(&out, "#line 1 \"");
  append_name(&out, name);
  rdm__sim_text_append(&out, "\"\n");

  scanner scan = {.at = source, .cxx = cxx, .out = &out};
  bool line_begins = true;
  while (*scan.at != '\0') {
    if (line_begins && *scan.at == '#') {
      copy(&scan, skip_directive(scan.at));
      continue;
    }
    if (!isspace((unsigned char)*scan.at)) {
      line_begins = false;
    } else if (*scan.at == '\n') {
      line_begins = true;
    }
    scan_token(&scan);
  }
  rdm__sim_text_append(&out, "\n");
  return rdm__sim_text_take(&out);
}
