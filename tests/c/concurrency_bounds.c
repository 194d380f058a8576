/* What a thread spends while it waits, and how soon it is back although another one is stuck in the driver. */
#include "calls.h"
#include "concurrency.h"
#include "work.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

/* ---- Waiting for another thread's compile ----------------------------------------------------------------------- */

enum { COMPILE_WAITERS = 8 };

static rdm_device device;

static void get_module(unsigned number) {
  rdm_module module;
  (void)number;
  CHECK_OK(rdm_module_get(device, &work_source, &module));
}

static void *get_module_on_many_threads(void *argument) {
  (void)argument;
  test_run_threads(COMPILE_WAITERS, get_module);
  return NULL;
}

static uint64_t process_cpu_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return (uint64_t)time.tv_sec * TEST_SECOND + (uint64_t)time.tv_nsec;
}

static void threads_that_wait_for_anothers_compile_use_no_processor_time(void) {
  test_use_sim(1);
  CHECK_OK(rdm_device_get(0, &device));
  CHECK_OK(rdm_sim_inject("hiprtcCompileProgram", 1, 1, 0, TEST_SECOND));
  pthread_t threads = test_start_thread(get_module_on_many_threads, NULL);
  calls_wait_until_inside("hiprtcCompileProgram", 10 * TEST_SECOND);
  test_sleep_ns(100 * TEST_MILLISECOND);
  uint64_t cpu = process_cpu_ns();
  uint64_t start = test_now_ns();
  test_sleep_ns(500 * TEST_MILLISECOND);
  cpu = process_cpu_ns() - cpu;
  uint64_t waited = test_now_ns() - start;
  test_join_thread(threads);
  uint64_t compiles = 0;
  CHECK_OK(rdm_module_compile_count(&compiles));
  CHECK(compiles == 1);
  CHECK_THAT(cpu < waited / 10, "%d threads used %.3f s of processor time in %.3f s", COMPILE_WAITERS,
             (double)cpu * 1e-9, (double)waited * 1e-9);
}

/* ---- The library's own thread stands still in the driver -------------------------------------------------------- */

static rdm_stream stream;
static rdm_encoder encoder;
static void *memory;

static void ignore(rdm_status status, void *user_data) {
  (void)status;
  (void)user_data;
}

/* On a device that starts no work, with a batch pending, so that the completion thread asks the driver and is stuck. */
static void let_the_worker_get_stuck(void) {
  test_use_sim(2);
  CHECK_OK(rdm_device_get(0, &device));
  CHECK_OK(rdm_memory_allocate(device, 64, &memory));
  CHECK_OK(rdm_stream_create(0, &stream));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
  CHECK_OK(rdm_sim_hold(0, 1));
  CHECK_OK(rdm_encoder_fill(encoder, memory, 1, 64));
  CHECK_OK(rdm_encoder_add_completion_handler(encoder, ignore, NULL));
  CHECK_OK(rdm_sim_inject("hipStreamQuery", 1, 0, 0, 600 * TEST_SECOND));
  CHECK_OK(rdm_encoder_commit(encoder));
  calls_wait_until_inside("hipStreamQuery", 10 * TEST_SECOND);
}

/* Another thread than the one that is stuck meets the fault. */
static void latch_a_fault(void) {
  void *pointer = NULL;
  CHECK_OK(rdm_sim_fault(0, 700));
  CHECK_STATUS(rdm_memory_allocate(device, 64, &pointer), RDM_ERROR_DEVICE_FAULT);
}

/* One call on a thread of its own, since it may never come back. */
typedef struct guarded_call {
  const char *name;
  rdm_status (*function)(void);
  rdm_status expected;
  rdm_status status;
  atomic_bool is_back;
} guarded_call;

static void *make_call(void *argument) {
  guarded_call *call = argument;
  call->status = call->function();
  call->is_back = true;
  return NULL;
}

static void begin_call(guarded_call *call) {
  pthread_detach(test_start_thread(make_call, call));
}

static void check_back_within_a_second(guarded_call *call) {
  uint64_t end = test_now_ns() + TEST_SECOND;
  while (!call->is_back && test_now_ns() < end) test_sleep_ns(TEST_MILLISECOND);
  CHECK_THAT(call->is_back, "%s is not back after a second", call->name);
  CHECK_THAT(call->status == call->expected, "%s returned %s, expected %s", call->name, rdm_status_name(call->status),
             rdm_status_name(call->expected));
}

static rdm_status synchronize_for_ever(void) {
  return rdm_stream_synchronize(stream, RDM_WAIT_FOREVER);
}

static rdm_status synchronize_device_for_ever(void) {
  return rdm_device_synchronize(device, RDM_WAIT_FOREVER);
}

static rdm_status submit(void) {
  return rdm_encoder_fill(encoder, memory, 2, 64);
}

static rdm_status commit(void) {
  return rdm_encoder_commit(encoder);
}

static rdm_status release(void) {
  return rdm_stream_release(stream);
}

static void a_wait_ends_with_the_fault_although_the_librarys_thread_is_stuck(void) {
  static guarded_call call = {
      .name = "rdm_stream_synchronize", .function = synchronize_for_ever, .expected = RDM_ERROR_DEVICE_FAULT};
  let_the_worker_get_stuck();
  begin_call(&call);
  test_sleep_ns(50 * TEST_MILLISECOND);
  CHECK(!call.is_back);
  latch_a_fault();
  check_back_within_a_second(&call);
}

static void calls_come_back_after_a_fault_although_the_librarys_thread_is_stuck(void) {
  static guarded_call calls[] = {
      {.name = "rdm_encoder_fill", .function = submit, .expected = RDM_ERROR_DEVICE_FAULT},
      {.name = "rdm_encoder_commit", .function = commit, .expected = RDM_ERROR_DEVICE_FAULT},
      {.name = "rdm_device_synchronize", .function = synchronize_device_for_ever, .expected = RDM_ERROR_DEVICE_FAULT},
      {.name = "rdm_clear_encoders", .function = rdm_clear_encoders, .expected = RDM_OK},
      {.name = "rdm_stream_release", .function = release, .expected = RDM_OK},
  };
  let_the_worker_get_stuck();
  latch_a_fault();
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
    begin_call(&calls[i]);
    check_back_within_a_second(&calls[i]);
  }
  CHECK_OK(work_on_new_stream(1, 1));
}

static void a_clear_and_a_release_come_back_although_the_librarys_thread_is_stuck(void) {
  static guarded_call calls[] = {
      {.name = "rdm_clear_encoders", .function = rdm_clear_encoders, .expected = RDM_OK},
      {.name = "rdm_stream_release", .function = release, .expected = RDM_OK},
  };
  let_the_worker_get_stuck();
  /* Neither waits for the other. */
  begin_call(&calls[1]);
  check_back_within_a_second(&calls[1]);
  begin_call(&calls[0]);
  check_back_within_a_second(&calls[0]);
}

const test_case bound_tests[] = {
    {.name = "threads_that_wait_for_anothers_compile_use_no_processor_time",
     .function = threads_that_wait_for_anothers_compile_use_no_processor_time},
    {.name = "a_wait_ends_with_the_fault_although_the_librarys_thread_is_stuck",
     .function = a_wait_ends_with_the_fault_although_the_librarys_thread_is_stuck,
     .writes_to_standard_error = true},
    {.name = "calls_come_back_after_a_fault_although_the_librarys_thread_is_stuck",
     .function = calls_come_back_after_a_fault_although_the_librarys_thread_is_stuck,
     .writes_to_standard_error = true},
    {.name = "a_clear_and_a_release_come_back_although_the_librarys_thread_is_stuck",
     .function = a_clear_and_a_release_come_back_although_the_librarys_thread_is_stuck},
    {0},
};
