/*
 * The hot paths, each called from a function of its own, count_NAME. Run under callgrind, the instructions of what such
 * a function calls, over the number of its rounds, are what one operation costs; the loop around the calls is not in
 * it. Each path is first taken as often by a function warm_NAME, which is not looked at: the first uses are not hot.
 */
#include "rocm_device_map.h"
#include "stub_driver.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROUNDS = 1000 };

static rdm_device device;
static rdm_stream stream;
static rdm_thread_local_stream thread_stream;
static rdm_encoder encoder;
static rdm_event recorded;
static rdm_module module;
static rdm_kernel kernel;
static void *memory;
static char host_memory[64];

static const char *const options[] = {"-DVALUE=1"};
static const rdm_module_source source = {
    .struct_size = sizeof source,
    .option_count = 1,
    .name = "hot_paths.hip",
    .source =
        "extern \"C\" __global__ void probe(float *out, const float *in, float by) {\n"
        "  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
        "  out[i] = in[i] * by;\n"
        "}\n",
    .options = options,
};

static int failures;

static void check(rdm_status status, rdm_status wanted, const char *doing) {
  if (status == wanted) return;
  fprintf(stderr, "hot_paths: %s: %s: %s\n", doing, rdm_status_name(status), rdm_last_error_message());
  failures++;
}

/* What each path calls, and what that has to come to. Nothing else is called here, since it would be counted. */
#define PATHS(X)                                                                                         \
  X(device_lookup, rdm_device_get(0, &a_device), RDM_OK)                                                 \
  X(encoder_lookup, rdm_encoder_get(stream, &an_encoder), RDM_OK)                                        \
  X(stream_lookup_by_index, rdm_stream_get(0, 7, &a_stream), RDM_OK)                                     \
  X(thread_stream_resolve, rdm_thread_local_stream_resolve(thread_stream, &a_stream), RDM_OK)            \
  X(default_stream_get, rdm_default_stream_get(&a_stream), RDM_OK)                                       \
  X(event_create_release, (rdm_event_create(device, 0, &an_event), rdm_event_release(an_event)), RDM_OK) \
  X(event_record, rdm_encoder_record_event(encoder, recorded), RDM_OK)                                   \
  X(event_query_done, rdm_event_query(recorded), RDM_OK)                                                 \
  X(event_wait_done, rdm_event_wait(recorded, RDM_WAIT_FOREVER), RDM_OK)                                 \
  X(encoder_wait_event, rdm_encoder_wait_event(encoder, recorded), RDM_OK)                               \
  X(launch, rdm_encoder_launch(encoder, kernel, &launch_config, arguments, 3), RDM_OK)                   \
  X(copy, rdm_encoder_copy(encoder, host_memory, memory, 64, RDM_COPY_DEVICE_TO_HOST), RDM_OK)           \
  X(commit_without_handlers, rdm_encoder_commit(encoder), RDM_OK)                                        \
  X(module_hit, rdm_module_get(device, &source, &a_module), RDM_OK)                                      \
  X(kernel_hit, rdm_module_get_kernel(module, "probe", &a_kernel), RDM_OK)                               \
  X(stream_create_release, (rdm_stream_create(0, &a_stream), rdm_stream_release(a_stream)), RDM_OK)      \
  X(event_query_not_ready, rdm_event_query(recorded), RDM_NOT_READY)

static const rdm_launch_config launch_config = {
    .struct_size = sizeof launch_config, .grid = {1, 1, 1}, .block = {256, 1, 1}};

/* The two are alike, and have to stay two functions under the names that they have. */
#ifdef __clang__
#define SEPARATE __attribute__((noinline))
#else
#define SEPARATE __attribute__((noinline, noclone, no_icf))
#endif

#define LOOP(name, call, wanted)                    \
  rdm_device a_device = {0};                        \
  rdm_stream a_stream = {0};                        \
  rdm_encoder an_encoder = {0};                     \
  rdm_event an_event = {0};                         \
  rdm_module a_module = {0};                        \
  rdm_kernel a_kernel = {0};                        \
  float by = 2;                                     \
  void *arguments[] = {&memory, &memory, &by};      \
  (void)a_device, (void)a_stream, (void)an_encoder; \
  (void)an_event, (void)a_module, (void)a_kernel;   \
  (void)arguments;                                  \
  rdm_status worst = (wanted);                      \
  for (int i = 0; i < ROUNDS; i++) {                \
    rdm_status status = (call);                     \
    if (status != (wanted)) worst = status;         \
  }                                                 \
  return worst

#define X(name, call, wanted)                     \
  static SEPARATE rdm_status warm_##name(void) {  \
    LOOP(name, call, wanted);                     \
  }                                               \
  static SEPARATE rdm_status count_##name(void) { \
    LOOP(name, call, wanted);                     \
  }
PATHS(X)
#undef X

/* The C library's locks take no atomic step while a process has one thread. No process that matters has one. */
static void *stay(void *argument) {
  for (;;) pause();
  return argument;
}

static void prepare(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, stay, NULL) != 0) {
    fprintf(stderr, "hot_paths: no second thread\n");
    exit(EXIT_FAILURE);
  }
  check(rdm_device_get(0, &device), RDM_OK, "the device");
  check(rdm_stream_create(0, &stream), RDM_OK, "a stream");
  check(rdm_encoder_get(stream, &encoder), RDM_OK, "its encoder");
  check(rdm_thread_local_stream_create(0, &thread_stream), RDM_OK, "a thread-local stream");
  check(rdm_default_stream_set(stream), RDM_OK, "the default stream");
  check(rdm_event_create(device, 0, &recorded), RDM_OK, "an event");
  check(rdm_encoder_record_event(encoder, recorded), RDM_OK, "recording it");
  check(rdm_memory_allocate(device, 64, &memory), RDM_OK, "memory");
  check(rdm_module_get(device, &source, &module), RDM_OK, "a module");
  check(rdm_module_get_kernel(module, "probe", &kernel), RDM_OK, "its kernel");
}

int main(void) {
  rdm_set_log_handler(NULL, NULL, RDM_LOG_ERROR);
  prepare();
#define X(name, call, wanted)                                                               \
  rdm__stub_query_result = (wanted) == RDM_NOT_READY ? RDM_HIP_NOT_READY : RDM_HIP_SUCCESS; \
  check(warm_##name(), wanted, #name);                                                      \
  check(count_##name(), wanted, #name);
  PATHS(X)
#undef X
  printf("rounds %d\n", ROUNDS);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
