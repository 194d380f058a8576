#include "driver/sim/compiler.h"

#include "driver/driver.h"
#include "driver/sim/compiler_files.h"
#include "driver/sim/compiler_options.h"
#include "driver/sim/compiler_process.h"
#include "driver/sim/kernel_abi.h"
#include "driver/sim/kernel_source.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Finding it ------------------------------------------------------------------------------------------------ */

/* Looks the name up along PATH, as a shell would; a name with a slash is a path already. */
static bool find_in_path(const char *name, char *out_path, size_t size) {
  if (strchr(name, '/') != NULL) {
    int length = snprintf(out_path, size, "%s", name);
    return length > 0 && (size_t)length < size && access(out_path, X_OK) == 0;
  }
  const char *at = getenv("PATH");
  if (at == NULL) at = "/usr/local/bin:/usr/bin:/bin";
  while (*at != '\0') {
    size_t folder = strcspn(at, ":");
    int length = snprintf(out_path, size, "%.*s%s%s", (int)folder, at, folder == 0 ? "./" : "/", name);
    struct stat status;
    if (length > 0 && (size_t)length < size && access(out_path, X_OK) == 0 && stat(out_path, &status) == 0 &&
        S_ISREG(status.st_mode)) {
      return true;
    }
    at += folder;
    if (*at == ':') at++;
  }
  return false;
}

void rdm__sim_compiler_find(char *out_path, size_t size) {
  static const char *const candidates[] = {"c++", "g++", "clang++", "cc", "gcc", "clang"};
  const char *chosen = getenv("RDM_SIM_COMPILER");
  if (chosen != NULL && *chosen != '\0') {
    if (!find_in_path(chosen, out_path, size)) out_path[0] = '\0';
    return;
  }
  for (size_t index = 0; index < sizeof candidates / sizeof candidates[0]; index++) {
    if (find_in_path(candidates[index], out_path, size)) return;
  }
  out_path[0] = '\0';
}

/* "g++-12" and the like are C++ compilers; what has no "++" in its name is taken for a C compiler. */
static bool compiles_cxx(const char *compiler_path) {
  const char *slash = strrchr(compiler_path, '/');
  return strstr(slash == NULL ? compiler_path : slash, "++") != NULL;
}

/* ---- Compiling ------------------------------------------------------------------------------------------------- */

static rdm__sim_compilation failure(int result, const char *message) {
  return (rdm__sim_compilation){.result = result, .log = strdup(message)};
}

/* Reads the shared object that the compiler wrote, and ends it with what shows later that it is whole. */
static rdm__sim_compilation read_code(const rdm__sim_compiler_files *files) {
  rdm__sim_compilation done = {.result = RDM_RTC_SUCCESS, .log = rdm__sim_compiler_files_log(files)};
  rdm__sim_code_trailer trailer = {.magic = RDM__SIM_CODE_MAGIC};
  size_t size = 0;
  done.code = rdm__sim_compiler_files_code(files, sizeof trailer, &size);
  if (done.code == NULL) {
    if (done.log != NULL && done.log[0] != '\0') {
      done.result = RDM_RTC_COMPILATION;
      return done;
    }
    free(done.log);
    return failure(RDM_RTC_COMPILATION, "the compiler gave no error and no code\n");
  }
  trailer.size = size;
  trailer.checksum = rdm__sim_checksum(done.code, size);
  memcpy(done.code + size, &trailer, sizeof trailer);
  done.code_size = size + sizeof trailer;
  return done;
}

static rdm__sim_compilation run_compiler(const char *compiler_path, const rdm__sim_compiler_files *files, bool cxx,
                                         const char *const *options, int option_count) {
  static const char *const before[] = {
      "-O1",
      "-shared",
      "-fPIC",
      "-pipe",
      /* A kernel is called from its own file alone, so the compiler may inline it into the loop over its threads. */
      "-fvisibility=hidden",
      "-fno-asynchronous-unwind-tables",
      /* A write through a null pointer must stay one, to be caught as the illegal access that it is. */
      "-fno-delete-null-pointer-checks",
  };
  static const char *const only_cxx[] = {"-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics"};
  /* In C a function that is not there would be called all the same, and give an int. */
  static const char *const only_c[] = {"-Werror=implicit-function-declaration"};
  static const char *const libraries[] = {"-nostdlib", "-lm", "-lc"};
  const char *arguments[RDM__SIM_MAX_OPTIONS + 32];
  int count = 0;
  arguments[count++] = compiler_path;
  for (size_t index = 0; index < sizeof before / sizeof before[0]; index++) arguments[count++] = before[index];
  for (size_t index = 0; cxx && index < sizeof only_cxx / sizeof only_cxx[0]; index++) {
    arguments[count++] = only_cxx[index];
  }
  for (size_t index = 0; !cxx && index < sizeof only_c / sizeof only_c[0]; index++) arguments[count++] = only_c[index];
  for (int index = 0; index < option_count; index++) arguments[count++] = options[index];
  arguments[count++] = "-x";
  arguments[count++] = cxx ? "c++" : "c";
  arguments[count++] = files->source_path;
  arguments[count++] = "-x";
  arguments[count++] = "none";
  arguments[count++] = "-o";
  arguments[count++] = files->code_path;
  for (size_t index = 0; index < sizeof libraries / sizeof libraries[0]; index++) {
    arguments[count++] = libraries[index];
  }
  arguments[count] = NULL;

  int exit_code;
  int error = rdm__sim_run_process(arguments, files, &exit_code);
  if (error != 0) {
    char message[PATH_MAX + 128];
    snprintf(message, sizeof message, "the compiler %s could not be run: %s\n", compiler_path, strerror(error));
    return failure(RDM_RTC_COMPILATION, message);
  }
  if (exit_code == 0) return read_code(files);
  rdm__sim_compilation failed = {.result = RDM_RTC_COMPILATION, .log = rdm__sim_compiler_files_log(files)};
  if (failed.log == NULL || failed.log[0] == '\0') {
    free(failed.log);
    return failure(RDM_RTC_COMPILATION, "the compiler ended with an error and printed nothing\n");
  }
  return failed;
}

static rdm__sim_compilation compile_text(const char *compiler_path, const char *text, bool cxx,
                                         const rdm__sim_options *options, bool in_memory) {
  rdm__sim_compiler_files *files = malloc(sizeof *files);
  if (files == NULL) return failure(RDM_RTC_OUT_OF_MEMORY, "out of memory\n");
  rdm__sim_compilation result;
  int error = rdm__sim_compiler_files_open(files, text, cxx, in_memory);
  if (error == 0) {
    result = run_compiler(compiler_path, files, cxx, options->passed, options->passed_count);
    rdm__sim_compiler_files_close(files);
  } else {
    char message[128];
    snprintf(message, sizeof message, "no files for the compiler could be made: %s\n", strerror(error));
    result = failure(RDM_RTC_COMPILATION, message);
  }
  free(files);
  return result;
}

/* True where the compiler complains of the names that it was given for files in memory. */
static bool needs_named_files(const rdm__sim_compilation *failed) {
  return failed->result == RDM_RTC_COMPILATION && failed->log != NULL && strstr(failed->log, "/proc/self/fd") != NULL;
}

rdm__sim_compilation rdm__sim_compile(const char *compiler_path, const char *source, const char *name, int option_count,
                                      const char *const *options) {
  if (compiler_path[0] == '\0') {
    return failure(
        RDM_RTC_COMPILATION,
        "the simulated GPU found no compiler: RDM_SIM_COMPILER names none that can be run, or it is unset and "
        "PATH has no c++, g++, clang++, cc, gcc or clang\n");
  }
  bool cxx = compiles_cxx(compiler_path);
  rdm__sim_options checked;
  if (!rdm__sim_options_check(option_count, options, cxx, &checked)) {
    return failure(RDM_RTC_INVALID_OPTION, checked.message);
  }
  char *text = rdm__sim_kernel_source(source, name, cxx);
  if (text == NULL) return failure(RDM_RTC_OUT_OF_MEMORY, "out of memory\n");
  rdm__sim_compilation result = compile_text(compiler_path, text, cxx, &checked, true);
  if (needs_named_files(&result)) {
    free(result.log);
    result = compile_text(compiler_path, text, cxx, &checked, false);
  }
  free(text);
  return result;
}
