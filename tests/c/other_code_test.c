/*
 * Other GPU code in the same process, on the driver that RDM_DRIVER names: `other_code_test`. It moves the thread's
 * current device, leaves errors pending, captures streams, and in the end resets the device under the library. On
 * `cuda` the other code is the CUDA runtime itself.
 */
#include "capture_work.h"
#include "other_code.h"
#include "test.h"
#include "work.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { POLLS = 1000, MOST_CALLS_AFTER_RESET = 100, CAPTURE_THREADS = 4, CAPTURE_ROUNDS = 3 };

static rdm_driver_info driver = {.struct_size = sizeof driver};
static int32_t device_count;
static work_kernels kernels;
static work_buffers buffers;
static rdm_stream stream;

static void evaluate_right(void) {
  uint32_t wrong = 1;
  CHECK_OK(work_evaluate(stream, &kernels, &buffers, &wrong));
  CHECK(wrong == 0);
}

static void the_device_is_moved(void) {
  for (int i = 0; i < POLLS; i++) {
    CHECK(other_code_sets_device(i % device_count) == 0);
    evaluate_right();
  }
  printf("moved the device %d times among %d: every value right\n", POLLS, device_count);
}

static void an_error_is_pending(void) {
  rdm_event event;
  rdm_encoder encoder;
  int polls = 0;
  CHECK_OK(rdm_event_create(kernels.device, RDM_EVENT_DEFAULT, &event));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
  int left = other_code_sets_device(77);
  CHECK(left != 0 && other_code_peeks_at_last_error() == left);
  uint64_t start = test_now_ns();
  for (int i = 0; i < POLLS; i++) {
    CHECK_OK(work_submit(encoder, &kernels, &buffers));
    CHECK_OK(rdm_encoder_record_event(encoder, event));
    rdm_status status;
    while ((status = rdm_event_query(event)) == RDM_NOT_READY) polls++;
    CHECK_OK(status);
    CHECK_OK(rdm_event_wait(event, RDM_WAIT_FOREVER));
    CHECK_OK(rdm_stream_synchronize(stream, RDM_WAIT_FOREVER));
    CHECK(work_count_wrong(&buffers) == 0);
  }
  CHECK_THAT(other_code_peeks_at_last_error() == left, "the pending error %d became %d", left,
             other_code_peeks_at_last_error());
  printf("error %d stayed pending through %d evaluations and %d polls that found them not ready, %.1f us each\n", left,
         POLLS, polls, (double)(test_now_ns() - start) * 1e-3 / POLLS);
  CHECK_OK(rdm_event_release(event));
}

static void *work_beside_a_capture(void *argument) {
  (void)argument;
  for (int i = 0; i < CAPTURE_ROUNDS; i++) capture_work_do(0);
  return NULL;
}

static void *allocate_elsewhere(void *argument) {
  *(int *)argument = other_code_sets_device(0) == 0 ? other_code_allocates() : -1;
  return NULL;
}

/* Field log 16: what the library does on any thread must not end a capture that other code has begun. */
static void a_stream_is_captured(void) {
  int modes = 0;
  CHECK(other_code_sets_device(0) == 0);
  void *foreign = other_code_creates_stream();
  for (int mode = 0; mode <= 2; mode++) {
    CHECK(other_code_begins_capture(foreign, mode) == 0);
    pthread_t threads[CAPTURE_THREADS];
    for (int i = 0; i < CAPTURE_THREADS; i++) threads[i] = test_start_thread(work_beside_a_capture, NULL);
    capture_work_do(0);
    for (int i = 0; i < CAPTURE_THREADS; i++) test_join_thread(threads[i]);
    CHECK_THAT(other_code_asks_for_capture(foreign) == 1, "the capture of mode %d is lost", mode);
    CHECK(other_code_ends_capture(foreign) == 0);
    modes++;
  }
  /* The same call by other code does end it. */
  int error = 0;
  CHECK(other_code_begins_capture(foreign, 0) == 0);
  test_join_thread(test_start_thread(allocate_elsewhere, &error));
  CHECK_THAT(error == 900 && other_code_ends_capture(foreign) == 901, "an allocation of other code gave %d", error);
  evaluate_right();
  printf("captures of %d modes stayed whole beside %d threads; other code's allocation ended one (%d)\n", modes,
         CAPTURE_THREADS, error);
}

/* The library's own stream, captured by who was lent it. */
static void our_stream_is_captured(void) {
  void *native = NULL;
  rdm_encoder encoder;
  rdm_event event;
  rdm_error taken = {.struct_size = sizeof taken};
  CHECK_OK(rdm_event_create(kernels.device, RDM_EVENT_DEFAULT, &event));
  CHECK_OK(rdm_encoder_get(stream, &encoder));
  CHECK_OK(rdm_encoder_get_native_stream(encoder, &native));
  CHECK(other_code_begins_capture(native, 0) == 0);
  CHECK_OK(work_submit(encoder, &kernels, &buffers));
  CHECK_STATUS(rdm_stream_synchronize(stream, RDM_WAIT_FOREVER), RDM_ERROR_CAPTURING);
  CHECK(other_code_asks_for_capture(native) == 1);
  CHECK_OK(rdm_encoder_record_event(encoder, event));
  CHECK_STATUS(rdm_event_query(event), RDM_ERROR_CAPTURING);
  CHECK(other_code_asks_for_capture(native) == 2 && other_code_ends_capture(native) == 901);
  CHECK_OK(rdm_stream_take_error(stream, &taken));
  evaluate_right();
  CHECK_OK(rdm_event_release(event));
  printf("a captured stream of ours: RDM_ERROR_CAPTURING, and all works when it is over\n");
}

/* The runtime's own reset; on `sim`, which has none, what it would leave. */
static void reset_device(void) {
  if (strcmp(driver.name, "sim") == 0) {
    CHECK_OK(rdm_sim_fault(0, 709));
    return;
  }
  void *runtime = dlopen(driver.runtime_path, RTLD_NOW | RTLD_NOLOAD);
  CHECK_THAT(runtime != NULL, "%s is not loaded", driver.runtime_path);
  int (*reset)(void) = NULL;
  *(void **)&reset = dlsym(runtime, strcmp(driver.name, "cuda") == 0 ? "cudaDeviceReset" : "hipDeviceReset");
  CHECK(reset != NULL && other_code_sets_device(0) == 0);
  printf("the reset returned %d\n", reset());
}

static rdm_status submit_and_wait(void) {
  rdm_encoder encoder;
  rdm_status status = rdm_encoder_get(stream, &encoder);
  if (status == RDM_OK) status = work_submit(encoder, &kernels, &buffers);
  return status == RDM_OK ? rdm_stream_synchronize(stream, RDM_WAIT_FOREVER) : status;
}

/*
 * An error, each time at once: what the reset destroyed is not there to be right with. The buffers are gone as well,
 * the pinned one too, so nothing is read back.
 */
static void the_device_is_reset(void) {
  reset_device();
  uint64_t slowest = 0;
  rdm_status last = RDM_OK;
  for (int i = 0; i < MOST_CALLS_AFTER_RESET; i++) {
    uint64_t start = test_now_ns();
    last = submit_and_wait();
    uint64_t took = test_now_ns() - start;
    if (took > slowest) slowest = took;
    CHECK_STATUS(last, RDM_ERROR_DEVICE_FAULT);
  }
  printf("after the reset: %s, the slowest call %.3f ms: %s\n", rdm_status_name(last), (double)slowest * 1e-6,
         last == RDM_OK ? "" : rdm_last_error_message());
  CHECK(slowest < 5 * TEST_SECOND);
  CHECK_OK(rdm_stream_release(stream));
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  CHECK_OK(rdm_get_driver_info(&driver));
  CHECK_OK(rdm_device_count(&device_count));
  CHECK(device_count > 0);
  CHECK_OK(work_load(0, &kernels));
  CHECK_OK(work_buffers_allocate(kernels.device, &buffers));
  CHECK_OK(rdm_stream_create(0, &stream));
  the_device_is_moved();
  an_error_is_pending();
  a_stream_is_captured();
  our_stream_is_captured();
  the_device_is_reset();
  printf("other code: passed on %s\n", driver.name);
  return 0;
}
