#include "cache_key.h"

#include "hash.h"
#include "runtime.h"

#include <glob.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct part_writer {
  /* Null while the parts are only measured. */
  char *bytes;
  size_t size_bytes;
} part_writer;

static void add(part_writer *writer, const char *text) {
  uint64_t length = strlen(text);
  if (writer->bytes != NULL) {
    memcpy(writer->bytes + writer->size_bytes, &length, sizeof length);
    memcpy(writer->bytes + writer->size_bytes + sizeof length, text, length);
  }
  writer->size_bytes += sizeof length + length;
}

enum { COMPILER_TEXT_SIZE = 128 };

static uint64_t hash_file(uint64_t hash, const char *path) {
  struct stat status;
  if (stat(path, &status) != 0) return hash;
  hash = rdm__hash_word(hash, (uint64_t)status.st_size);
  hash = rdm__hash_word(hash, (uint64_t)status.st_mtim.tv_sec);
  return rdm__hash_word(hash, (uint64_t)status.st_mtim.tv_nsec);
}

/*
 * A compiler's version number does not tell its patches apart; the sizes and times of its files do. Those are the one
 * that was opened and, next to it, those that it opens itself.
 */
static uint64_t hash_files(const char *compiler_path) {
  static const char *const companions[] = {"libamd_comgr.so*", "libhiprtc-builtins.so*", "libnvrtc-builtins.so*"};
  const char *slash = strrchr(compiler_path, '/');
  int folder = slash == NULL ? 0 : (int)(slash + 1 - compiler_path);
  uint64_t hash = hash_file(0, compiler_path);
  for (size_t i = 0; i < sizeof companions / sizeof companions[0]; i++) {
    char pattern[640];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%.*s%s", folder, compiler_path, companions[i]);
    if (glob(pattern, GLOB_NOESCAPE, NULL, &found) != 0) continue;
    for (size_t j = 0; j < found.gl_pathc; j++) hash = hash_file(hash, found.gl_pathv[j]);
    globfree(&found);
  }
  return hash;
}

/* The runtime's version has no part in it: it makes no code, and does not tell its version without a GPU. False where
 * the compiler does not tell its own: what another one made could not be told apart. */
static bool describe_compiler(const rdm__driver *driver, char *buffer, size_t size) {
  int major = 0, minor = 0;
  if (!rdm__runtime_thread_enters_driver()) return false;
  int error = driver->rtc_version(&major, &minor);
  rdm__runtime_thread_left_driver();
  if (error != RDM_RTC_SUCCESS) return false;
  snprintf(buffer, size, "%d.%d/%016llx", major, minor, (unsigned long long)hash_files(driver->compiler_path));
  return true;
}

/* Looked at once: what the process has loaded stays as it is when its file is replaced. Null where it can not be
 * described; then the next call looks again. */
static const char *compiler_text(const rdm__driver *driver) {
  static _Atomic(char *) kept;
  char *text = atomic_load_explicit(&kept, memory_order_acquire);
  if (text != NULL) return text;
  char *made = malloc(COMPILER_TEXT_SIZE);
  if (made == NULL) return NULL;
  if (!describe_compiler(driver, made, COMPILER_TEXT_SIZE)) {
    free(made);
    return NULL;
  }
  if (atomic_compare_exchange_strong_explicit(&kept, &text, made, memory_order_acq_rel, memory_order_acquire)) {
    return made;
  }
  free(made);
  return text;
}

static void add_all(part_writer *writer, const rdm__driver *driver, const char *compiler, const char *architecture,
                    const rdm_module_source *source) {
  add(writer, rdm_version_string());
  add(writer, driver->name);
  add(writer, driver->compiler_path);
  add(writer, driver->compiler_identity);
  add(writer, compiler);
  add(writer, architecture);
  add(writer, source->name);
  add(writer, source->source);
  for (uint32_t i = 0; i < source->option_count; i++) add(writer, source->options[i]);
}

bool rdm__cache_key_make(const rdm__driver *driver, const char *architecture, const rdm_module_source *source,
                         rdm__cache_key *out_key) {
  const char *compiler = compiler_text(driver);
  if (compiler == NULL) return false;
  part_writer measured = {0};
  add_all(&measured, driver, compiler, architecture, source);
  part_writer writer = {.bytes = malloc(measured.size_bytes)};
  if (writer.bytes == NULL) return false;
  add_all(&writer, driver, compiler, architecture, source);
  *out_key = (rdm__cache_key){.bytes = writer.bytes, .size_bytes = writer.size_bytes};
  return true;
}
