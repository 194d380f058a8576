#include "no_compiler.h"

static int no_version(int *major, int *minor) {
  (void)major;
  (void)minor;
  return RDM__RTC_NO_COMPILER;
}

static int no_create_program(void **program, const char *source, const char *name) {
  (void)program;
  (void)source;
  (void)name;
  return RDM__RTC_NO_COMPILER;
}

static int no_compile_program(void *program, int option_count, const char *const *options) {
  (void)program;
  (void)option_count;
  (void)options;
  return RDM__RTC_NO_COMPILER;
}

static int no_size(void *program, size_t *size) {
  (void)program;
  (void)size;
  return RDM__RTC_NO_COMPILER;
}

static int no_bytes(void *program, char *bytes) {
  (void)program;
  (void)bytes;
  return RDM__RTC_NO_COMPILER;
}

static int no_destroy_program(void **program) {
  (void)program;
  return RDM__RTC_NO_COMPILER;
}

void rdm__no_compiler_fill(rdm__driver *driver) {
  driver->rtc_version = no_version;
  driver->rtc_create_program = no_create_program;
  driver->rtc_compile_program = no_compile_program;
  driver->rtc_get_log_size = no_size;
  driver->rtc_get_log = no_bytes;
  driver->rtc_get_code_size = no_size;
  driver->rtc_get_code = no_bytes;
  driver->rtc_destroy_program = no_destroy_program;
}
