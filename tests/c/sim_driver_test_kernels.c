/* The simulated driver's run-time compiler, modules and launches. */
#include "sim_driver_test.h"

#include <dirent.h>
#include <sys/stat.h>

/* Compiles and gives the result; the log is the caller's to free. */
static int compile(const char *source, const char *name, int option_count, const char *const *options, char **out_log,
                   void **out_program) {
  void *program = NULL;
  MUST(driver->rtc_create_program(&program, source, name));
  int result = driver->rtc_compile_program(program, option_count, options);
  size_t size = 0;
  MUST(driver->rtc_get_log_size(program, &size));
  *out_log = malloc(size);
  MUST(driver->rtc_get_log(program, *out_log));
  CHECK((*out_log)[size - 1] == '\0');
  if (out_program != NULL) {
    *out_program = program;
  } else {
    MUST(driver->rtc_destroy_program(&program));
  }
  return result;
}

static void expect_refused(const char *source, const char *name, const char *in_log) {
  char *log = NULL;
  RETURNS(RDM_RTC_COMPILATION, compile(source, name, 0, NULL, &log, NULL));
  if (strstr(log, in_log) == NULL) {
    fprintf(stderr, "\"%s\" is not in the log:\n%s\n", in_log, log);
    CHECK(false);
  }
  free(log);
}

static const char forms[] =
    "/* __global__ void no(int a) { } */ // extern \"C\" {\n"
    "#define WIDE \\\n  unsigned long long\n"
    "#if 0\nextern \"C\" __global__ void skipped(int a) { nothing here is read }\n#endif\n"
    "static const char *text = \"}{ __global__ \\\" void\"; static const char brace = '{';\n"
    "struct pair { int a; double b; };\n"
    "__device__ int twice(int a) { return a * 2; }\n"
    "extern \"C\" __global__ void plain(int *out, int a, WIDE b) { *out = a + (int)b; }\n"
    "extern \"C\" __global__ void __launch_bounds__(256) qualified(\n"
    "    int *__restrict__ out, // a comment, with a comma\n"
    "    const int *const in, const volatile unsigned char c /* and, another */, struct pair p, float const f)\n"
    "{ if (1) { *out = *in + c + p.a + (int)p.b + (int)f; } }\n"
    "extern \"C\" __global__ void array(int out[], const int in[4]) { out[0] = in[1]; }\n"
    "extern \"C\" __global__ void unnamed(int *out, int, float, const struct pair, const char *) { *out = 5; }\n"
    "extern \"C\" __global__ void nothing(void) { (void)text; (void)brace; }\n"
    "extern \"C\" {\n"
    "__global__ void in_block(int *out) { *out = twice(21); }\n"
    "}\n"
    "extern \"C\" __global__ void declared(int *out);\n"
    "extern \"C\" __global__ void declared(int *out) { *out = 77; }\n"
    "extern \"C\" __global__ void where(unsigned *out, unsigned n) {\n"
    "  unsigned i = ((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) * (blockDim.x * blockDim.y *\n"
    "      blockDim.z) + (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;\n"
    "  if (i < n) out[i] = out[i] + i * 3 + 1; }\n"
    "extern \"C\" __global__ void maths(float *out, float x) {\n"
    "  out[0] = sqrtf(x); out[1] = fmaxf(x, 2.0f); out[2] = (float)min(3, 2); out[3] = abs(-x);\n"
    "  atomicAdd(&out[4], 1.5f); out[5] = __uint_as_float(__float_as_uint(x)); }\n";

typedef struct pair {
  int a;
  double b;
} pair;

/* Launches one thread of a kernel whose first argument is where to store an int, and gives that. */
static int run_int(void *module, void *stream, const char *name, void **others, int other_count) {
  int *memory = allocate(64);
  void *arguments[8] = {&memory};
  for (int i = 0; i < other_count; i++) arguments[i + 1] = others[i];
  int value = -1;
  void *function = get_function(module, name);
  RETURNS(other_count + 1, driver->kernel_argument_count(function));
  MUST(launch(function, stream, 1, arguments));
  MUST(driver->memory_copy_async(&value, memory, sizeof value, RDM_COPY_DEVICE_TO_HOST, stream));
  MUST(driver->stream_synchronize(stream));
  MUST(driver->memory_free(memory));
  return value;
}

static void run_forms(void) {
  open_driver(1);
  void *module = load_source(forms);
  void *stream = create_stream();
  int a = 40;
  unsigned long long b = 2;
  CHECK(run_int(module, stream, "plain", (void *[]){&a, &b}, 2) == 42);
  int *in = allocate(64);
  int values[4] = {100, 200, 300, 400};
  MUST(driver->memory_copy_async(in, values, sizeof values, RDM_COPY_HOST_TO_DEVICE, stream));
  unsigned char c = 3;
  pair p = {20, 4000.0};
  float f = 50000;
  CHECK(run_int(module, stream, "qualified", (void *[]){&in, &c, &p, &f}, 4) == 54123);
  CHECK(run_int(module, stream, "array", (void *[]){&in}, 1) == 200);
  CHECK(run_int(module, stream, "unnamed", (void *[]){&a, &f, &p, &in}, 4) == 5);
  CHECK(run_int(module, stream, "in_block", NULL, 0) == 42);
  CHECK(run_int(module, stream, "declared", NULL, 0) == 77);
  void *function = get_function(module, "nothing");
  RETURNS(0, driver->kernel_argument_count(function));
  RETURNS(0, launch(function, stream, 1, NULL));
  CHECK(get_function(module, "nothing") == function);
  RETURNS(RDM_HIP_NOT_FOUND, driver->module_get_function(&function, module, "skipped"));
  RETURNS(RDM_HIP_NOT_FOUND, driver->module_get_function(&function, module, "no"));
  RETURNS(RDM_HIP_NOT_FOUND, driver->module_get_function(&function, module, ""));
  RETURNS(RDM_HIP_INVALID_VALUE, driver->module_get_function(&function, module, NULL));

  enum { COUNT = 3 * 2 * 2 * 24 };
  unsigned *numbers = allocate(COUNT * sizeof *numbers);
  unsigned back[COUNT];
  unsigned count = COUNT;
  const unsigned grid[3] = {3, 2, 2};
  const unsigned block[3] = {4, 3, 2};
  MUST(driver->memory_set_async(numbers, 0, sizeof back, stream));
  MUST(driver->launch_kernel(get_function(module, "where"), grid, block, 0, stream, (void *[]){&numbers, &count}));
  MUST(driver->memory_copy_async(back, numbers, sizeof back, RDM_COPY_DEVICE_TO_HOST, stream));
  MUST(driver->stream_synchronize(stream));
  for (unsigned i = 0; i < COUNT; i++) CHECK(back[i] == i * 3 + 1);

  float *floats = allocate(64);
  float results[6];
  float x = 6.25F;
  MUST(driver->memory_set_async(floats, 0, 64, stream));
  MUST(launch(get_function(module, "maths"), stream, 2, (void *[]){&floats, &x}));
  MUST(driver->memory_copy_async(results, floats, sizeof results, RDM_COPY_DEVICE_TO_HOST, stream));
  MUST(driver->stream_synchronize(stream));
  CHECK(results[0] == 2.5F && results[1] == 6.25F && results[2] == 2 && results[3] == 6.25F && results[4] == 3.0F &&
        results[5] == 6.25F);
  RETURNS(0, driver->module_unload(module));
}

static const char fill[] =
    "extern \"C\" __global__ void fill(float *out, float start, unsigned n) {\n"
    "  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) out[i] = start + i;\n"
    "}\n";

static void refusals(void) {
  open_driver(1);
  expect_refused("extern \"C\" __global__ void k(int *p) {\n  *p = 1;\n  *p = missing;\n}\n", "my_name.hip",
                 "my_name.hip:3");
  expect_refused("extern \"C\" __global__ void k(int *p) {\n", "a \"b\\ c", "a \"b\\ c");
  expect_refused("extern \"C\" __global__ void k(int *p) {\n  __shared__ int a[4];\n  a[0] = *p;\n}", "s",
                 "__shared__ memory is not supported");
  expect_refused("extern \"C\" __global__ void k(int *p) {\n  __shared__ int a[4];\n  a[0] = *p;\n}", "s", "s:2");
  expect_refused("extern \"C\" __global__ void k(int *p) { *p = 1; __syncthreads(); }", "s",
                 "__syncthreads() is not supported");
  expect_refused("extern \"C\" __global__ void k(int *p) { *p = __shfl_down(*p, 1); }", "s", "of a warp");
  expect_refused("extern \"C\" __global__ void k(int (*f)(int)) { f(1); }", "s", "can not read the parameters");
  char *log = NULL;
  RETURNS(0, compile("#if 0\n__shared__\n#endif\n// __syncthreads()\n", NULL, 0, NULL, &log, NULL));
  free(log);
  RETURNS(0, compile("", "empty", 0, NULL, &log, NULL));
  free(log);

  static const char *const good[] = {"-DVALUE=3",
                                     "-O3",
                                     "--offload-arch=gfx90a:sramecc+:xnack-",
                                     "-std=c++14",
                                     "-I",
                                     "/nowhere",
                                     "--gpu-architecture=sm_90",
                                     "-D",
                                     "OTHER"};
  RETURNS(0, compile("#if VALUE != 3 || !defined OTHER\n#error wrong\n#endif\n", "o", 9, good, &log, NULL));
  free(log);
  static const char *const bad[][1] = {{"-fplugin=/x.so"}, {"-Wl,-z,now"}, {"-o"}, {"@file"}, {"-D"},
                                       {"x.cpp"},          {NULL}};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    RETURNS(RDM_RTC_INVALID_OPTION, compile("", "o", 1, bad[i], &log, NULL));
    CHECK(bad[i][0] == NULL || strstr(log, bad[i][0]) != NULL);
    free(log);
  }
}

static void programs(void) {
  open_driver(1);
  void *program = NULL;
  size_t size = 0;
  RETURNS(RDM_RTC_INVALID_INPUT, driver->rtc_create_program(&program, NULL, "x"));
  RETURNS(RDM_RTC_INVALID_PROGRAM, driver->rtc_create_program(NULL, "", "x"));
  MUST(driver->rtc_create_program(&program, fill, "x"));
  CHECK(rdm__sim_handle_count(RDM__SIM_PROGRAM) == 1);
  RETURNS(RDM_RTC_INVALID_PROGRAM, driver->rtc_get_code_size(program, &size));
  RETURNS(0, driver->rtc_get_log_size(program, &size));
  CHECK(size == 1);
  RETURNS(RDM_RTC_INVALID_INPUT, driver->rtc_get_log_size(program, NULL));
  RETURNS(RDM_RTC_INVALID_INPUT, driver->rtc_compile_program(program, 1, NULL));
  RETURNS(RDM_RTC_INVALID_INPUT, driver->rtc_compile_program(program, -1, NULL));
  void *stale = program;
  RETURNS(0, driver->rtc_destroy_program(&program));
  CHECK(program == NULL);
  RETURNS(RDM_RTC_INVALID_PROGRAM, driver->rtc_destroy_program(&stale));
  RETURNS(RDM_RTC_INVALID_PROGRAM, driver->rtc_destroy_program(NULL));
  RETURNS(RDM_RTC_INVALID_PROGRAM, driver->rtc_compile_program(stale, 0, NULL));
  RETURNS(RDM_RTC_INVALID_PROGRAM, driver->rtc_get_log_size(stale, &size));
  CHECK(rdm__sim_handle_count(RDM__SIM_PROGRAM) == 0);
  int major = 0;
  int minor = -1;
  RETURNS(0, driver->rtc_version(&major, &minor));
  CHECK(major >= 1 && minor >= 0);
}

static void no_compiler(void) {
  open_driver(1);
  CHECK(driver->compiler_path[0] == '\0');
  expect_refused(fill, "x", "found no compiler");
}

/* Nothing is left where the compiler has its files, whether it succeeds or not. */
static void temporary_files(void) {
  char folder[] = "/tmp/sim-test-XXXXXX";
  CHECK(mkdtemp(folder) != NULL);
  setenv("TMPDIR", folder, 1);
  open_driver(1);
  load_source(fill);
  expect_refused("broken", "x", "broken");
  int entries = 0;
  DIR *directory = opendir(folder);
  while (readdir(directory) != NULL) entries++;
  closedir(directory);
  CHECK(entries == 2);
  CHECK(rmdir(folder) == 0);
}

/* A compiler whose linker takes named files alone. */
static void named_files(void) {
  char folder[] = "/tmp/sim-test-XXXXXX";
  char script[64];
  CHECK(mkdtemp(folder) != NULL);
  snprintf(script, sizeof script, "%s/c++", folder);
  FILE *file = fopen(script, "w");
  fputs(
      "#!/bin/sh\ncase \"$*\" in\n*/proc/self/fd*) echo cannot open /proc/self/fd/4 >&2; exit 1;;\nesac\n"
      "exec g++ \"$@\"\n",
      file);
  fclose(file);
  chmod(script, 0700);
  setenv("TMPDIR", folder, 1);
  setenv("RDM_SIM_COMPILER", script, 1);
  open_driver(1);
  load_source(fill);
  expect_refused("broken", "x", "broken");
  CHECK(unlink(script) == 0);
  CHECK(rmdir(folder) == 0);
}

static void modules(void) {
  open_driver(2);
  char *log = NULL;
  void *program = NULL;
  void *module = NULL;
  void *function = NULL;
  MUST(compile(fill, "x", 0, NULL, &log, &program));
  free(log);
  size_t size = 0;
  MUST(driver->rtc_get_code_size(program, &size));
  char *code = malloc(size);
  MUST(driver->rtc_get_code(program, code));
  MUST(driver->rtc_destroy_program(&program));
  RETURNS(RDM_HIP_INVALID_IMAGE, driver->module_load_data(&module, code, size - 1));
  RETURNS(RDM_HIP_INVALID_IMAGE, driver->module_load_data(&module, code, size / 2));
  RETURNS(RDM_HIP_INVALID_IMAGE, driver->module_load_data(&module, code, 0));
  RETURNS(RDM_HIP_INVALID_VALUE, driver->module_load_data(&module, NULL, size));
  RETURNS(RDM_HIP_INVALID_VALUE, driver->module_load_data(NULL, code, size));
  for (size_t at = 0; at < size; at += size / 50) {
    code[at] ^= 4;
    RETURNS(RDM_HIP_INVALID_IMAGE, driver->module_load_data(&module, code, size));
    code[at] ^= 4;
  }
  CHECK(rdm__sim_handle_count(RDM__SIM_MODULE) == 0);
  /* Many modules of one image at once and one after the other, each a copy of its own. */
  void *modules[40];
  void *functions[40];
  for (int i = 0; i < 40; i++) {
    MUST(driver->module_load_data(&modules[i], code, size));
    functions[i] = get_function(modules[i], "fill");
    if (i % 3 == 2) MUST(driver->module_unload(modules[i]));
  }
  CHECK(functions[0] != functions[1]);
  RETURNS(RDM_HIP_INVALID_HANDLE, driver->module_unload(modules[2]));
  RETURNS(RDM_HIP_INVALID_HANDLE, driver->module_get_function(&function, modules[2], "fill"));
  RETURNS(-1, driver->kernel_argument_count(functions[2]));
  RETURNS(3, driver->kernel_argument_count(functions[3]));

  /* A kernel of another device, or one that is gone, is refused; a launch that waits keeps its code. */
  void *stream = create_stream();
  float *out = allocate(64);
  float start = 1;
  unsigned n = 16;
  void *arguments[] = {&out, &start, &n};
  RETURNS(RDM_HIP_INVALID_HANDLE, launch(functions[2], stream, 16, arguments));
  RETURNS(0, driver->set_device(1));
  void *other = create_stream();
  RETURNS(RDM_HIP_INVALID_HANDLE, launch(functions[0], other, 16, arguments));
  RETURNS(RDM_HIP_INVALID_HANDLE, launch(functions[0], stream, 16, arguments));
  RETURNS(RDM_HIP_INVALID_HANDLE, driver->module_get_function(&function, modules[0], "fill"));
  RETURNS(0, driver->set_device(0));
  hold(0, true);
  RETURNS(0, launch(functions[0], stream, 16, arguments));
  CHECK(last_call().handle == (uint64_t)(uintptr_t)functions[0] && last_call().named_device == 0);
  /* The arguments were copied. */
  start = 500;
  for (int i = 0; i < 40; i++) {
    if (i % 3 != 2) RETURNS(0, driver->module_unload(modules[i]));
  }
  hold(0, false);
  float back[16];
  RETURNS(0, driver->memory_copy_async(back, out, sizeof back, RDM_COPY_DEVICE_TO_HOST, stream));
  RETURNS(0, driver->stream_synchronize(stream));
  CHECK(back[0] == 1 && back[15] == 16);
  CHECK(rdm__sim_handle_count(RDM__SIM_MODULE) == 0 && rdm__sim_handle_count(RDM__SIM_FUNCTION) == 0);
  free(code);
}

static int launch_sized(void *function, void *stream, const unsigned sizes[6], unsigned shared_memory) {
  return driver->launch_kernel(function, sizes, sizes + 3, shared_memory, stream, NULL);
}

static void launch_limits(void) {
  open_driver(1);
  void *module = load_source(
      "extern \"C\" __global__ void k() {}\nextern \"C\" __global__ void one(int a) {}\n"
      "__global__ void mangled() {}\n");
  void *function = get_function(module, "k");
  void *stream = create_stream();
  RETURNS(0, launch_sized(function, stream, (const unsigned[]){1, 1, 1, 1024, 1, 1}, 65536));
  RETURNS(0, launch_sized(function, stream, (const unsigned[]){2, 3, 4, 2, 16, 32}, 0));
  static const unsigned bad[][6] = {
      {1, 1, 1, 2048, 1, 1},        {1, 1, 1, 1025, 1, 1},
      {1, 1, 1, 32, 33, 1},         {1, 1, 1, 65536, 65536, 1},
      {0, 1, 1, 1, 1, 1},           {1, 0, 1, 1, 1, 1},
      {1, 1, 0, 1, 1, 1},           {1, 1, 1, 0, 1, 1},
      {1, 1, 1, 1, 0, 1},           {1, 1, 1, 1, 1, 0},
      {1U << 22, 1, 1, 1024, 1, 1}, {65536, 65536, 1, 1, 1, 1},
      {4294967295U, 2, 1, 1, 1, 1}, {4294967295U, 4294967295U, 4294967295U, 1024, 1, 1},
  };
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    RETURNS(RDM_HIP_INVALID_CONFIGURATION, launch_sized(function, stream, bad[i], 0));
  }
  RETURNS(RDM_HIP_INVALID_CONFIGURATION, launch_sized(function, stream, (const unsigned[]){1, 1, 1, 1, 1, 1}, 65537));
  RETURNS(RDM_HIP_NOT_SUPPORTED, launch_sized(function, NULL, bad[0], 0));
  RETURNS(RDM_HIP_INVALID_HANDLE, launch_sized(NULL, stream, bad[0], 0));
  RETURNS(RDM_HIP_INVALID_VALUE, launch(get_function(module, "one"), stream, 1, NULL));
  RETURNS(RDM_HIP_INVALID_VALUE, launch(get_function(module, "one"), stream, 1, (void *[]){NULL}));
  RETURNS(RDM_HIP_NOT_FOUND, driver->module_get_function(&function, module, "mangled"));
  /* The device is as it was. */
  RETURNS(0, driver->stream_synchronize(stream));
}

static atomic_int refused_as_second;

static void *compile_again_and_again(void *argument) {
  (void)argument;
  for (int i = 0; i < 3; i++) {
    char *log = NULL;
    if (compile(fill, "x", 0, NULL, &log, NULL) != 0) {
      CHECK(strstr(log, "inside the compiler at once") != NULL);
      atomic_fetch_add(&refused_as_second, 1);
    }
    free(log);
  }
  return NULL;
}

static void compile_on_two_threads(void) {
  pthread_t threads[2];
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, compile_again_and_again, NULL);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
}

static void parallel_compiles(void) {
  open_driver(1);
  compile_on_two_threads();
  CHECK(atomic_load(&refused_as_second) == 0);
}

static void serial_compiler(void) {
  open_driver(1);
  CHECK(driver->compiles_one_at_a_time);
  compile_on_two_threads();
  CHECK(atomic_load(&refused_as_second) > 0);
  char *log = NULL;
  RETURNS(0, compile(fill, "x", 0, NULL, &log, NULL));
  free(log);
}

/* ---- Many threads ---------------------------------------------------------------------------------------------- */

enum { THREADS = 16, ROUNDS = 150, COUNT = 256 };

static void *fill_of[2];
static atomic_int wrong;

static void *evaluate(void *argument) {
  int device = (int)(intptr_t)argument % 2;
  MUST(driver->set_device(device));
  void *stream = create_stream();
  float *out = allocate(COUNT * sizeof(float));
  float values[COUNT];
  for (int round = 0; round < ROUNDS; round++) {
    float start = (float)(round * THREADS + (int)(intptr_t)argument);
    unsigned n = COUNT;
    MUST(launch(fill_of[device], stream, COUNT, (void *[]){&out, &start, &n}));
    MUST(launch(fill_of[device], stream, COUNT, (void *[]){&out, &start, &n}));
    MUST(driver->memory_copy_async(values, out, sizeof values, RDM_COPY_DEVICE_TO_HOST, stream));
    MUST(driver->stream_synchronize(stream));
    for (int i = 0; i < COUNT; i++) {
      if (values[i] != start + (float)i) atomic_fetch_add(&wrong, 1);
    }
  }
  MUST(driver->memory_free(out));
  MUST(driver->stream_destroy(stream));
  return NULL;
}

static void evaluate_on_many_threads(void) {
  open_driver(2);
  for (int device = 0; device < 2; device++) {
    MUST(driver->set_device(device));
    fill_of[device] = get_function(load_source(fill), "fill");
  }
  uint64_t begin = rdm__now_ns();
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, evaluate, (void *)(intptr_t)i);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  double seconds = (double)(rdm__now_ns() - begin) / 1e9;
  fprintf(stderr, "%.0f launches a second\n", THREADS * ROUNDS * 2 / seconds);
  CHECK(atomic_load(&wrong) == 0);
}

const sim_test kernel_tests[] = {
    {"run_forms", run_forms, NULL, 0},
    {"run_forms_gxx", run_forms, "RDM_SIM_COMPILER=g++", 0},
    {"run_forms_gcc", run_forms, "RDM_SIM_COMPILER=gcc", 0},
    {"run_forms_clangxx", run_forms, "RDM_SIM_COMPILER=clang++", 0},
    {"run_forms_clang", run_forms, "RDM_SIM_COMPILER=clang", 0},
    {"refusals", refusals, NULL, 0},
    {"refusals_gcc", refusals, "RDM_SIM_COMPILER=gcc", 0},
    {"refusals_clangxx", refusals, "RDM_SIM_COMPILER=clang++", 0},
    {"programs", programs, NULL, 0},
    {"no_compiler", no_compiler, "RDM_SIM_COMPILER=no-such-compiler", 0},
    {"temporary_files", temporary_files, NULL, 0},
    {"named_files", named_files, NULL, 0},
    {"modules", modules, NULL, 0},
    {"launch_limits", launch_limits, NULL, 0},
    {"parallel_compiles", parallel_compiles, NULL, 0},
    {"serial_compiler", serial_compiler, "RDM_SIM_SERIAL_COMPILER=1", 0},
    {"evaluate_on_many_threads", evaluate_on_many_threads, NULL, 0},
    {NULL, NULL, NULL, 0},
};
