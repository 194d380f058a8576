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

static void a_child_forked_before_first_use_may_use_the_devices(void) {
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
  void *memory;
} live;

static void ignore_status(rdm_status status, void *user_data) {
  (void)status;
  (void)user_data;
}

/* The failures of a forked child: it has no thread but its own, so it counts and prints. */
static unsigned failures;

static void expect_forked(const char *call, rdm_status status) {
  if (status == RDM_ERROR_FORKED) return;
  fprintf(stderr, "in the forked child %s returned %s\n", call, rdm_status_name(status));
  failures++;
}

#define EXPECT_FORKED(call) expect_forked(#call, (call))

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
  EXPECT_FORKED(rdm_device_construction_count(0, &count));
  EXPECT_FORKED(rdm_device_get_info(all->kernels.device, &device_info));
  EXPECT_FORKED(rdm_device_make_current(all->kernels.device));
  EXPECT_FORKED(rdm_device_synchronize(all->kernels.device));
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

static void call_the_rest(const live *all) {
  rdm_event event;
  rdm_module module;
  rdm_kernel kernel;
  float milliseconds = 0;
  void *pointer = NULL;
  uint64_t count = 0;
  size_t read = 0;
  const void *code = NULL;
  rdm_sim_call call;
  rdm_sim_objects objects = {.struct_size = sizeof objects};
  EXPECT_FORKED(work_submit_step(all->encoder, &all->kernels, all->memory, 1));
  EXPECT_FORKED(rdm_encoder_copy(all->encoder, all->memory, all->memory, 4, RDM_COPY_DEVICE_TO_DEVICE));
  EXPECT_FORKED(rdm_encoder_fill(all->encoder, all->memory, 0, 4));
  EXPECT_FORKED(rdm_encoder_add_completion_handler(all->encoder, ignore_status, NULL));
  EXPECT_FORKED(rdm_encoder_commit(all->encoder));
  EXPECT_FORKED(rdm_encoder_record_event(all->encoder, all->event));
  EXPECT_FORKED(rdm_encoder_wait_event(all->encoder, all->event));
  EXPECT_FORKED(rdm_encoder_get_native_stream(all->encoder, &pointer));
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
  EXPECT_FORKED(rdm_module_get_kernel(all->kernels.module, "step", &kernel));
  EXPECT_FORKED(rdm_module_compile_count(&count));
  EXPECT_FORKED(rdm_module_disk_hit_count(&count));
  EXPECT_FORKED(rdm_module_load(all->kernels.device, "x", "x", 1, &module));
  EXPECT_FORKED(rdm_code_get("sim", &work_source, &code, &read));
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
  if (strlen(rdm_last_error_message()) == 0 || rdm_version() != RDM_VERSION) failures++;
  if (test_now_ns() - start > TEST_SECOND) {
    fprintf(stderr, "the forked child's calls took %.1f s\n", (double)(test_now_ns() - start) * 1e-9);
    failures++;
  }
  exit(failures == 0 ? 21 : 22);
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
    CHECK_OK(rdm_device_synchronize(devices[index]));
  }
  return NULL;
}

static int fork_after_first_use(void) {
  live all = {0};
  pthread_t threads[4];
  test_use_sim(2);
  for (int32_t i = 0; i < 2; i++) CHECK_OK(rdm_device_get(i, &devices[i]));
  CHECK_OK(work_load(0, &all.kernels));
  CHECK_OK(rdm_stream_create(0, &all.stream));
  CHECK_OK(rdm_thread_local_stream_create(0, &all.thread_local_stream));
  CHECK_OK(rdm_encoder_get(all.stream, &all.encoder));
  CHECK_OK(rdm_event_create(all.kernels.device, RDM_EVENT_DEFAULT, &all.event));
  CHECK_OK(rdm_encoder_record_event(all.encoder, all.event));
  CHECK_OK(rdm_memory_allocate(all.kernels.device, 64, &all.memory));
  for (uintptr_t i = 0; i < 4; i++) threads[i] = test_start_thread(keep_locks_busy, (void *)i);
  for (int i = 0; i < 20 / TEST_SLOWDOWN + 2; i++) {
    test_sleep_ns(TEST_MILLISECOND);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) run_forked_child(&all);
    CHECK(wait_for_child(child) == 21);
  }
  stop = true;
  for (int i = 0; i < 4; i++) test_join_thread(threads[i]);
  CHECK_OK(rdm_event_query(all.event));
  CHECK_OK(work_on_new_stream(0, 1));
  CHECK_OK(work_on_new_stream(1, 1));
  return 0;
}

static void a_child_forked_after_first_use_is_refused_at_once_and_the_parent_goes_on(void) {
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
    {"fork_before_first_use", fork_before_first_use},
    {"fork_after_first_use", fork_after_first_use},
    {"fork_during_first_use", fork_during_first_use},
    {0},
};

const test_case fork_tests[] = {
    {.name = "a_child_forked_before_first_use_may_use_the_devices",
     .function = a_child_forked_before_first_use_may_use_the_devices},
    {.name = "a_child_forked_after_first_use_is_refused_at_once_and_the_parent_goes_on",
     .function = a_child_forked_after_first_use_is_refused_at_once_and_the_parent_goes_on},
    {.name = "a_child_forked_during_the_first_use_is_refused",
     .function = a_child_forked_during_the_first_use_is_refused},
    {0},
};
