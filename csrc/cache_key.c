#include "cache_key.h"

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

/* A compiler's version number does not tell its patches apart; its file's size and time do. */
static void describe_compiler(const rdm__driver *driver, char *buffer, size_t size) {
  int major = 0, minor = 0, runtime = 0;
  if (driver->rtc_version(&major, &minor) != RDM_RTC_SUCCESS) major = minor = 0;
  if (driver->runtime_get_version(&runtime) != RDM_HIP_SUCCESS) {
    driver->get_last_error();
    runtime = 0;
  }
  struct stat status;
  if (stat(driver->compiler_path, &status) != 0) memset(&status, 0, sizeof status);
  snprintf(buffer, size, "%d.%d/%d/%lld/%lld.%09ld", major, minor, runtime, (long long)status.st_size,
           (long long)status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
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
  char compiler[160];
  describe_compiler(driver, compiler, sizeof compiler);
  part_writer measured = {0};
  add_all(&measured, driver, compiler, architecture, source);
  part_writer writer = {.bytes = malloc(measured.size_bytes)};
  if (writer.bytes == NULL) return false;
  add_all(&writer, driver, compiler, architecture, source);
  *out_key = (rdm__cache_key){.bytes = writer.bytes, .size_bytes = writer.size_bytes};
  return true;
}
