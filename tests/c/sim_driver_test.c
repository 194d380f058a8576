/*
 * The tests of the simulated driver: its table is called directly, without the library above it. Without an argument
 * all tests run, each in a process of its own; with a test's name, that one runs in this process; --list prints the
 * names.
 */
#include "sim_driver_test.h"
#include "self.h"

/* A test that hangs ends by this many seconds. */
enum { SIM_TEST_SECONDS = 100 };

const rdm__driver *driver;
atomic_int failed_checks;

void open_driver(int device_count) {
  MUST(rdm__sim_open(device_count, &driver));
}

void hold(int device, bool held) {
  rdm__sim_device_set_held(rdm__sim_device_at(device), held);
}

void fault(int device, int error) {
  rdm__sim_device_set_fault(rdm__sim_device_at(device), error);
}

void inject(const char *entry_point, uint64_t nth, uint64_t times, int error, uint64_t stall_ns) {
  rdm__call call = entry_point == NULL ? RDM__CALL_COUNT : rdm__sim_call_by_name(entry_point);
  CHECK(entry_point == NULL || call != RDM__CALL_COUNT);
  CHECK(rdm__sim_injections_add(rdm__sim_state()->injections, call, nth, times, error, stall_ns));
}

rdm_sim_call last_call(void) {
  rdm_sim_call call;
  memset(&call, 0, sizeof call);
  uint64_t total = rdm__sim_call_log_count(RDM__CALL_COUNT);
  CHECK(rdm__sim_call_log_read(total - 1, &call, 1) == 1);
  return call;
}

void *create_stream(void) {
  void *stream = NULL;
  MUST(driver->stream_create(&stream, RDM_HIP_STREAM_NON_BLOCKING));
  return stream;
}

void *create_event(unsigned flags) {
  void *event = NULL;
  MUST(driver->event_create(&event, flags));
  return event;
}

void *allocate(size_t size) {
  void *pointer = NULL;
  MUST(driver->memory_allocate(&pointer, size));
  return pointer;
}

void sleep_ms(unsigned milliseconds) {
  struct timespec time = rdm__timespec(milliseconds * RDM__NS_PER_MS);
  nanosleep(&time, NULL);
}

void *load_source(const char *source) {
  void *program = NULL;
  MUST(driver->rtc_create_program(&program, source, "test.hip"));
  int result = driver->rtc_compile_program(program, 0, NULL);
  if (result != 0) {
    size_t size = 0;
    driver->rtc_get_log_size(program, &size);
    char *log = malloc(size + 1);
    driver->rtc_get_log(program, log);
    fprintf(stderr, "%s\n", log);
    exit(1);
  }
  size_t size = 0;
  MUST(driver->rtc_get_code_size(program, &size));
  char *code = malloc(size);
  MUST(driver->rtc_get_code(program, code));
  MUST(driver->rtc_destroy_program(&program));
  void *module = NULL;
  MUST(driver->module_load_data(&module, code, size));
  free(code);
  return module;
}

void *get_function(void *module, const char *name) {
  void *function = NULL;
  MUST(driver->module_get_function(&function, module, name));
  return function;
}

int launch(void *function, void *stream, unsigned threads, void **arguments) {
  const unsigned grid[3] = {1, 1, 1};
  const unsigned block[3] = {threads, 1, 1};
  return driver->launch_kernel(function, grid, block, 0, stream, arguments);
}

static bool run_in_process_of_its_own(const char *program, const sim_test *test) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    alarm(SIM_TEST_SECONDS);
    char path[4096];
    if (self_path(path, sizeof path)) execl(path, program, test->name, (char *)NULL);
    _exit(127);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return false;
  if (WIFSIGNALED(status) && WTERMSIG(status) != test->ends_by) {
    fprintf(stderr, "%s: ended by signal %d\n", test->name, WTERMSIG(status));
  }
  if (test->ends_by == 0) return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  /* A sanitizer reports the signal and exits. */
  return SIM_TEST_SANITIZED ? status != 0 : WIFSIGNALED(status) && WTERMSIG(status) == test->ends_by;
}

int main(int argument_count, char **arguments) {
  const sim_test *const groups[] = {driver_tests, stream_tests,  fault_tests,
                                    kernel_tests, control_tests, capture_tests};
  const bool lists = argument_count > 1 && strcmp(arguments[1], "--list") == 0;
  int passed = 0;
  int failed = 0;
  for (size_t group = 0; group < sizeof groups / sizeof groups[0]; group++) {
    for (const sim_test *test = groups[group]; test->name != NULL; test++) {
      if (lists) {
        printf("%s\n", test->name);
        continue;
      }
      if (argument_count > 1) {
        if (strcmp(arguments[1], test->name) != 0) continue;
        if (test->environment != NULL) putenv((char *)(uintptr_t)test->environment);
        test->run();
        return atomic_load(&failed_checks) == 0 ? 0 : 1;
      }
      bool good = run_in_process_of_its_own(arguments[0], test);
      printf("%s %s\n", good ? "ok    " : "FAILED", test->name);
      *(good ? &passed : &failed) += 1;
    }
  }
  if (lists) return 0;
  if (argument_count > 1) {
    fprintf(stderr, "there is no test named %s\n", arguments[1]);
    return 1;
  }
  printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}
