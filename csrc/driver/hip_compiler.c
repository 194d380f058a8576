#ifdef RDM_DRIVER_HIP

#include "hip_compiler.h"

#include "loader.h"
#include "no_compiler.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char architecture_option[] = "--offload-arch=";

static const rdm__hip_library *library;

/* What the table calls a program: hiprtc's own, and what we say of it where hiprtc was not asked. */
typedef struct program_record {
  void *program;
  char text[320];
} program_record;

/* ---- The guard ------------------------------------------------------------------------------------------------- */

/*
 * hiprtc 5.2 and 6.4 load AMD's code object manager by themselves, when the first program is created. Where it is not
 * found they call a null pointer, and where it does not know the architecture, such as that of a GPU newer than it,
 * they free an invalid one. So it is loaded and asked before them.
 */
typedef struct isa_metadata {
  unsigned long long handle;
} isa_metadata;

static struct {
  pthread_mutex_t lock;
  bool looked_up;
  /* Why hiprtc must not be entered; empty where it may. */
  char missing[512];
  int (*get_isa_metadata)(const char *isa_name, isa_metadata *metadata);
  int (*destroy_metadata)(isa_metadata metadata);
} manager = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The file name under which hiprtc will open the manager is a text in its own file: the number differs by builder. */
static bool find_manager_name(char *out, size_t capacity) {
  static const char stem[] = "libamd_comgr.so";
  bool found = false;
  int file = open(library->compiler_path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  struct stat status;
  if (fstat(file, &status) == 0 && status.st_size > 0) {
    size_t size = (size_t)status.st_size;
    char *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (bytes != MAP_FAILED) {
      const char *text = memmem(bytes, size, stem, sizeof stem - 1);
      if (text != NULL) {
        size_t length = strnlen(text, size - (size_t)(text - bytes));
        found = length < capacity;
        if (found) {
          memcpy(out, text, length);
          out[length] = '\0';
        }
      }
      munmap(bytes, size);
    }
  }
  close(file);
  return found;
}

/* Once it is loaded, hiprtc's own attempt finds it by its soname. */
static void *load_manager(void) {
  static const char *const sonames[] = {NULL};
  void *handle = rdm__loader_find_loaded("hip", "libamd_comgr", sonames);
  char name[64];
  if (handle != NULL || !find_manager_name(name, sizeof name)) return handle;
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s", library->compiler_path);
  char *slash = strrchr(path, '/');
  size_t folder = slash != NULL ? (size_t)(slash + 1 - path) : 0;
  if (snprintf(path + folder, sizeof path - folder, "%s", name) < (int)(sizeof path - folder)) {
    handle = rdm__loader_open("hip", path);
  }
  if (handle == NULL) handle = rdm__loader_open("hip", name);
  if (handle == NULL) {
    char tried[384];
    rdm__loader_list("hip", "libamd_comgr", tried, sizeof tried);
    snprintf(manager.missing, sizeof manager.missing, "hiprtc needs AMD's code object manager; tried: %s", tried);
  }
  return handle;
}

/* False where hiprtc must not be entered. */
static bool prepare_manager(void) {
  pthread_mutex_lock(&manager.lock);
  if (!manager.looked_up) {
    void *handle = load_manager();
    if (handle != NULL) {
      const rdm__loader_symbol symbols[] = {{"amd_comgr_get_isa_metadata", &manager.get_isa_metadata, true},
                                            {"amd_comgr_destroy_metadata", &manager.destroy_metadata, true}};
      const char *missing = NULL;
      if (!rdm__loader_resolve(handle, symbols, 2, &missing)) manager.get_isa_metadata = NULL;
    }
    manager.looked_up = true;
  }
  bool may_enter = manager.missing[0] == '\0';
  pthread_mutex_unlock(&manager.lock);
  return may_enter;
}

static bool knows_architecture(const char *architecture) {
  /* Without the manager in sight there is nothing to ask, and hiprtc decides. */
  if (manager.get_isa_metadata == NULL) return true;
  char isa_name[320];
  isa_metadata metadata = {0};
  int length = snprintf(isa_name, sizeof isa_name, "amdgcn-amd-amdhsa--%s", architecture);
  if (length < 0 || (size_t)length >= sizeof isa_name) return false;
  if (manager.get_isa_metadata(isa_name, &metadata) != 0) return false;
  (void)manager.destroy_metadata(metadata);
  return true;
}

/* ---- The entries ----------------------------------------------------------------------------------------------- */

static int create_program(void **program, const char *source, const char *name) {
  /* hiprtc 5.2 and 6.4 throw an exception out of their C interface for a null text. */
  if (program == NULL) return RDM_RTC_INVALID_PROGRAM;
  if (source == NULL) return RDM_RTC_INVALID_INPUT;
  if (!prepare_manager()) return RDM__RTC_NO_COMPILER;
  program_record *record = calloc(1, sizeof *record);
  if (record == NULL) return RDM_RTC_OUT_OF_MEMORY;
  int error = library->hiprtcCreateProgram(&record->program, source, name != NULL ? name : "", 0, NULL, NULL);
  if (error != RDM_RTC_SUCCESS) {
    free(record);
    return error;
  }
  *program = record;
  return RDM_RTC_SUCCESS;
}

static int compile_program(void *program, int option_count, const char *const *options) {
  program_record *record = program;
  if (record == NULL) return RDM_RTC_INVALID_PROGRAM;
  if (option_count < 0 || (option_count > 0 && options == NULL)) return RDM_RTC_INVALID_INPUT;
  size_t prefix = sizeof architecture_option - 1;
  for (int i = 0; i < option_count; i++) {
    if (strncmp(options[i], architecture_option, prefix) != 0 || knows_architecture(options[i] + prefix)) continue;
    snprintf(record->text, sizeof record->text,
             "hiprtc of this version does not know the architecture %.128s; it needs a newer ROCm",
             options[i] + prefix);
    return RDM_RTC_INVALID_OPTION;
  }
  record->text[0] = '\0';
  /* Its prototype lacks a const: the texts and the list are only read. */
  return library->hiprtcCompileProgram(record->program, option_count, (const char **)(uintptr_t)options);
}

static int get_log_size(void *program, size_t *size) {
  const program_record *record = program;
  if (record == NULL) return RDM_RTC_INVALID_PROGRAM;
  if (size == NULL) return RDM_RTC_INVALID_INPUT;
  if (record->text[0] == '\0') return library->hiprtcGetProgramLogSize(record->program, size);
  *size = strlen(record->text) + 1;
  return RDM_RTC_SUCCESS;
}

static int get_log(void *program, char *log) {
  const program_record *record = program;
  if (record == NULL) return RDM_RTC_INVALID_PROGRAM;
  if (log == NULL) return RDM_RTC_INVALID_INPUT;
  if (record->text[0] == '\0') return library->hiprtcGetProgramLog(record->program, log);
  memcpy(log, record->text, strlen(record->text) + 1);
  return RDM_RTC_SUCCESS;
}

static int get_code_size(void *program, size_t *size) {
  const program_record *record = program;
  if (record == NULL) return RDM_RTC_INVALID_PROGRAM;
  return library->hiprtcGetCodeSize(record->program, size);
}

static int get_code(void *program, char *code) {
  const program_record *record = program;
  if (record == NULL) return RDM_RTC_INVALID_PROGRAM;
  return library->hiprtcGetCode(record->program, code);
}

static int destroy_program(void **program) {
  if (program == NULL) return RDM_RTC_INVALID_INPUT;
  if (*program == NULL) return RDM_RTC_INVALID_PROGRAM;
  program_record *record = *program;
  int error = library->hiprtcDestroyProgram(&record->program);
  free(record);
  *program = NULL;
  return error;
}

static const char *error_string(int error) {
  if (!library->has_compiler) return library->compiler_text;
  if (error == RDM__RTC_NO_COMPILER) return manager.missing;
  const char *text = library->hiprtcGetErrorString(error);
  return text != NULL ? text : "unknown hiprtc error";
}

void rdm__hip_compiler_fill(rdm__driver *table, const rdm__hip_library *opened) {
  library = opened;
  table->architecture_option = architecture_option;
  table->rtc_error_string = error_string;
  if (!library->has_compiler) {
    rdm__no_compiler_fill(table);
    return;
  }
  table->rtc_version = library->hiprtcVersion;
  table->rtc_create_program = create_program;
  table->rtc_compile_program = compile_program;
  table->rtc_get_log_size = get_log_size;
  table->rtc_get_log = get_log;
  table->rtc_get_code_size = get_code_size;
  table->rtc_get_code = get_code;
  table->rtc_destroy_program = destroy_program;
}

#else

/* ISO C wants a declaration in every file. */
typedef int rdm__hip_compiler_is_not_built_in;

#endif
