/*
 * The driver `hip` against AMD's real runtime on a machine without an AMD GPU.
 *
 *   cc -std=c11 -D_GNU_SOURCE -DRDM_DRIVER_HIP -O1 -g -Icsrc -Icsrc/include tests/c/hip_runtime_test.c \
 *     csrc/driver/hip.c csrc/driver/hip_library.c csrc/driver/hip_compiler.c csrc/driver/loader.c \
 *     csrc/driver/no_compiler.c csrc/status.c -o hip_runtime_test -pthread -ldl
 *   ./hip_runtime_test [--processes N]
 *
 * Each call that needs a device is made in a process of its own, so that a crash or a hang is that call's failure
 * alone; then all are made in one process. Ends with "N passed, M failed, K skipped".
 */
#include "driver/driver.h"
#include "status.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const rdm__driver *driver;
static int passed;
static int failed;
static int skipped;

static void report(bool good, const char *what) {
  if (good) {
    passed++;
  } else {
    failed++;
    printf("FAILED: %s\n", what);
  }
}

#define CHECK(condition) report((condition), #condition)

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void nothing(void *user_data) {
  (void)user_data;
}

/* ---- Calls that need a device ---------------------------------------------------------------------------------- */

static int call_get_device_count(void) {
  int count = -1;
  int error = driver->get_device_count(&count);
  return count == 0 ? error : -1;
}

static int call_set_device(void) {
  return driver->set_device(0);
}

static int call_set_device_second(void) {
  return driver->set_device(1);
}

static int call_set_device_flags(void) {
  return driver->set_device_flags(RDM_HIP_DEVICE_SCHEDULE_BLOCKING_SYNC);
}

static int call_get_device_properties(void) {
  rdm__device_properties properties;
  return driver->get_device_properties(&properties, 0);
}

static int call_device_synchronize(void) {
  return driver->device_synchronize();
}

static int call_memory_allocate(void) {
  void *pointer = NULL;
  return driver->memory_allocate(&pointer, 4096);
}

static int call_host_memory_allocate(void) {
  void *pointer = NULL;
  return driver->host_memory_allocate(&pointer, 4096, 0);
}

static int call_memory_copy_async(void) {
  char from[64] = "";
  char to[64];
  return driver->memory_copy_async(to, from, sizeof to, 4, NULL);
}

static int call_memory_set_async(void) {
  char to[64];
  return driver->memory_set_async(to, 0, sizeof to, NULL);
}

static int call_stream_create(void) {
  void *stream = NULL;
  return driver->stream_create(&stream, RDM_HIP_STREAM_NON_BLOCKING);
}

static int call_stream_query(void) {
  return driver->stream_query(NULL);
}

static int call_stream_synchronize(void) {
  return driver->stream_synchronize(NULL);
}

static int call_event_create(void) {
  void *event = NULL;
  return driver->event_create(&event, RDM_HIP_EVENT_DISABLE_TIMING);
}

static int call_event_record(void) {
  return driver->event_record(NULL, NULL);
}

static int call_launch_host_function(void) {
  return driver->launch_host_function(NULL, nothing, NULL);
}

static int call_module_load_data(void) {
  static const char image[256] = "\177ELF";
  void *module = NULL;
  return driver->module_load_data(&module, image, sizeof image);
}

static int call_launch_kernel(void) {
  const unsigned one[3] = {1, 1, 1};
  return driver->launch_kernel(NULL, one, one, 0, NULL, NULL);
}

static const struct device_call {
  const char *name;
  int (*call)(void);
} device_calls[] = {
    {"hipGetDeviceCount", call_get_device_count},
    {"hipSetDevice(0)", call_set_device},
    {"hipSetDevice(1)", call_set_device_second},
    {"hipSetDeviceFlags", call_set_device_flags},
    {"hipGetDeviceProperties", call_get_device_properties},
    {"hipDeviceSynchronize", call_device_synchronize},
    {"hipMalloc", call_memory_allocate},
    {"hipHostMalloc", call_host_memory_allocate},
    {"hipMemcpyAsync", call_memory_copy_async},
    {"hipMemsetAsync", call_memory_set_async},
    {"hipStreamCreateWithFlags", call_stream_create},
    {"hipStreamQuery", call_stream_query},
    {"hipStreamSynchronize", call_stream_synchronize},
    {"hipEventCreateWithFlags", call_event_create},
    {"hipEventRecord", call_event_record},
    {"hipLaunchHostFunc", call_launch_host_function},
    {"hipModuleLoadData", call_module_load_data},
    {"hipModuleLaunchKernel", call_launch_kernel},
};

enum { DEVICE_CALL_COUNT = sizeof device_calls / sizeof device_calls[0] };

/* A call's result travels in a child's output, since an exit status is too narrow for an error number. */
static int child_call(int index) {
  double start = now();
  int error = device_calls[index].call();
  printf("%d %f\n", error, now() - start);
  return 0;
}

/* ---- Children -------------------------------------------------------------------------------------------------- */

static const char *self;

/* Runs this program with the arguments, its output into `output`; the wait status, or -1 where it ran past the limit.
 */
static int run_child(const char *mode, const char *argument, char *output, size_t capacity, int limit_seconds) {
  int ends[2];
  fflush(stdout);
  if (pipe(ends) != 0) return -1;
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    alarm((unsigned)limit_seconds);
    execl(self, self, mode, argument, (char *)NULL);
    _exit(127);
  }
  close(ends[1]);
  size_t used = 0;
  while (used + 1 < capacity) {
    ssize_t got = read(ends[0], output + used, capacity - 1 - used);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    used += (size_t)got;
  }
  output[used] = '\0';
  close(ends[0]);
  int status = -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

static void test_calls_alone(void) {
  for (int i = 0; i < DEVICE_CALL_COUNT; i++) {
    char index[16];
    char output[256];
    char what[512];
    snprintf(index, sizeof index, "%d", i);
    int status = run_child("--call", index, output, sizeof output, 20);
    int error = -1;
    double seconds = -1;
    bool answered = sscanf(output, "%d %lf", &error, &seconds) == 2;
    printf("  %-28s %d (%s) in %.3f s\n", device_calls[i].name, error, answered ? driver->error_name(error) : "none",
           seconds);
    snprintf(what, sizeof what, "%s alone: wait status %d, output '%s'; wanted an error within 1 s and exit 0",
             device_calls[i].name, status, output);
    report(status == 0 && answered && error > 0 && seconds < 1.0, what);
  }
}

static void test_calls_together(void) {
  for (int i = 0; i < DEVICE_CALL_COUNT; i++) {
    char what[160];
    double start = now();
    int error = device_calls[i].call();
    snprintf(what, sizeof what, "%s after the others returned %d after %.3f s", device_calls[i].name, error,
             now() - start);
    report(error > 0 && now() - start < 1.0, what);
  }
  (void)driver->get_last_error();
}

static void test_fresh_processes(int count) {
  int good = 0;
  double start = now();
  for (int i = 0; i < count; i++) {
    char output[256];
    int status = run_child("--init", "", output, sizeof output, 20);
    if (status == 0 && strcmp(output, "done\n") == 0) {
      good++;
    } else {
      printf("  process %d: wait status %d, output '%s'\n", i, status, output);
    }
  }
  printf("  %d of %d fresh processes loaded, initialized and ended with 0, in %.1f s\n", good, count, now() - start);
  report(good == count, "every fresh process loads, initializes and ends with 0");
}

/* ---- The run-time compiler ------------------------------------------------------------------------------------- */

enum { COMPILER_THREADS = 8 };

static const char *const architectures[] = {"gfx90a:sramecc+:xnack-", "gfx1030", "gfx1100", "gfx1151"};
enum { ARCHITECTURE_COUNT = sizeof architectures / sizeof architectures[0] };

/* How many of them, from the first on, this version has to know: Debian's 5.2 ends before gfx11, 6.4 has them all. */
static int sure_architectures(void) {
  int version = 0;
  (void)driver->runtime_get_version(&version);
  return version >= 60400000 ? ARCHITECTURE_COUNT : version >= 50500000 ? 3 : 2;
}

static pthread_mutex_t compiler_lock = PTHREAD_MUTEX_INITIALIZER;
static bool serialized = true;

typedef struct compile_result {
  int error;
  size_t code_size;
  bool code_is_elf;
  char log[2048];
} compile_result;

static compile_result compile(const char *source, const char *architecture) {
  compile_result result = {.error = 0};
  char option[128];
  snprintf(option, sizeof option, "%s%s", driver->architecture_option, architecture);
  const char *const options[] = {option, "-O3"};
  void *program = NULL;
  if (serialized) pthread_mutex_lock(&compiler_lock);
  result.error = driver->rtc_create_program(&program, source, "probe.hip");
  if (result.error == RDM_RTC_SUCCESS) {
    result.error = driver->rtc_compile_program(program, 2, options);
    size_t log_size = 0;
    if (driver->rtc_get_log_size(program, &log_size) == RDM_RTC_SUCCESS && log_size > 1) {
      char *log = calloc(1, log_size + 1);
      if (log != NULL && driver->rtc_get_log(program, log) == RDM_RTC_SUCCESS) {
        snprintf(result.log, sizeof result.log, "%s", log);
      }
      free(log);
    }
    if (result.error == RDM_RTC_SUCCESS) {
      result.error = driver->rtc_get_code_size(program, &result.code_size);
      char *code = calloc(1, result.code_size + 1);
      if (code != NULL && driver->rtc_get_code(program, code) == RDM_RTC_SUCCESS) {
        /* The machine number of AMD's GPUs is 224. */
        result.code_is_elf = result.code_size > 64 && memcmp(code, "\177ELF", 4) == 0 && (unsigned char)code[18] == 224;
      }
      free(code);
    }
    int destroyed = driver->rtc_destroy_program(&program);
    if (result.error == RDM_RTC_SUCCESS) result.error = destroyed;
  }
  if (serialized) pthread_mutex_unlock(&compiler_lock);
  return result;
}

static void write_probe(char *source, size_t capacity, int number) {
  snprintf(source, capacity,
           "extern \"C\" __global__ void probe_%d(float *out, float factor, unsigned count) {\n"
           "  unsigned index = blockIdx.x * blockDim.x + threadIdx.x;\n"
           "  if (index < count) out[index] = factor * (float)index + %d.0f;\n"
           "}\n",
           number, number);
}

static pthread_barrier_t compile_barrier;
static compile_result compiled[COMPILER_THREADS][ARCHITECTURE_COUNT];

static void *compile_all(void *argument) {
  int thread = (int)(intptr_t)argument;
  char source[512];
  write_probe(source, sizeof source, thread);
  pthread_barrier_wait(&compile_barrier);
  for (int i = 0; i < ARCHITECTURE_COUNT; i++) {
    int which = (thread + i) % ARCHITECTURE_COUNT;
    compiled[thread][which] = compile(source, architectures[which]);
  }
  return NULL;
}

static bool run_compiler_threads(void) {
  pthread_t threads[COMPILER_THREADS];
  pthread_barrier_init(&compile_barrier, NULL, COMPILER_THREADS);
  for (int i = 0; i < COMPILER_THREADS; i++) {
    if (pthread_create(&threads[i], NULL, compile_all, (void *)(intptr_t)i) != 0) abort();
  }
  for (int i = 0; i < COMPILER_THREADS; i++) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&compile_barrier);
  for (int i = 0; i < COMPILER_THREADS; i++) {
    for (int j = 0; j < sure_architectures(); j++) {
      if (compiled[i][j].error != RDM_RTC_SUCCESS || !compiled[i][j].code_is_elf) return false;
    }
  }
  return true;
}

static void test_compiler(void) {
  int major = -1;
  int minor = -1;
  CHECK(driver->rtc_version(&major, &minor) == RDM_RTC_SUCCESS);
  printf("  hiprtc %d.%d from %s\n", major, minor, driver->compiler_path);
  CHECK(driver->compiler_path[0] != '\0');
  serialized = driver->compiles_one_at_a_time;
  double start = now();
  bool good = run_compiler_threads();
  for (int i = 0; i < ARCHITECTURE_COUNT; i++) {
    const compile_result *result = &compiled[0][i];
    char what[3000];
    if (i >= sure_architectures() && result->error != RDM_RTC_SUCCESS) {
      printf("  SKIPPED: %s: %d (%s): %s\n", architectures[i], result->error, driver->rtc_error_string(result->error),
             result->log);
      skipped++;
      continue;
    }
    printf("  %s: %zu bytes of code\n", architectures[i], result->code_size);
    snprintf(what, sizeof what, "%s: %d (%s), %zu bytes, log '%s'", architectures[i], result->error,
             driver->rtc_error_string(result->error), result->code_size, result->log);
    report(result->error == RDM_RTC_SUCCESS && result->code_is_elf, what);
  }
  report(good, "8 threads at once compile every architecture");
  printf("  %d threads, %d architectures each, %s: %.1f s\n", COMPILER_THREADS, ARCHITECTURE_COUNT,
         serialized ? "one compile at a time" : "all at once", now() - start);

  compile_result bad = compile("extern \"C\" __global__ void probe() { no_such_name_here(); }", architectures[1]);
  CHECK(bad.error == RDM_RTC_COMPILATION);
  CHECK(strstr(bad.log, "no_such_name_here") != NULL);
  compile_result unknown = compile("extern \"C\" __global__ void probe() {}", "gfx1");
  CHECK(unknown.error == RDM_RTC_INVALID_OPTION);
  CHECK(strstr(unknown.log, "gfx1") != NULL);
  compile_result impossible = compile("extern \"C\" __global__ void probe() {}", "gfx1030:xnack+");
  CHECK(impossible.error == RDM_RTC_INVALID_OPTION);
  CHECK(strlen(driver->rtc_error_string(bad.error)) > 0);
  void *program = NULL;
  CHECK(driver->rtc_create_program(&program, NULL, "null") != RDM_RTC_SUCCESS);
  CHECK(driver->rtc_create_program(NULL, "", "null") != RDM_RTC_SUCCESS);

  /* What the flag guards from, reported and not judged: it is why the flag is set. */
  char output[512];
  int status = run_child("--compile-all-at-once", "", output, sizeof output, 60);
  printf("  all at once, without a lock: wait status %d, %s", status, output[0] != '\0' ? output : "no output\n");
}

/* ---------------------------------------------------------------------------------------------------------------- */

static bool open_driver(void) {
  rdm_status status = rdm__hip_open(&driver);
  if (status == RDM_OK) return true;
  printf("FAILED: rdm__hip_open: %d: %s\n", (int)status, rdm__thread_error()->message);
  return false;
}

static void test_open(void) {
  const rdm__driver *again = NULL;
  CHECK(rdm__hip_open(&again) == RDM_OK && again == driver);
  CHECK(strcmp(driver->name, "hip") == 0);
  CHECK(driver->runtime_path[0] == '/');
  /* Without a device the runtime answers 101 to this call too, however often the error is taken. */
  int pending = driver->peek_at_last_error();
  int count = 0;
  CHECK(pending == RDM_HIP_SUCCESS || (driver->get_device_count(&count) == RDM_HIP_NO_DEVICE &&
                                       driver->get_last_error() == pending && driver->get_last_error() == pending));
  int version = 0;
  CHECK(driver->runtime_get_version(&version) == RDM_HIP_SUCCESS);
  CHECK(version / 10000000 >= 5 && version / 10000000 <= 7);
  const char *suffix = strstr(driver->runtime_path, ".so.");
  CHECK(suffix == NULL || atoi(suffix + 4) == version / 10000000);
  printf("  HIP %d.%d.%d from %s\n", version / 10000000, version / 100000 % 100, version % 100000,
         driver->runtime_path);
  CHECK(strcmp(driver->error_name(RDM_HIP_NO_DEVICE), "hipErrorNoDevice") == 0);
  for (int error = -1; error < 1100; error++) {
    if (driver->error_name(error) == NULL || driver->error_string(error) == NULL) {
      report(false, "every number has a name and a text");
      return;
    }
  }
  report(true, "every number has a name and a text");
  CHECK(driver->kernel_argument_count(NULL) == -1);
  CHECK(strcmp(driver->call_name(RDM__CALL_event_record), "hipEventRecord") == 0);
}

int main(int argument_count, char **arguments) {
  int processes = 200;
  self = "/proc/self/exe";
  if (argument_count >= 3 && strcmp(arguments[1], "--processes") == 0) processes = atoi(arguments[2]);
  if (!open_driver()) return 1;
  if (argument_count >= 3 && strcmp(arguments[1], "--call") == 0) return child_call(atoi(arguments[2]));
  if (argument_count >= 2 && strcmp(arguments[1], "--init") == 0) {
    int count = -1;
    (void)driver->get_device_count(&count);
    printf("done\n");
    return 0;
  }
  if (argument_count >= 2 && strcmp(arguments[1], "--compile-all-at-once") == 0) {
    serialized = false;
    double start = now();
    bool good = run_compiler_threads();
    printf("%s, %.1f s\n", good ? "every compile succeeded" : "a compile failed", now() - start);
    return 0;
  }

  printf("open\n");
  test_open();
  int count = -1;
  int error = driver->get_device_count(&count);
  if (error == RDM_HIP_SUCCESS && count > 0) {
    printf("SKIPPED: the calls without a device: this machine has %d\n", count);
    skipped++;
  } else {
    printf("calls that need a device, each in its own process\n");
    report(error == RDM_HIP_NO_DEVICE && count == 0, "the count is 0 with AMD's own error 100");
    test_calls_alone();
    test_calls_together();
  }
  printf("run-time compiler\n");
  test_compiler();
  printf("fresh processes\n");
  test_fresh_processes(processes);
  printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
  return failed == 0 ? 0 : 1;
}
