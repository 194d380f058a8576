#include "driver/sim/program.h"

#include "driver/driver.h"
#include "driver/sim/compiler.h"
#include "driver/sim/object.h"
#include "driver/sim/state.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct rdm__sim_program {
  rdm__sim_object object;
  char *source;
  char *name;
  /* Held while it compiles; guards what came out. */
  pthread_mutex_t lock;
  rdm__sim_compilation compilation;
};

static void destroy_program(rdm__sim_object *object) {
  rdm__sim_program *program = (rdm__sim_program *)object;
  free(program->source);
  free(program->name);
  free(program->compilation.log);
  free(program->compilation.code);
  pthread_mutex_destroy(&program->lock);
  free(program);
}

rdm__sim_program *rdm__sim_program_get(const void *handle) {
  return rdm__sim_handle_get(handle, RDM__SIM_PROGRAM);
}

void rdm__sim_program_release(rdm__sim_program *program) {
  if (program != NULL) rdm__sim_object_release(&program->object);
}

int rdm__sim_program_create(void **out_program, const char *source, const char *name) {
  if (out_program == NULL) return RDM_RTC_INVALID_PROGRAM;
  if (source == NULL) return RDM_RTC_INVALID_INPUT;
  rdm__sim_program *program = calloc(1, sizeof *program);
  if (program == NULL) return RDM_RTC_OUT_OF_MEMORY;
  rdm__sim_object_init(&program->object, RDM__SIM_PROGRAM, -1, destroy_program);
  pthread_mutex_init(&program->lock, NULL);
  program->source = strdup(source);
  program->name = strdup(name == NULL || *name == '\0' ? "default_program" : name);
  void *handle = program->source == NULL || program->name == NULL ? NULL : rdm__sim_handle_add(&program->object);
  if (handle == NULL) {
    rdm__sim_program_release(program);
    return RDM_RTC_OUT_OF_MEMORY;
  }
  *out_program = handle;
  return RDM_RTC_SUCCESS;
}

int rdm__sim_program_compile(rdm__sim_program *program, int option_count, const char *const *options) {
  if (program == NULL) return RDM_RTC_INVALID_PROGRAM;
  if (option_count < 0 || (option_count > 0 && options == NULL)) return RDM_RTC_INVALID_INPUT;
  rdm__sim_state_block *state = rdm__sim_state();
  pthread_mutex_lock(&program->lock);
  int others = atomic_fetch_add_explicit(&state->in_compiler, 1, memory_order_acq_rel);
  rdm__sim_compilation made = {.result = RDM__SIM_RTC_INTERNAL_ERROR};
  if (others > 0 && state->one_compile_at_a_time) {
    made.log = strdup("two threads were inside the compiler at once, which takes one at a time\n");
  } else {
    made = rdm__sim_compile(state->compiler_path, program->source, program->name, option_count, options);
  }
  atomic_fetch_sub_explicit(&state->in_compiler, 1, memory_order_acq_rel);
  free(program->compilation.log);
  free(program->compilation.code);
  program->compilation = made;
  pthread_mutex_unlock(&program->lock);
  return made.result;
}

int rdm__sim_program_read(rdm__sim_program *program, rdm__sim_output_kind kind, size_t *out_size, char *out_bytes) {
  if (program == NULL) return RDM_RTC_INVALID_PROGRAM;
  if (out_size == NULL && out_bytes == NULL) return RDM_RTC_INVALID_INPUT;
  int result = RDM_RTC_SUCCESS;
  pthread_mutex_lock(&program->lock);
  const char *log = program->compilation.log == NULL ? "" : program->compilation.log;
  const char *bytes = kind == RDM__SIM_OUTPUT_LOG ? log : program->compilation.code;
  size_t size = kind == RDM__SIM_OUTPUT_LOG ? strlen(log) + 1 : program->compilation.code_size;
  if (bytes == NULL) {
    result = RDM_RTC_INVALID_PROGRAM;
  } else {
    if (out_size != NULL) *out_size = size;
    if (out_bytes != NULL) memcpy(out_bytes, bytes, size);
  }
  pthread_mutex_unlock(&program->lock);
  return result;
}

int rdm__sim_program_destroy(const void *handle) {
  rdm__sim_program *program = rdm__sim_handle_remove(handle, RDM__SIM_PROGRAM);
  if (program == NULL) return RDM_RTC_INVALID_PROGRAM;
  rdm__sim_program_release(program);
  return RDM_RTC_SUCCESS;
}
