/* Several threads at one object in the same moment: one of them wins, each is told the truth, and nothing is lost. */
#include "calls.h"
#include "concurrency.h"
#include "handle.h"
#include "lock.h"
#include "log.h"
#include "log_lines.h"
#include "other_code.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 2000 / TEST_SLOWDOWN };

/* A barrier that is left within nanoseconds, which a lock's wake-ups are not. */
static atomic_uint arrived;

static void meet(unsigned round) {
  atomic_fetch_add(&arrived, 1);
  for (unsigned spins = 0; atomic_load(&arrived) < (round + 1) * THREADS; spins++) {
    if (spins > 1000) sched_yield();
  }
}

/* ---- Releases --------------------------------------------------------------------------------------------------- */

static rdm_device device;
static rdm_event shared_event;
static rdm_stream shared_stream;
static atomic_uint told_ok;

/* Each round has two meetings: before what all do at once, and after it. */
static void release_one_event(unsigned number) {
  for (unsigned round = 0; round < ROUNDS; round++) {
    if (number == 0) {
      CHECK_OK(rdm_event_create(device, RDM_EVENT_DEFAULT, &shared_event));
      told_ok = 0;
    }
    meet(3 * round);
    rdm_event event = shared_event;
    meet(3 * round + 1);
    rdm_status status = rdm_event_release(event);
    CHECK_THAT(status == RDM_OK || status == RDM_ERROR_STALE_HANDLE, "%s", rdm_status_name(status));
    told_ok += status == RDM_OK;
    meet(3 * round + 2);
    if (number == 0) CHECK_THAT(told_ok == 1, "round %u: %u threads released one event", round, told_ok);
  }
}

static void one_of_the_threads_that_release_an_event_at_once_does(void) {
  test_use_sim(1);
  CHECK_OK(rdm_device_get(0, &device));
  test_run_threads(THREADS, release_one_event);
}

/* What several threads would meet by chance, one after the other: each has the object pinned as the first closes it. */
static void an_object_is_closed_once_by_those_who_have_it_pinned(void) {
  static rdm__handle_table table = RDM__HANDLE_TABLE(RDM__HANDLE_EVENT, rdm__object, NULL);
  rdm__object *object = rdm__handle_allocate(&table);
  CHECK(object != NULL);
  uint64_t bits = rdm__handle_open(&table, object);
  for (int i = 0; i < THREADS; i++) CHECK_OK(rdm__handle_pin(&table, bits, &object));
  for (int i = 0; i < THREADS; i++) CHECK(rdm__object_close(&table, object) == (i == 0));
  for (int i = 0; i < THREADS; i++) {
    CHECK_STATUS(rdm__handle_try_pin(&table, bits, &object), RDM_ERROR_STALE_HANDLE);
    rdm__object_unpin(&table, object);
  }
  CHECK(rdm__handle_allocate(&table) != NULL);
  CHECK_STATUS(rdm__handle_try_pin(&table, bits, &object), RDM_ERROR_STALE_HANDLE);
}

static uint64_t retired_bits;
static unsigned retired;

/* As another thread would that comes with the old handle now. */
static bool ask_for_the_handle(rdm__object *object);

static rdm__handle_table asking_table = RDM__HANDLE_TABLE(RDM__HANDLE_EVENT, rdm__object, ask_for_the_handle);

static bool ask_for_the_handle(rdm__object *object) {
  CHECK_STATUS(rdm__handle_try_pin(&asking_table, retired_bits, &object), RDM_ERROR_STALE_HANDLE);
  retired++;
  return true;
}

/* Once alone, which is one step, and once with the object pinned as its handle is closed. */
static void a_handle_is_stale_while_its_object_is_retired(void) {
  for (unsigned pins = 0; pins < 2; pins++) {
    rdm__object *object = rdm__handle_allocate(&asking_table);
    CHECK(object != NULL);
    retired_bits = rdm__handle_open(&asking_table, object);
    for (unsigned i = 0; i < pins; i++) CHECK_OK(rdm__handle_pin(&asking_table, retired_bits, &object));
    CHECK_OK(rdm__handle_close(&asking_table, retired_bits));
    for (unsigned i = 0; i < pins; i++) rdm__object_unpin(&asking_table, object);
    CHECK(retired == pins + 1);
  }
}

static void drop_one_reference_each(unsigned number) {
  for (unsigned round = 0; round < ROUNDS; round++) {
    if (number == 0) {
      CHECK_OK(rdm_stream_create(0, &shared_stream));
      for (int i = 1; i < THREADS; i++) CHECK_OK(rdm_stream_retain(shared_stream));
    }
    meet(3 * round);
    rdm_stream stream = shared_stream;
    meet(3 * round + 1);
    CHECK_OK(rdm_stream_release(stream));
    meet(3 * round + 2);
    rdm_stream_info info = {.struct_size = sizeof info};
    if (number == 0) CHECK_STATUS(rdm_stream_get_info(stream, &info), RDM_ERROR_STALE_HANDLE);
  }
}

static void references_dropped_at_once_all_count(void) {
  test_use_sim(1);
  test_run_threads(THREADS, drop_one_reference_each);
}

/* ---- A device's threads ----------------------------------------------------------------------------------------- */

enum { DEVICES = 48 };

static rdm_stream streams[DEVICES][THREADS];
static rdm_encoder encoders[DEVICES][THREADS];
static rdm_event events[DEVICES];

static void ignore(rdm_status status, void *user_data) {
  (void)status;
  (void)user_data;
}

static void need_both_threads_of_each_device(unsigned number) {
  /* An error pending from other code makes the library poll on a thread of its own. */
  CHECK(other_code_sets_device(DEVICES) != 0);
  for (unsigned i = 0; i < DEVICES; i++) {
    meet(2 * i);
    CHECK_OK(rdm_encoder_add_completion_handler(encoders[i][number], ignore, NULL));
    meet(2 * i + 1);
    CHECK_STATUS(rdm_event_query(events[i]), RDM_NOT_READY);
  }
}

static unsigned count_threads(void) {
  unsigned count = 0;
  DIR *listing = opendir("/proc/self/task");
  CHECK(listing != NULL);
  for (struct dirent *each = readdir(listing); each != NULL; each = readdir(listing)) count += each->d_name[0] != '.';
  closedir(listing);
  return count;
}

static void threads_that_start_a_devices_threads_at_once_start_one_of_each(void) {
  test_use_sim(DEVICES);
  for (int32_t i = 0; i < DEVICES; i++) {
    CHECK_OK(rdm_device_get(i, &device));
    CHECK_OK(rdm_event_create(device, RDM_EVENT_DEFAULT, &events[i]));
    CHECK_OK(rdm_sim_hold(i, 1));
    for (int k = 0; k < THREADS; k++) {
      CHECK_OK(rdm_stream_create(i, &streams[i][k]));
      CHECK_OK(rdm_encoder_get(streams[i][k], &encoders[i][k]));
    }
    CHECK_OK(rdm_encoder_record_event(encoders[i][0], events[i]));
  }
  unsigned before = count_threads();
  test_run_threads(THREADS, need_both_threads_of_each_device);
  unsigned expected = before + 2 * DEVICES;
  /* A thread that was joined may be listed for a moment yet. */
  for (int i = 0; i < 1000 && count_threads() != expected; i++) test_sleep_ns(TEST_MILLISECOND);
  CHECK_THAT(count_threads() == expected, "%u threads of the library for %d devices, which have 2 each",
             count_threads() - before, DEVICES);
  for (int32_t i = 0; i < DEVICES; i++) CHECK_OK(rdm_sim_hold(i, 0));
}

/* ---- A device's threads and signals ----------------------------------------------------------------------------- */

static void fail_on_a_signal(int number) {
  (void)number;
  static const char text[] = "a thread of the library took the signal\n";
  (void)!write(STDERR_FILENO, text, sizeof text - 1);
  _exit(1);
}

/* With the one thread of the program deaf to it, the signal stays pending. */
static void a_signal_reaches_no_thread_of_the_library(void) {
  sigset_t one;
  sigset_t pending;
  rdm_encoder encoder;
  test_use_sim(1);
  CHECK(signal(SIGUSR2, fail_on_a_signal) != SIG_ERR);
  CHECK_OK(rdm_stream_create(0, &shared_stream));
  CHECK_OK(rdm_encoder_get(shared_stream, &encoder));
  CHECK_OK(rdm_encoder_add_completion_handler(encoder, ignore, NULL));
  CHECK_OK(rdm_stream_synchronize(shared_stream, RDM_WAIT_FOREVER));
  sigemptyset(&one);
  sigaddset(&one, SIGUSR2);
  CHECK(pthread_sigmask(SIG_BLOCK, &one, NULL) == 0);
  CHECK(kill(getpid(), SIGUSR2) == 0);
  test_sleep_ns(50 * TEST_MILLISECOND);
  CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGUSR2) == 1);
}

/* ---- What is made once ------------------------------------------------------------------------------------------ */

static rdm_encoder made[THREADS];

static void get_encoder(unsigned number) {
  CHECK_OK(rdm_encoder_get(shared_stream, &made[number]));
}

/* The first is so long in the driver that all the others come meanwhile. */
static void an_encoder_asked_for_at_once_is_one(void) {
  test_use_sim(1);
  CHECK_OK(rdm_stream_create(0, &shared_stream));
  CHECK_OK(rdm_sim_inject("hipStreamCreateWithFlags", 1, 0, 0, 100 * TEST_MILLISECOND));
  test_run_threads(THREADS, get_encoder);
  for (int i = 1; i < THREADS; i++) CHECK(made[i].bits == made[0].bits);
  CHECK(calls_made("hipStreamCreateWithFlags") == 1);
}

static void get_device(unsigned number) {
  rdm_device constructed;
  (void)number;
  CHECK_OK(rdm_device_get(0, &constructed));
}

static void a_device_that_several_wait_for_is_logged_once(void) {
  test_use_sim(1);
  log_lines_capture();
  CHECK_OK(rdm_sim_inject("hipGetDeviceProperties", 1, 0, 0, 100 * TEST_MILLISECOND));
  test_run_threads(THREADS, get_device);
  CHECK_THAT(log_lines_with("bound HIP device 0") == 1, "%u lines", log_lines_with("bound HIP device 0"));
}

static rdm_stream registered[THREADS];

static void register_each_index(unsigned number) {
  for (unsigned round = 0; round < ROUNDS; round++) {
    meet(2 * round);
    CHECK_OK(rdm_stream_get(0, (int32_t)round, &registered[number]));
    meet(2 * round + 1);
    CHECK(registered[number].bits == registered[0].bits);
  }
}

static void a_stream_index_registered_at_once_is_one_stream(void) {
  test_use_sim(1);
  test_run_threads(THREADS, register_each_index);
}

/* ---- Errors ----------------------------------------------------------------------------------------------------- */

static atomic_uint readers_left;

static void take(void) {
  rdm_error error = {.struct_size = sizeof error};
  CHECK_OK(rdm_stream_take_error(shared_stream, &error));
  CHECK_THAT(error.status == RDM_OK || strcmp(error.message, "recorded") == 0, "\"%s\"", error.message);
}

static void report(void) {
  rdm_status status = rdm_stream_synchronize(shared_stream, RDM_WAIT_FOREVER);
  CHECK_THAT(status == RDM_OK || status == RDM_ERROR_LAUNCH, "%s", rdm_status_name(status));
}

/* Two threads read, and two record for as long as those do. */
static void record_report_and_take(unsigned number) {
  meet(0);
  for (unsigned round = 0; number < 2 && round < 10 * ROUNDS; round++) number == 0 ? take() : report();
  if (number < 2) readers_left--;
  while (number >= 2 && readers_left > 0)
    CHECK_OK(rdm_stream_record_error(shared_stream, RDM_ERROR_LAUNCH, "recorded"));
}

static void errors_recorded_at_once_are_kept_whole_and_freed_once(void) {
  test_use_sim(1);
  readers_left = 2;
  CHECK_OK(rdm_stream_create(0, &shared_stream));
  test_run_threads(THREADS, record_report_and_take);
}

/* What is lost of an error that is recorded over another shows as a leak, to the leak checker. */
static void record_and_take_one(unsigned number) {
  for (unsigned round = 0; round < ROUNDS; round++) {
    rdm_error error = {.struct_size = sizeof error};
    meet(2 * round);
    CHECK_OK(rdm_stream_record_error(shared_stream, RDM_ERROR_LAUNCH, "recorded"));
    meet(2 * round + 1);
    if (number != 0) continue;
    CHECK_OK(rdm_stream_take_error(shared_stream, &error));
    CHECK_STATUS(error.status, RDM_ERROR_LAUNCH);
    CHECK_OK(rdm_stream_take_error(shared_stream, &error));
    CHECK_STATUS(error.status, RDM_OK);
  }
}

static void of_errors_recorded_at_once_one_is_kept(void) {
  test_use_sim(1);
  CHECK_OK(rdm_stream_create(0, &shared_stream));
  test_run_threads(THREADS, record_and_take_one);
}

static rdm_encoder own_encoders[2];
static char *memory;

static void *fill_and_fault(void *argument) {
  (void)argument;
  CHECK_STATUS(rdm_encoder_fill(own_encoders[0], memory, 1, 8), RDM_ERROR_DEVICE_FAULT);
  return NULL;
}

static void *copy_and_fault(void *argument) {
  (void)argument;
  CHECK_STATUS(rdm_encoder_copy(own_encoders[1], memory + 8, memory + 16, 8, RDM_COPY_DEVICE_TO_DEVICE),
               RDM_ERROR_DEVICE_FAULT);
  return NULL;
}

/* Two threads are inside the driver as it faults, and are told different things. */
static void the_first_fault_is_kept_though_another_follows(void) {
  test_use_sim(1);
  void *allocated = NULL;
  CHECK_OK(rdm_device_get(0, &device));
  CHECK_OK(rdm_memory_allocate(device, 64, &allocated));
  memory = allocated;
  for (int i = 0; i < 2; i++) {
    rdm_stream stream;
    CHECK_OK(rdm_stream_create(0, &stream));
    CHECK_OK(rdm_encoder_get(stream, &own_encoders[i]));
  }
  CHECK_OK(rdm_sim_inject("hipMemsetAsync", 1, 1, 719, 300 * TEST_MILLISECOND));
  CHECK_OK(rdm_sim_inject("hipMemcpyAsync", 1, 1, 700, 100 * TEST_MILLISECOND));
  pthread_t second = test_start_thread(fill_and_fault, NULL);
  calls_wait_until_inside("hipMemsetAsync", 10 * TEST_SECOND);
  pthread_t first = test_start_thread(copy_and_fault, NULL);
  test_join_thread(first);
  test_join_thread(second);
  rdm_error error = {.struct_size = sizeof error};
  CHECK_STATUS(rdm_encoder_fill(own_encoders[0], memory, 1, 8), RDM_ERROR_DEVICE_FAULT);
  CHECK_OK(rdm_last_error(&error));
  CHECK_THAT(error.driver_code == 700, "the device's first fault was 700, and %d is told", error.driver_code);
}

/* ---- The log ---------------------------------------------------------------------------------------------------- */

/* Each handler knows the user data that it was installed with. */
static void first_handler(rdm_log_level level, const char *message, void *user_data) {
  (void)message;
  CHECK(level == RDM_LOG_INFO && user_data == &arrived);
}

static void second_handler(rdm_log_level level, const char *message, void *user_data) {
  (void)message;
  CHECK(level == RDM_LOG_INFO && user_data == &told_ok);
}

static void log_or_replace(unsigned number) {
  meet(0);
  for (unsigned round = 0; round < ROUNDS; round++) {
    if (number < 2) {
      rdm__log(RDM_LOG_INFO, "line %u of thread %u", round, number);
    } else {
      CHECK_OK(rdm_set_log_handler(first_handler, &arrived, RDM_LOG_INFO));
      CHECK_OK(rdm_set_log_handler(second_handler, &told_ok, RDM_LOG_DEBUG));
    }
  }
}

static void log_handlers_are_replaced_while_others_log(void) {
  CHECK_OK(rdm_set_log_handler(first_handler, &arrived, RDM_LOG_INFO));
  test_run_threads(THREADS, log_or_replace);
}

/* ---- Lock ranks ------------------------------------------------------------------------------------------------- */

static rdm__mutex leaf = RDM__MUTEX_INIT(RDM__RANK_LEAF);
static rdm__mutex queue = RDM__MUTEX_INIT(RDM__RANK_QUEUE);

static int take_locks_in_the_wrong_order(void) {
  rdm__mutex_lock(&leaf);
  rdm__mutex_lock(&queue);
  return 0;
}

static void locks_taken_in_the_wrong_order_end_the_process(void) {
  process_outcome outcome;
  test_run_body("take_locks_in_the_wrong_order", NULL, 20, &outcome);
  CHECK_THAT(outcome.signal == SIGABRT, "signal %d, exit code %d", outcome.signal, outcome.exit_code);
  CHECK(strstr(outcome.standard_error, "[rdm] lock order") != NULL);
}

static atomic_uint lines;

/* Uses another device for the first time, on the thread that logs. */
static void use_the_next_device(rdm_log_level level, const char *message, void *user_data) {
  rdm_device next;
  (void)message;
  (void)user_data;
  CHECK(level == RDM_LOG_INFO);
  if (++lines < DEVICES) CHECK_OK(rdm_device_get((int32_t)lines, &next));
}

static void a_log_handler_may_use_the_library(void) {
  test_use_sim(DEVICES);
  CHECK_OK(rdm_set_log_handler(use_the_next_device, NULL, RDM_LOG_INFO));
  CHECK_OK(rdm_device_get(0, &device));
  CHECK_THAT(lines == DEVICES, "%u lines on %d devices", lines, DEVICES);
}

const test_case at_once_tests[] = {
    {.name = "one_of_the_threads_that_release_an_event_at_once_does",
     .function = one_of_the_threads_that_release_an_event_at_once_does},
    {.name = "an_object_is_closed_once_by_those_who_have_it_pinned",
     .function = an_object_is_closed_once_by_those_who_have_it_pinned},
    {.name = "a_handle_is_stale_while_its_object_is_retired",
     .function = a_handle_is_stale_while_its_object_is_retired},
    {.name = "references_dropped_at_once_all_count", .function = references_dropped_at_once_all_count},
    {.name = "threads_that_start_a_devices_threads_at_once_start_one_of_each",
     .function = threads_that_start_a_devices_threads_at_once_start_one_of_each},
    {.name = "a_signal_reaches_no_thread_of_the_library", .function = a_signal_reaches_no_thread_of_the_library},
    {.name = "an_encoder_asked_for_at_once_is_one", .function = an_encoder_asked_for_at_once_is_one},
    {.name = "a_device_that_several_wait_for_is_logged_once",
     .function = a_device_that_several_wait_for_is_logged_once},
    {.name = "a_stream_index_registered_at_once_is_one_stream",
     .function = a_stream_index_registered_at_once_is_one_stream},
    {.name = "errors_recorded_at_once_are_kept_whole_and_freed_once",
     .function = errors_recorded_at_once_are_kept_whole_and_freed_once},
    {.name = "of_errors_recorded_at_once_one_is_kept", .function = of_errors_recorded_at_once_one_is_kept},
    {.name = "the_first_fault_is_kept_though_another_follows",
     .function = the_first_fault_is_kept_though_another_follows,
     .writes_to_standard_error = true},
    {.name = "log_handlers_are_replaced_while_others_log", .function = log_handlers_are_replaced_while_others_log},
    {.name = "locks_taken_in_the_wrong_order_end_the_process",
     .function = locks_taken_in_the_wrong_order_end_the_process},
    {.name = "a_log_handler_may_use_the_library", .function = a_log_handler_may_use_the_library},
    {0},
};

const test_body at_once_bodies[] = {{"take_locks_in_the_wrong_order", take_locks_in_the_wrong_order}, {0}};
