/* Forking before and after the driver was loaded. */
#include "calls.h"
#include "concurrency.h"
#include "work.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_forked_child;

/* The other threads' stacks and thread-local memory are no roots in a forked child, so it can not tell a leak. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) {
  return is_forked_child;
}

/* ---- Before first use ------------------------------------------------------------------------------------------- */

static int wait_for_child(pid_t child) {
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK_THAT(WIFEXITED(status), "the child was ended by signal %d", WTERMSIG(status));
  return WEXITSTATUS(status);
}

static int fork_before_first_use(void) {
  test_use_sim(2);
  CHECK(rdm_version() == RDM_VERSION);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) return work_on_new_stream(1, 1) == RDM_OK ? 11 : 12;
  CHECK(wait_for_child(child) == 11);
  CHECK_OK(work_on_new_stream(0, 1));
  return 0;
}

static void field_log_20_a_child_forked_before_first_use_may_use_the_devices(void) {
  process_outcome outcome;
  test_run_body("fork_before_first_use", NULL, 30, &outcome);
  CHECK_THAT(outcome.exit_code == 0, "exit code %d: %s", outcome.exit_code, outcome.standard_error);
  CHECK(test_only_bound_lines(outcome.standard_error));
}

/* ---- After it --------------------------------------------------------------------------------------------------- */

typedef struct live {
  work_kernels kernels;
  rdm_stream stream;
  rdm_thread_local_stream thread_local_stream;
  rdm_encoder encoder;
  rdm_event event;
  rdm_graph graph;
  void *memory;
} live;

static void ignore_status(rdm_status status, void *user_data) {
  (void)status;
  (void)user_data;
}

/* The failures of a forked child: it has no thread but its own, so it counts and prints. */
static unsigned failures;

/* The text of every call that was expected to be refused, one after the other. */
static char calls_refused[16384];

static void expect_forked(const char *call, rdm_status status) {
  size_t length = strlen(calls_refused);
  snprintf(calls_refused + length, sizeof calls_refused - length, "%s\n", call);
  if (status == RDM_ERROR_FORKED) return;
  fprintf(stderr, "in the forked child %s returned %s\n", call, rdm_status_name(status));
  failures++;
}

#define EXPECT_FORKED(call) expect_forked(#call, (call))

/* Those that the header says work in any state. */
static void call_what_works_in_any_state(void) {
  rdm_error error = {.struct_size = sizeof error};
  if (rdm_version() != RDM_VERSION || strlen(rdm_version_string()) == 0) failures++;
  if (strcmp(rdm_status_name(RDM_ERROR_FORKED), "RDM_ERROR_FORKED") != 0) failures++;
  if (strlen(rdm_status_description(RDM_ERROR_FORKED)) == 0 || strlen(rdm_last_error_message()) == 0) failures++;
  if (rdm_last_error(&error) != RDM_OK || error.status != RDM_ERROR_FORKED) failures++;
  if (rdm_set_log_handler(NULL, NULL, RDM_LOG_INFO) != RDM_OK) failures++;
  if (rdm_default_log_level() != RDM_LOG_INFO) failures++;
}

/* Every function of the header is either refused above or works in any state: one that is new is in neither list. */
static void check_no_function_is_forgotten(void) {
  static const char *const in_any_state[] = {
      "rdm_version",    "rdm_version_string",     "rdm_status_name",     "rdm_status_description",
      "rdm_last_error", "rdm_last_error_message", "rdm_set_log_handler", "rdm_default_log_level"};
  static const char path[] = "csrc/include/rocm_device_map.h";
  FILE *header = fopen(path, "r");
  if (header == NULL) {
    fprintf(stderr, "%s can not be read from here\n", path);
    failures++;
    return;
  }
  char line[512];
  int functions = 0;
  while (fgets(line, sizeof line, header) != NULL) {
    char name[128];
    char called[132];
    const char *open = strncmp(line, "RDM_API ", 8) == 0 ? strchr(line, '(') : NULL;
    if (open == NULL) continue;
    const char *begin = open;
    while (begin > line && begin[-1] != ' ' && begin[-1] != '*') begin--;
    snprintf(name, sizeof name, "%.*s", (int)(open - begin), begin);
    snprintf(called, sizeof called, "%s(", name);
    bool found = strstr(calls_refused, called) != NULL;
    for (size_t i = 0; i < sizeof in_any_state / sizeof in_any_state[0]; i++) {
      found = found || strcmp(in_any_state[i], name) == 0;
    }
    functions++;
    if (found) continue;
    fprintf(stderr, "%s is not called in the forked child\n", name);
    failures++;
  }
  fclose(header);
  if (functions < 60) failures++;
}

static void call_devices_and_streams(const live *all) {
  int32_t number = 0;
  uint64_t count = 0;
  rdm_device device;
  rdm_stream stream;
  rdm_thread_local_stream thread_local_stream;
  rdm_encoder encoder;
  rdm_error error = {.struct_size = sizeof error};
  rdm_driver_info driver_info = {.struct_size = sizeof driver_info};
  rdm_device_info device_info = {.struct_size = sizeof device_info};
  rdm_stream_info stream_info = {.struct_size = sizeof stream_info};
  EXPECT_FORKED(rdm_configure(NULL));
  EXPECT_FORKED(rdm_get_driver_info(&driver_info));
  EXPECT_FORKED(rdm_device_count(&number));
  EXPECT_FORKED(rdm_probe_driver("sim", &number));
  EXPECT_FORKED(rdm_device_get(0, &device));
  EXPECT_FORKED(rdm_device_get(1, &device));
  EXPECT_FORKED(rdm_device_get_within(1, 0, &device));
  EXPECT_FORKED(rdm_device_construction_count(0, &count));
  EXPECT_FORKED(rdm_device_get_info(all->kernels.device, &device_info));
  EXPECT_FORKED(rdm_device_make_current(all->kernels.device));
  EXPECT_FORKED(rdm_device_synchronize(all->kernels.device, RDM_WAIT_FOREVER));
  EXPECT_FORKED(rdm_clear_encoders());
  EXPECT_FORKED(rdm_stream_create(0, &stream));
  EXPECT_FORKED(rdm_stream_get(0, 5, &stream));
  EXPECT_FORKED(rdm_stream_retain(all->stream));
  EXPECT_FORKED(rdm_stream_release(all->stream));
  EXPECT_FORKED(rdm_stream_get_info(all->stream, &stream_info));
  EXPECT_FORKED(rdm_stream_finalize(all->stream));
  EXPECT_FORKED(rdm_stream_synchronize(all->stream, RDM_WAIT_FOREVER));
  EXPECT_FORKED(rdm_stream_record_error(all->stream, RDM_ERROR_DRIVER, "x"));
  EXPECT_FORKED(rdm_stream_take_error(all->stream, &error));
  EXPECT_FORKED(rdm_take_unattributed_error(&error));
  EXPECT_FORKED(rdm_thread_local_stream_create(0, &thread_local_stream));
  EXPECT_FORKED(rdm_thread_local_stream_get_shared(0, &thread_local_stream));
  EXPECT_FORKED(rdm_thread_local_stream_get_device_index(all->thread_local_stream, &number));
  EXPECT_FORKED(rdm_thread_local_stream_resolve(all->thread_local_stream, &stream));
  EXPECT_FORKED(rdm_thread_local_stream_release(all->thread_local_stream));
  EXPECT_FORKED(rdm_default_stream_set(all->stream));
  EXPECT_FORKED(rdm_default_stream_get(&stream));
  EXPECT_FORKED(rdm_encoder_get(all->stream, &encoder));
}

static void ignore_attempt(const char *name, const char *result, int32_t used, void *user_data) {
  (void)name;
  (void)result;
  (void)used;
  (void)user_data;
}

static void ignore_node(const rdm_device_node *node, void *user_data) {
  (void)node;
  (void)user_data;
}

static void call_the_rest(const live *all) {
  rdm_event event;
  rdm_graph graph;
  rdm_module module;
  rdm_kernel kernel;
  float milliseconds = 0;
  void *pointer = NULL;
  uint64_t count = 0;
  size_t read = 0;
  const void *code = NULL;
  rdm_sim_call call;
  rdm_sim_objects objects = {.struct_size = sizeof objects};
  const rdm_launch_config config = {.struct_size = sizeof config, .grid = {1, 1, 1}, .block = {1, 1, 1}};
  rdm_cache_info cache = {.struct_size = sizeof cache};
  EXPECT_FORKED(rdm_encoder_launch(all->encoder, all->kernels.step, &config, NULL, 0));
  rdm_device_info device_info = {.struct_size = sizeof device_info};
  EXPECT_FORKED(rdm_probe_device("sim", 0, &device_info));
  EXPECT_FORKED(rdm_driver_attempts("sim", ignore_attempt, NULL));
  EXPECT_FORKED(rdm_device_nodes(ignore_node, NULL));
  EXPECT_FORKED(rdm_cache_get_info(&cache));
  EXPECT_FORKED(rdm_cache_check(0, NULL, NULL));
  EXPECT_FORKED(rdm_cache_prune(0, NULL, NULL));
  EXPECT_FORKED(rdm_encoder_copy(all->encoder, all->memory, all->memory, 4, RDM_COPY_DEVICE_TO_DEVICE));
  EXPECT_FORKED(rdm_encoder_fill(all->encoder, all->memory, 0, 4));
  EXPECT_FORKED(rdm_encoder_add_completion_handler(all->encoder, ignore_status, NULL));
  EXPECT_FORKED(rdm_encoder_commit(all->encoder));
  EXPECT_FORKED(rdm_encoder_record_event(all->encoder, all->event));
  EXPECT_FORKED(rdm_encoder_wait_event(all->encoder, all->event));
  EXPECT_FORKED(rdm_encoder_get_native_stream(all->encoder, &pointer));
  EXPECT_FORKED(rdm_encoder_begin_capture(all->encoder));
  EXPECT_FORKED(rdm_encoder_end_capture(all->encoder, &graph));
  EXPECT_FORKED(rdm_encoder_launch_graph(all->encoder, all->graph));
  EXPECT_FORKED(rdm_graph_release(all->graph));
  EXPECT_FORKED(rdm_event_create(all->kernels.device, RDM_EVENT_DEFAULT, &event));
  EXPECT_FORKED(rdm_event_query(all->event));
  EXPECT_FORKED(rdm_event_wait(all->event, RDM_WAIT_FOREVER));
  EXPECT_FORKED(rdm_event_elapsed(all->event, all->event, &milliseconds));
  EXPECT_FORKED(rdm_event_get_native(all->event, &pointer));
  EXPECT_FORKED(rdm_event_release(all->event));
  EXPECT_FORKED(rdm_memory_allocate(all->kernels.device, 16, &pointer));
  EXPECT_FORKED(rdm_memory_free(all->kernels.device, all->memory));
  EXPECT_FORKED(rdm_host_memory_allocate(all->kernels.device, 16, &pointer));
  EXPECT_FORKED(rdm_host_memory_free(all->kernels.device, all->memory));
  EXPECT_FORKED(rdm_module_get(all->kernels.device, &work_source, &module));
  EXPECT_FORKED(rdm_module_get_within(all->kernels.device, &work_source, 0, &module));
  EXPECT_FORKED(rdm_module_get_kernel(all->kernels.module, "step", &kernel));
  EXPECT_FORKED(rdm_module_compile_count(&count));
  EXPECT_FORKED(rdm_module_disk_hit_count(&count));
  EXPECT_FORKED(rdm_module_load(all->kernels.device, "x", "x", 1, &module));
  rdm_counters counters = {.struct_size = sizeof counters};
  EXPECT_FORKED(rdm_get_counters(&counters));
  EXPECT_FORKED(rdm_code_get("sim", &work_source, &code, &read));
  EXPECT_FORKED(rdm_code_get_within("sim", &work_source, 0, &code, &read));
  EXPECT_FORKED(rdm_sim_call_count(NULL, &count));
  EXPECT_FORKED(rdm_sim_read_calls(0, &call, 1, &read));
  EXPECT_FORKED(rdm_sim_inject(NULL, 1, 1, 1, 0));
  EXPECT_FORKED(rdm_sim_clear_injections(NULL));
  EXPECT_FORKED(rdm_sim_hold(0, 1));
  EXPECT_FORKED(rdm_sim_fault(0, 700));
  EXPECT_FORKED(rdm_sim_count_objects(&objects));
}

static void run_forked_child(const live *all) {
  is_forked_child = true;
  alarm(20);
  uint64_t start = test_now_ns();
  call_devices_and_streams(all);
  call_the_rest(all);
  call_what_works_in_any_state();
  check_no_function_is_forgotten();
  if (test_now_ns() - start > TEST_SECOND) {
    fprintf(stderr, "the forked child's calls took %.1f s\n", (double)(test_now_ns() - start) * 1e-9);
    failures++;
  }
  exit(failures == 0 ? 21 : 22);
}

/* A child that runs a new program is as any other process. */
static int work_in_a_new_program(void) {
  test_use_sim(2);
  return work_on_new_stream(0, 1) == RDM_OK ? 23 : 24;
}

static void check_child_that_execs(void) {
  process_outcome outcome;
  test_run_body("work_in_a_new_program", NULL, 30, &outcome);
  CHECK_THAT(outcome.exit_code == 23, "exit code %d: %s", outcome.exit_code, outcome.standard_error);
  CHECK(test_only_bound_lines(outcome.standard_error));
}

static atomic_bool stop;
static rdm_device devices[2];

/* Keeps the library's locks busy, so that some are held as the process forks. */
static void *keep_locks_busy(void *argument) {
  int32_t index = (int32_t)(uintptr_t)argument % 2;
  while (!stop) {
    rdm_stream stream;
    rdm_event event;
    CHECK_OK(rdm_stream_create(index, &stream));
    CHECK_OK(rdm_event_create(devices[index], RDM_EVENT_DEFAULT, &event));
    CHECK_OK(rdm_event_release(event));
    CHECK_OK(rdm_stream_release(stream));
    CHECK_OK(work_on_new_stream(index, 1));
    CHECK_OK(rdm_device_synchronize(devices[index], RDM_WAIT_FOREVER));
  }
  return NULL;
}

static void make_live(live *all) {
  CHECK_OK(work_load(0, &all->kernels));
  CHECK_OK(rdm_stream_create(0, &all->stream));
  CHECK_OK(rdm_thread_local_stream_create(0, &all->thread_local_stream));
  CHECK_OK(rdm_encoder_get(all->stream, &all->encoder));
  CHECK_OK(rdm_event_create(all->kernels.device, RDM_EVENT_DEFAULT, &all->event));
  CHECK_OK(rdm_encoder_record_event(all->encoder, all->event));
  CHECK_OK(rdm_memory_allocate(all->kernels.device, 64, &all->memory));
  CHECK_OK(rdm_encoder_begin_capture(all->encoder));
  CHECK_OK(rdm_encoder_end_capture(all->encoder, &all->graph));
}

/* ---- While locks are held for certain ------------------------------------------------------------------------- */

static live held_live;

static void *construct_device_3(void *argument) {
  rdm_device device;
  (void)argument;
  CHECK_OK(rdm_device_get(3, &device));
  return NULL;
}

static void *make_an_encoder(void *argument) {
  rdm_stream stream;
  rdm_encoder encoder;
  (void)argument;
  CHECK_OK(rdm_stream_create(0, &stream));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
  return NULL;
}

static void *submit(void *argument) {
  (void)argument;
  CHECK_OK(work_submit_step(held_live.encoder, &held_live.kernels, held_live.memory, 1));
  return NULL;
}

static void *compile(void *argument) {
  rdm_module module;
  rdm_module_source source = work_source;
  source.name = "compiled as the process forks";
  (void)argument;
  CHECK_OK(rdm_module_get(held_live.kernels.device, &source, &module));
  return NULL;
}

static void *get_a_kernel(void *argument) {
  rdm_kernel kernel;
  (void)argument;
  CHECK_STATUS(rdm_module_get_kernel(held_live.kernels.module, "none", &kernel), RDM_ERROR_KERNEL_NOT_FOUND);
  return NULL;
}

/* Each thread stands in the driver with one of the library's locks held: the lock's name, the call, who makes it. */
static const struct {
  const char *entry_point;
  void *(*function)(void *argument);
} stalled[] = {
    {"hipGetDeviceProperties", construct_device_3},
    {"hipStreamCreateWithFlags", make_an_encoder},
    {"hipModuleLaunchKernel", submit},
    {"hiprtcCompileProgram", compile},
    {"hipModuleGetFunction", get_a_kernel},
};
enum { STALLED = sizeof stalled / sizeof stalled[0] };

static int fork_under_every_lock(void) {
  pthread_t threads[STALLED];
  setenv("RDM_SIM_SERIAL_COMPILER", "1", 1);
  test_use_sim(4);
  make_live(&held_live);
  for (int i = 0; i < STALLED; i++) {
    CHECK_OK(rdm_sim_inject(stalled[i].entry_point, 1, 1, 0, TEST_SECOND * TEST_SLOWDOWN / 2));
    threads[i] = test_start_thread(stalled[i].function, NULL);
  }
  for (int i = 0; i < STALLED; i++) calls_wait_until_inside(stalled[i].entry_point, 5 * TEST_SECOND);
  for (int i = 0; i < 3; i++) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) run_forked_child(&held_live);
    CHECK(wait_for_child(child) == 21);
  }
  for (int i = 0; i < STALLED; i++) test_join_thread(threads[i]);
  CHECK_OK(work_on_new_stream(0, 1));
  CHECK_OK(work_on_new_stream(3, 1));
  return 0;
}

static void field_log_20_a_fork_while_every_lock_is_held_does_not_hang(void) {
  process_outcome outcome;
  test_run_body("fork_under_every_lock", NULL, 40, &outcome);
  CHECK_THAT(outcome.exit_code == 0 && !outcome.timed_out, "exit code %d, signal %d: %s", outcome.exit_code,
             outcome.signal, outcome.standard_error);
}

/* ---- While locks are taken and given back ---------------------------------------------------------------------- */

static int fork_after_first_use(void) {
  live all = {0};
  pthread_t threads[4];
  test_use_sim(2);
  for (int32_t i = 0; i < 2; i++) CHECK_OK(rdm_device_get(i, &devices[i]));
  make_live(&all);
  for (uintptr_t i = 0; i < 4; i++) threads[i] = test_start_thread(keep_locks_busy, (void *)i);
  for (int i = 0; i < 20 / TEST_SLOWDOWN + 2; i++) {
    test_sleep_ns(TEST_MILLISECOND);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) run_forked_child(&all);
    CHECK(wait_for_child(child) == 21);
  }
  check_child_that_execs();
  stop = true;
  for (int i = 0; i < 4; i++) test_join_thread(threads[i]);
  CHECK_OK(rdm_event_query(all.event));
  CHECK_OK(work_on_new_stream(0, 1));
  CHECK_OK(work_on_new_stream(1, 1));
  return 0;
}

static void field_log_20_a_child_forked_after_first_use_is_refused_at_once_and_the_parent_goes_on(void) {
  process_outcome outcome;
  test_run_body("fork_after_first_use", NULL, 40, &outcome);
  CHECK_THAT(outcome.exit_code == 0 && !outcome.timed_out, "exit code %d, signal %d: %s", outcome.exit_code,
             outcome.signal, outcome.standard_error);
  CHECK_THAT(test_only_bound_lines(outcome.standard_error), "it wrote: %s", outcome.standard_error);
}

/* The child of a parent whose first use is under way: refused, or free to begin anew, but never stuck. */
static void *use_first(void *argument) {
  (void)argument;
  CHECK_OK(work_on_new_stream(0, 1));
  return NULL;
}

static int fork_during_first_use(void) {
  setenv("RDM_SIM_INJECT", "hipInit:1:1:0:200000000", 1);
  test_use_sim(2);
  pthread_t thread = test_start_thread(use_first, NULL);
  test_sleep_ns(50 * TEST_MILLISECOND);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    int32_t count = 0;
    is_forked_child = true;
    alarm(10);
    exit(rdm_device_count(&count) == RDM_ERROR_FORKED ? 31 : 32);
  }
  CHECK(wait_for_child(child) == 31);
  test_join_thread(thread);
  return 0;
}

static void a_child_forked_during_the_first_use_is_refused(void) {
  process_outcome outcome;
  test_run_body("fork_during_first_use", NULL, 30, &outcome);
  CHECK_THAT(outcome.exit_code == 0 && !outcome.timed_out, "exit code %d, signal %d: %s", outcome.exit_code,
             outcome.signal, outcome.standard_error);
}

const test_body fork_bodies[] = {
    {"fork_before_first_use", fork_before_first_use}, {"fork_after_first_use", fork_after_first_use},
    {"fork_during_first_use", fork_during_first_use}, {"fork_under_every_lock", fork_under_every_lock},
    {"work_in_a_new_program", work_in_a_new_program}, {0},
};

const test_case fork_tests[] = {
    {.name = "field_log_20_a_fork_while_every_lock_is_held_does_not_hang",
     .function = field_log_20_a_fork_while_every_lock_is_held_does_not_hang},
    {.name = "field_log_20_a_child_forked_before_first_use_may_use_the_devices",
     .function = field_log_20_a_child_forked_before_first_use_may_use_the_devices},
    {.name = "field_log_20_a_child_forked_after_first_use_is_refused_at_once_and_the_parent_goes_on",
     .function = field_log_20_a_child_forked_after_first_use_is_refused_at_once_and_the_parent_goes_on},
    {.name = "a_child_forked_during_the_first_use_is_refused",
     .function = a_child_forked_during_the_first_use_is_refused},
    {0},
};
