#include "compile.h"

#include "build_cache.h"
#include "cache_key.h"
#include "clock.h"
#include "count.h"
#include "disk_cache.h"
#include "log.h"
#include "runtime.h"
#include "status.h"
#include "wait.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The tail that fits a message beside the words around it: a compiler's last errors are what a reader needs. */
enum { LOG_TAIL_BYTES = 1400, MOST_ARCHITECTURE_BYTES = 255 };

static rdm__build_cache codes = RDM__BUILD_CACHE_INIT;
static rdm__build_cache codes_made_anew = RDM__BUILD_CACHE_INIT;
static rdm__mutex compiler_lock = RDM__MUTEX_INIT(RDM__RANK_COMPILER);

typedef struct compile_request {
  const rdm__driver *driver;
  const char *architecture;
  /* What the disk has is no use. */
  bool anew;
} compile_request;

void rdm__compiler_enter(const rdm__driver *driver) {
  if (driver->compiles_one_at_a_time) rdm__mutex_lock(&compiler_lock);
}

void rdm__compiler_leave(const rdm__driver *driver) {
  if (driver->compiles_one_at_a_time) rdm__mutex_unlock(&compiler_lock);
}

/*
 * One step of a compile. The exit may have begun during the one before, or while another thread compiled: then this one
 * is not taken, and `status` says so.
 */
#define STEP(status, result, call)          \
  do {                                      \
    (status) = rdm__runtime_enter_driver(); \
    if ((status) == RDM_OK) {               \
      (result) = (call);                    \
      rdm__runtime_thread_left_driver();    \
    }                                       \
  } while (0)

static rdm_status compiler_failed(const rdm__driver *driver, rdm__call call, int error, const char *name) {
  return rdm__fail_driver(RDM_ERROR_COMPILE, error, driver->rtc_error_string(error), driver->call_name(call), -1,
                          "compiling %.200s: %s failed: %s (%d)", name, driver->call_name(call),
                          driver->rtc_error_string(error), error);
}

/* The log of a program, to be freed; null where there is none. */
static char *program_log(const rdm__driver *driver, void *program) {
  size_t size = 0;
  int error = RDM_RTC_SUCCESS;
  rdm_status status = RDM_OK;
  STEP(status, error, driver->rtc_get_log_size(program, &size));
  if (status != RDM_OK || error != RDM_RTC_SUCCESS || size == 0) return NULL;
  char *log = calloc(1, size + 1);
  if (log == NULL) return NULL;
  STEP(status, error, driver->rtc_get_log(program, log));
  if (status == RDM_OK && error == RDM_RTC_SUCCESS) return log;
  free(log);
  return NULL;
}

static rdm_status source_refused(const rdm__driver *driver, void *program, int error, const char *name) {
  char *log = program_log(driver, program);
  const char *tail = log == NULL ? "(the compiler left no log)" : log;
  size_t length = strlen(tail);
  if (length > LOG_TAIL_BYTES) tail += length - LOG_TAIL_BYTES;
  rdm_status status = rdm__fail_driver(
      RDM_ERROR_COMPILE, error, driver->rtc_error_string(error), driver->call_name(RDM__CALL_rtc_compile_program), -1,
      "compiling %.200s: %s failed: %s (%d): %s%s", name, driver->call_name(RDM__CALL_rtc_compile_program),
      driver->rtc_error_string(error), error, length > LOG_TAIL_BYTES ? "..." : "", tail);
  free(log);
  return status;
}

static rdm_status fetch_code(const rdm__driver *driver, void *program, const char *name, rdm__code *code) {
  int error = RDM_RTC_SUCCESS;
  rdm_status status = RDM_OK;
  STEP(status, error, driver->rtc_get_code_size(program, &code->size_bytes));
  if (status != RDM_OK) return status;
  if (error != RDM_RTC_SUCCESS) return compiler_failed(driver, RDM__CALL_rtc_get_code_size, error, name);
  code->bytes = malloc(code->size_bytes > 0 ? code->size_bytes : 1);
  if (code->bytes == NULL) return rdm__fail(RDM_ERROR_OUT_OF_MEMORY, "no memory for the code of %.200s", name);
  STEP(status, error, driver->rtc_get_code(program, code->bytes));
  if (status != RDM_OK) return status;
  if (error != RDM_RTC_SUCCESS) return compiler_failed(driver, RDM__CALL_rtc_get_code, error, name);
  return RDM_OK;
}

static rdm_status compile_program(const rdm__driver *driver, void *program, const rdm_module_source *source,
                                  const char *const *options, rdm__code *code) {
  int error = RDM_RTC_SUCCESS;
  rdm_status status = RDM_OK;
  STEP(status, error, driver->rtc_compile_program(program, (int)source->option_count + 1, options));
  if (status != RDM_OK) return status;
  if (error != RDM_RTC_SUCCESS) return source_refused(driver, program, error, source->name);
  return fetch_code(driver, program, source->name, code);
}

static rdm_status create_and_compile(const compile_request *request, const rdm_module_source *source,
                                     const char *const *options, rdm__code *code) {
  const rdm__driver *driver = request->driver;
  void *program = NULL;
  int error = RDM_RTC_SUCCESS;
  rdm_status status = RDM_OK;
  STEP(status, error, driver->rtc_create_program(&program, source->source, source->name));
  if (status != RDM_OK) return status;
  if (error != RDM_RTC_SUCCESS) return compiler_failed(driver, RDM__CALL_rtc_create_program, error, source->name);
  status = compile_program(driver, program, source, options, code);
  /* A process that is exiting leaves the program as it is. */
  rdm_status left = RDM_OK;
  STEP(left, error, driver->rtc_destroy_program(&program));
  if (left != RDM_OK) return left;
  if (status == RDM_OK && error != RDM_RTC_SUCCESS) {
    status = compiler_failed(driver, RDM__CALL_rtc_destroy_program, error, source->name);
  }
  return status;
}

/* With the compiler entered. */
static rdm_status compile_now(const compile_request *request, const rdm_module_source *source,
                              const char *const *options, rdm__code *code) {
  rdm__count(RDM__COUNT_COMPILES, 1);
  uint64_t begin_ns = rdm__now_ns();
  rdm_status status = create_and_compile(request, source, options, code);
  uint64_t time_ns = rdm__now_ns() - begin_ns;
  rdm__count(RDM__COUNT_COMPILE_TIME_NS, time_ns);
  if (status != RDM_OK) rdm__count(RDM__COUNT_COMPILE_FAILURES, 1);
  rdm__count(RDM__COUNT_COMPILES_ENDED, 1);
  rdm__log(RDM_LOG_DEBUG, "%s %.200s for %.255s took %.1f ms", status == RDM_OK ? "compiling" : "the failed compile of",
           source->name, request->architecture, (double)time_ns / (double)RDM__NS_PER_MS);
  return status;
}

/* Compiles with the architecture before the source's own options. */
static rdm_status compile_source(const compile_request *request, const rdm_module_source *source, rdm__code *code) {
  char architecture[MOST_ARCHITECTURE_BYTES + 64];
  snprintf(architecture, sizeof architecture, "%s%s", request->driver->architecture_option, request->architecture);
  const char **options = calloc(source->option_count + 1, sizeof *options);
  if (options == NULL) return rdm__fail(RDM_ERROR_OUT_OF_MEMORY, "no memory to compile %.200s", source->name);
  options[0] = architecture;
  for (uint32_t i = 0; i < source->option_count; i++) options[i + 1] = source->options[i];
  rdm__compiler_enter(request->driver);
  rdm_status status = compile_now(request, source, options, code);
  rdm__compiler_leave(request->driver);
  free(options);
  return status;
}

static void log_disk_cache(const compile_request *request, const rdm_module_source *source, const rdm__cache_key *key,
                           bool found) {
  if (!rdm__log_takes(RDM_LOG_DEBUG)) return;
  char entry[RDM__CACHE_NAME_SIZE];
  rdm__cache_entry_name(key, entry);
  rdm__log(RDM_LOG_DEBUG, "%.200s for %.255s is entry %s of the cache on disk, which %s it", source->name,
           request->architecture, entry, found ? "has" : "has not");
}

/* From the disk where it is there, else compiled and stored there. */
static rdm_status find_or_compile(const compile_request *request, const rdm_module_source *source, rdm__code *code) {
  rdm__cache_key key;
  if (!rdm__cache_key_make(request->driver, request->architecture, source, &key)) {
    return compile_source(request, source, code);
  }
  rdm__cache_turn turn;
  rdm_status status = RDM_OK;
  code->bytes = rdm__disk_cache_get(&key, request->anew, &code->size_bytes, &turn);
  if (code->bytes != NULL) {
    code->is_from_disk = true;
    rdm__count(RDM__COUNT_DISK_HITS, 1);
    log_disk_cache(request, source, &key, true);
  } else {
    if (turn.is_held) {
      rdm__count(RDM__COUNT_DISK_MISSES, 1);
      log_disk_cache(request, source, &key, false);
    }
    status = compile_source(request, source, code);
    rdm__disk_cache_end_turn(&turn, &key, status == RDM_OK ? code->bytes : NULL, code->size_bytes);
  }
  free(key.bytes);
  return status;
}

static rdm_status build_code(void *context, const rdm_module_source *source, void **out_value) {
  rdm__code *code = calloc(1, sizeof *code);
  if (code == NULL) return rdm__fail(RDM_ERROR_OUT_OF_MEMORY, "no memory to compile %.200s", source->name);
  rdm_status status = find_or_compile(context, source, code);
  if (status == RDM_OK) {
    *out_value = code;
    return RDM_OK;
  }
  free(code->bytes);
  free(code);
  return status;
}

static rdm_status get(rdm__build_cache *cache, const compile_request *request, const rdm_module_source *source,
                      uint64_t deadline_ns, const rdm__code **out_code) {
  void *value = NULL;
  rdm_status status = rdm__build_cache_get(cache, request->architecture, source, deadline_ns, build_code,
                                           (void *)(uintptr_t)request, &value);
  if (status == RDM_OK) *out_code = value;
  return status;
}

rdm_status rdm__compile(const rdm__driver *driver, const char *architecture, const rdm_module_source *source,
                        const rdm__code **out_code) {
  return rdm__compile_until(driver, architecture, source, UINT64_MAX, out_code);
}

rdm_status rdm__compile_until(const rdm__driver *driver, const char *architecture, const rdm_module_source *source,
                              uint64_t deadline_ns, const rdm__code **out_code) {
  compile_request request = {.driver = driver, .architecture = architecture};
  return get(&codes, &request, source, deadline_ns, out_code);
}

rdm_status rdm__compile_anew(const rdm__driver *driver, const char *architecture, const rdm_module_source *source,
                             const rdm__code **out_code) {
  compile_request request = {.driver = driver, .architecture = architecture, .anew = true};
  return get(&codes_made_anew, &request, source, UINT64_MAX, out_code);
}

rdm_status rdm__source_check(const rdm_module_source *source) {
  if (source == NULL) return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "source is null");
  if (source->struct_size < sizeof *source) {
    return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "source->struct_size is %u; set it to sizeof(rdm_module_source), %zu",
                     source->struct_size, sizeof *source);
  }
  if (source->name == NULL || source->source == NULL) {
    return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "source->%s is null", source->name == NULL ? "name" : "source");
  }
  if (source->option_count > 0 && source->options == NULL) {
    return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "source->options is null and option_count is %u",
                     source->option_count);
  }
  for (uint32_t i = 0; i < source->option_count; i++) {
    if (source->options[i] == NULL) return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "source->options[%u] is null", i);
  }
  return RDM_OK;
}

rdm_status rdm_code_get(const char *architecture, const rdm_module_source *source, const void **out_code,
                        size_t *out_code_size_bytes) {
  return rdm_code_get_within(architecture, source, RDM_WAIT_FOREVER, out_code, out_code_size_bytes);
}

rdm_status rdm_code_get_within(const char *architecture, const rdm_module_source *source, uint64_t timeout_ns,
                               const void **out_code, size_t *out_code_size_bytes) {
  if (architecture == NULL || out_code == NULL || out_code_size_bytes == NULL) {
    return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "%s is null",
                     architecture == NULL ? "architecture" : (out_code == NULL ? "out_code" : "out_code_size_bytes"));
  }
  size_t length = strlen(architecture);
  if (length == 0 || length > MOST_ARCHITECTURE_BYTES) {
    return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "architecture has %zu bytes; it has 1 to %d", length,
                     (int)MOST_ARCHITECTURE_BYTES);
  }
  const rdm__driver *driver = NULL;
  const rdm__code *code = NULL;
  rdm_status status = rdm__source_check(source);
  if (status == RDM_OK) status = rdm__runtime_enter(&driver);
  if (status != RDM_OK) return status;
  rdm__wait_limit limit = rdm__wait_limit_from(timeout_ns);
  status = rdm__compile_until(driver, architecture, source, limit.deadline_ns, &code);
  if (status == RDM_ERROR_TIMEOUT)
    return rdm__wait_limit_reached(&limit, "waiting for another thread's compile of a source", -1);
  if (status != RDM_OK) return status;
  *out_code = code->bytes;
  *out_code_size_bytes = code->size_bytes;
  return RDM_OK;
}

rdm_status rdm_module_compile_count(uint64_t *out_count) {
  if (out_count == NULL) return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "out_count is null");
  rdm_status status = rdm__runtime_check();
  if (status == RDM_OK) *out_count = rdm__counted(RDM__COUNT_COMPILES);
  return status;
}

rdm_status rdm_module_disk_hit_count(uint64_t *out_count) {
  if (out_count == NULL) return rdm__fail(RDM_ERROR_INVALID_ARGUMENT, "out_count is null");
  rdm_status status = rdm__runtime_check();
  if (status == RDM_OK) *out_count = rdm__counted(RDM__COUNT_DISK_HITS);
  return status;
}
