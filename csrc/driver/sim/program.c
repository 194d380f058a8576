/* The run-time compiler's entry points. It needs no device, no hipInit, and keeps no last error. */
#include "driver/sim/call.h"
#include "driver/sim/compiler.h"
#include "driver/sim/driver_table.h"
#include "driver/sim/object.h"
#include "driver/sim/state.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { VERSION_MAJOR = 1, VERSION_MINOR = 0 };

typedef struct sim_program {
  rdm__sim_object object;
  char *source;
  char *name;
  /* Held while it compiles; guards what came out. */
  pthread_mutex_t lock;
  rdm__sim_compilation compilation;
} sim_program;

static void destroy_program(rdm__sim_object *object) {
  sim_program *program = (sim_program *)object;
  free(program->source);
  free(program->name);
  free(program->compilation.log);
  free(program->compilation.code);
  pthread_mutex_destroy(&program->lock);
  free(program);
}

static sim_program *get_program(const void *handle) {
  return rdm__sim_handle_get(handle, RDM__SIM_PROGRAM);
}

static void release_program(sim_program *program) {
  if (program != NULL) rdm__sim_object_release(&program->object);
}

int rdm__sim_rtc_version(int *major, int *minor) {
  rdm__sim_call_scope scope;
  int result = rdm__sim_call_begin(&scope, RDM__CALL_rtc_version, NULL, -1);
  if (result == RDM_RTC_SUCCESS && (major == NULL || minor == NULL)) result = RDM_RTC_INVALID_INPUT;
  if (result == RDM_RTC_SUCCESS) {
    *major = VERSION_MAJOR;
    *minor = VERSION_MINOR;
  }
  return rdm__sim_call_end(&scope, result);
}

static int create(void **out_program, const char *source, const char *name) {
  if (out_program == NULL) return RDM_RTC_INVALID_PROGRAM;
  if (source == NULL) return RDM_RTC_INVALID_INPUT;
  sim_program *program = calloc(1, sizeof *program);
  if (program == NULL) return RDM_RTC_OUT_OF_MEMORY;
  rdm__sim_object_init(&program->object, RDM__SIM_PROGRAM, -1, destroy_program);
  pthread_mutex_init(&program->lock, NULL);
  program->source = strdup(source);
  program->name = strdup(name == NULL || *name == '\0' ? "default_program" : name);
  void *handle = program->source == NULL || program->name == NULL ? NULL : rdm__sim_handle_add(&program->object);
  if (handle == NULL) {
    release_program(program);
    return RDM_RTC_OUT_OF_MEMORY;
  }
  *out_program = handle;
  return RDM_RTC_SUCCESS;
}

int rdm__sim_rtc_create_program(void **program, const char *source, const char *name) {
  rdm__sim_call_scope scope;
  void *handle = NULL;
  int result = rdm__sim_call_begin(&scope, RDM__CALL_rtc_create_program, NULL, -1);
  if (result == RDM_RTC_SUCCESS) result = create(program, source, name);
  if (result == RDM_RTC_SUCCESS) handle = *program;
  return rdm__sim_call_end_created(&scope, result, handle);
}

static int compile(sim_program *program, int option_count, const char *const *options) {
  if (program == NULL) return RDM_RTC_INVALID_PROGRAM;
  if (option_count < 0 || (option_count > 0 && options == NULL)) return RDM_RTC_INVALID_INPUT;
  rdm__sim_state_block *state = rdm__sim_state();
  pthread_mutex_lock(&program->lock);
  int others = atomic_fetch_add_explicit(&state->in_compiler, 1, memory_order_acq_rel);
  rdm__sim_compilation made = {.result = RDM__SIM_RTC_INTERNAL_ERROR};
  if (others > 0 && state->one_compile_at_a_time) {
    made.log = strdup("two threads were inside the compiler at once, which takes one at a time\n");
  } else {
    made = rdm__sim_compile(rdm__sim_compiler_path(), program->source, program->name, option_count, options);
  }
  atomic_fetch_sub_explicit(&state->in_compiler, 1, memory_order_acq_rel);
  free(program->compilation.log);
  free(program->compilation.code);
  program->compilation = made;
  pthread_mutex_unlock(&program->lock);
  return made.result;
}

int rdm__sim_rtc_compile_program(void *program, int option_count, const char *const *options) {
  rdm__sim_call_scope scope;
  sim_program *found = get_program(program);
  int result = rdm__sim_call_begin(&scope, RDM__CALL_rtc_compile_program, program, -1);
  if (result == RDM_RTC_SUCCESS) result = compile(found, option_count, options);
  release_program(found);
  return rdm__sim_call_end(&scope, result);
}

/* What a caller may read of a program: its log, or its code. */
typedef enum output_kind { OUTPUT_LOG, OUTPUT_CODE } output_kind;

/* Gives the size, and copies the bytes where there is a place for them. A log is there always, ended by its NUL. */
static int read_output(sim_program *program, output_kind kind, size_t *out_size, char *out_bytes) {
  if (program == NULL) return RDM_RTC_INVALID_PROGRAM;
  if (out_size == NULL && out_bytes == NULL) return RDM_RTC_INVALID_INPUT;
  int result = RDM_RTC_SUCCESS;
  pthread_mutex_lock(&program->lock);
  const char *log = program->compilation.log == NULL ? "" : program->compilation.log;
  const char *bytes = kind == OUTPUT_LOG ? log : program->compilation.code;
  size_t size = kind == OUTPUT_LOG ? strlen(log) + 1 : program->compilation.code_size;
  if (bytes == NULL) {
    result = RDM_RTC_INVALID_PROGRAM;
  } else {
    if (out_size != NULL) *out_size = size;
    if (out_bytes != NULL) memcpy(out_bytes, bytes, size);
  }
  pthread_mutex_unlock(&program->lock);
  return result;
}

static int output_call(rdm__call call, output_kind kind, void *handle, size_t *out_size, char *out_bytes) {
  rdm__sim_call_scope scope;
  sim_program *found = get_program(handle);
  int result = rdm__sim_call_begin(&scope, call, handle, -1);
  if (result == RDM_RTC_SUCCESS) result = read_output(found, kind, out_size, out_bytes);
  release_program(found);
  return rdm__sim_call_end(&scope, result);
}

int rdm__sim_rtc_get_log_size(void *program, size_t *size) {
  return output_call(RDM__CALL_rtc_get_log_size, OUTPUT_LOG, program, size, NULL);
}

int rdm__sim_rtc_get_log(void *program, char *log) {
  return output_call(RDM__CALL_rtc_get_log, OUTPUT_LOG, program, NULL, log);
}

int rdm__sim_rtc_get_code_size(void *program, size_t *size) {
  return output_call(RDM__CALL_rtc_get_code_size, OUTPUT_CODE, program, size, NULL);
}

int rdm__sim_rtc_get_code(void *program, char *code) {
  return output_call(RDM__CALL_rtc_get_code, OUTPUT_CODE, program, NULL, code);
}

int rdm__sim_rtc_destroy_program(void **program) {
  rdm__sim_call_scope scope;
  const void *handle = program == NULL ? NULL : *program;
  int result = rdm__sim_call_begin(&scope, RDM__CALL_rtc_destroy_program, handle, -1);
  if (result == RDM_RTC_SUCCESS) {
    sim_program *removed = rdm__sim_handle_remove(handle, RDM__SIM_PROGRAM);
    if (removed == NULL) {
      result = RDM_RTC_INVALID_PROGRAM;
    } else {
      *program = NULL;
    }
    release_program(removed);
  }
  return rdm__sim_call_end(&scope, result);
}
