/* The run-time compiler, modules and their kernels. */
#include "conformance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* HIP 5 calls every source the same, whatever name it is given. */
static const char *source_name(void) {
  int version = 0;
  bool old = strcmp(driver->name, "hip") == 0 && driver->runtime_get_version(&version) == 0 && version < 60000000;
  return old ? "CompileSource" : "conformance.hip";
}

static void compiler(void) {
  int major = -1;
  int minor = -1;
  check_error("rtc.version", driver->rtc_version(&major, &minor), RDM_RTC_SUCCESS);
  check("rtc.version_number", major > 0 && minor >= 0, "is %d.%d", major, minor);
  check_error("rtc.version_null", driver->rtc_version(NULL, NULL), RDM_RTC_INVALID_INPUT);
  char *code = NULL;
  size_t code_size = 0;
  char log[4096];
  int error = compile_text(kernel_source, NULL, &code, &code_size, log, sizeof log);
  check("rtc.compile", error == RDM_RTC_SUCCESS, "returned %d (%s): %s", error, driver->rtc_error_string(error), log);
  check("rtc.code", code_size > 16, "is of %zu bytes", code_size);
  free(code);
  error = compile_text("extern \"C\" __global__ void broken() { no_such_name(); }", NULL, &code, &code_size, log,
                       sizeof log);
  check_error("rtc.error", error, RDM_RTC_COMPILATION);
  check("rtc.log_names_the_cause", strstr(log, "no_such_name") != NULL, "the log is '%s'", log);
  check("rtc.log_names_the_source", strstr(log, source_name()) != NULL, "the log is '%s'", log);
  free(code);
  error = compile_text(kernel_source, "-DRDM_CONFORMANCE=1", &code, &code_size, log, sizeof log);
  check_error("rtc.define", error, RDM_RTC_SUCCESS);
  free(code);
  error = compile_text("#ifndef RDM_CONFORMANCE\n#error it is not defined\n#endif\n", "-DRDM_CONFORMANCE=1", &code,
                       &code_size, log, sizeof log);
  check("rtc.define_is_seen", error == RDM_RTC_SUCCESS, "returned %d: %s", error, log);
  free(code);
  error = compile_text(kernel_source, "--no-such-option-of-any", &code, &code_size, log, sizeof log);
  check_either("rtc.unknown_option", error, RDM_RTC_INVALID_OPTION, RDM_RTC_COMPILATION);
  free(code);
}

static void compiler_arguments(void) {
  void *program = NULL;
  size_t size = 0;
  char bytes[16];
  check_error("rtc.null_source", driver->rtc_create_program(&program, NULL, "x"), RDM_RTC_INVALID_INPUT);
  check_either("rtc.null_result", driver->rtc_create_program(NULL, "int unused;", "x"), RDM_RTC_INVALID_PROGRAM,
               RDM_RTC_INVALID_INPUT);
  check_error("rtc.compile_null", driver->rtc_compile_program(NULL, 0, NULL), RDM_RTC_INVALID_PROGRAM);
  check_error("rtc.log_size_null", driver->rtc_get_log_size(NULL, &size), RDM_RTC_INVALID_PROGRAM);
  check_error("rtc.log_null", driver->rtc_get_log(NULL, bytes), RDM_RTC_INVALID_PROGRAM);
  check_error("rtc.code_size_null", driver->rtc_get_code_size(NULL, &size), RDM_RTC_INVALID_PROGRAM);
  check_error("rtc.code_null", driver->rtc_get_code(NULL, bytes), RDM_RTC_INVALID_PROGRAM);
  check_error("rtc.destroy_null", driver->rtc_destroy_program(&program), RDM_RTC_INVALID_PROGRAM);
  check_error("rtc.create", driver->rtc_create_program(&program, "int unused;", NULL), RDM_RTC_SUCCESS);
  check("rtc.program", program != NULL, "is null");
  check_error("rtc.destroy", driver->rtc_destroy_program(&program), RDM_RTC_SUCCESS);
  check("rtc.destroy_clears", program == NULL, "is not null");
  /* The compiler's errors are its own. */
  check("rtc.leaves_no_last_error", device_count == 0 || driver->get_last_error() == 0, "one is left");
}

static void modules(void) {
  void *module = make_module();
  void *function = NULL;
  check("module.handle", module != NULL, "is null");
  check_error("module.kernel", driver->module_get_function(&function, module, "fill"), 0);
  check("module.kernel_handle", function != NULL, "is null");
  int count = driver->kernel_argument_count(function);
  check("module.argument_count", count == 3 || count == -1, "is %d", count);
  count = driver->kernel_argument_count(make_kernel(module, "poke"));
  check("module.argument_count_of_one", count == 1 || count == -1, "is %d", count);
  check_error("module.leaves_no_last_error", driver->get_last_error(), 0);
  void *second = make_module();
  check("module.second_handle", second != NULL && second != module, "is the first");
  check_error("module.unload", driver->module_unload(module), 0);
  check_error("module.second_lives_on", driver->module_get_function(&function, second, "step"), 0);
  check_error("module.unload_second", driver->module_unload(second), 0);
}

static void missing_function(void) {
  void *module = make_module();
  void *function = NULL;
  check_error("module.missing_function", driver->module_get_function(&function, module, "no_such_kernel"),
              RDM_HIP_NOT_FOUND);
  check_error("module.missing_function_last_error", driver->get_last_error(), RDM_HIP_NOT_FOUND);
  check_error("module.missing_function_is_left_once", driver->get_last_error(), 0);
  check_error("module.found_after_missing", driver->module_get_function(&function, module, "fill"), 0);
  check_error("module.null_name", driver->module_get_function(&function, module, NULL), RDM_HIP_INVALID_VALUE);
  check_error("module.null_function", driver->module_get_function(NULL, module, "fill"), RDM_HIP_INVALID_VALUE);
  check_error("module.null_module", driver->module_get_function(&function, NULL, "fill"), RDM_HIP_INVALID_HANDLE);
}

static void bad_image(void) {
  void *module = NULL;
  static char image[4096] = "\177ELF\002\001\001";
  need("set_device", driver->set_device(0));
  need("device_synchronize", driver->device_synchronize());
  check_either("module.bad_image", driver->module_load_data(&module, image, sizeof image), RDM_HIP_INVALID_IMAGE,
               RDM_HIP_NO_BINARY_FOR_GPU);
  int left = driver->get_last_error();
  check_either("module.bad_image_last_error", left, RDM_HIP_INVALID_IMAGE, RDM_HIP_NO_BINARY_FOR_GPU);
  check_error("module.null_image", driver->module_load_data(&module, NULL, 0), RDM_HIP_INVALID_VALUE);
  check_error("module.null_result", driver->module_load_data(NULL, image, sizeof image), RDM_HIP_INVALID_VALUE);
  check_error("module.unload_null", driver->module_unload(NULL), RDM_HIP_INVALID_HANDLE);
  void *stream = make_stream();
  check_error("module.device_is_usable", driver->stream_synchronize(stream), 0);
  check("module.loads_after_bad", make_module() != NULL, "it does not");
}

static void *load_on_thread(void *argument) {
  *(void **)argument = make_module();
  return NULL;
}

/* A thread that has set no device loads and launches on device 0. */
static void fresh_thread(void) {
  void *module = NULL;
  on_thread(load_on_thread, &module);
  check("module.fresh_thread", module != NULL, "it did not load");
  void *stream = make_stream();
  float *memory = make_device_memory(sizeof *memory * 10);
  check_error("module.used_by_another_thread", launch_fill(make_kernel(module, "fill"), stream, memory, 1.0f, 10), 0);
  check_error("module.used_by_another_thread_done", driver->stream_synchronize(stream), 0);
}

const conformance_test module_tests[] = {
    {"compiler", compiler, 0},
    {"compiler_arguments", compiler_arguments, 0},
    {"modules", modules, 1},
    {"missing_function", missing_function, 1},
    {"bad_image", bad_image, 1},
    {"fresh_thread", fresh_thread, 1},
    {NULL, NULL, 0},
};
