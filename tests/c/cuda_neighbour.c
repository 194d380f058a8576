/*
 * Another user of the CUDA runtime in the same process, on a host with an NVIDIA GPU:
 *
 *   cc -std=c11 -D_GNU_SOURCE -DRDM_DRIVER_CUDA -O1 -Icsrc -Icsrc/include -o cuda_neighbour tests/c/cuda_neighbour.c \
 *     tests/c/work.c $(find csrc -name '*.c') -pthread -ldl -lm
 *   RDM_DRIVER=cuda ./cuda_neighbour
 *
 * It calls the runtime that the library has loaded. The last line is "N passed, M failed"; the exit code is 1 where one
 * failed. Without the library or a device it says so and ends with 77.
 */
#include "work.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

static int passed;
static int failed;

static void check(bool good, const char *what) {
  if (good) {
    passed++;
  } else {
    failed++;
    printf("FAILED %s: %s\n", what, rdm_last_error_message());
  }
}

static int (*set_device)(int);
static int (*get_last_error)(void);
static int (*peek_at_last_error)(void);
static int (*device_reset)(void);

/* The runtime that the library opened, and no second one. */
static bool find_neighbour(void) {
  rdm_driver_info info = {.struct_size = sizeof info};
  if (rdm_get_driver_info(&info) != RDM_OK) return false;
  void *runtime = dlopen(info.runtime_path, RTLD_NOW | RTLD_NOLOAD);
  if (runtime == NULL) return false;
  *(void **)&set_device = dlsym(runtime, "cudaSetDevice");
  *(void **)&get_last_error = dlsym(runtime, "cudaGetLastError");
  *(void **)&peek_at_last_error = dlsym(runtime, "cudaPeekAtLastError");
  *(void **)&device_reset = dlsym(runtime, "cudaDeviceReset");
  return set_device != NULL && get_last_error != NULL && peek_at_last_error != NULL && device_reset != NULL;
}

static bool evaluates(rdm_stream stream, const work_kernels *kernels, const work_buffers *buffers) {
  uint32_t wrong = 0;
  return work_evaluate(stream, kernels, buffers, &wrong) == RDM_OK && wrong == 0;
}

/* cudaErrorInvalidDevice (101), left pending by a call that names a device that is not there. */
static void leaves_an_error_pending(rdm_stream stream, const work_kernels *kernels, const work_buffers *buffers) {
  set_device(999);
  check(peek_at_last_error() == 101, "the neighbour's error is pending");
  check(evaluates(stream, kernels, buffers), "an evaluation beside a pending error");
  check(get_last_error() == 101, "the neighbour finds its own error");
  check(get_last_error() == 0, "and nothing of ours behind it");
}

static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/*
 * The primary context is destroyed under us, and with it every stream, event, module and buffer: each call says so, in
 * bounded time. What the runtime gave is not touched afterwards, the pinned memory either.
 */
static void resets_the_device(rdm_stream stream, rdm_device device) {
  check(device_reset() == 0, "the neighbour resets the device");
  double begin = now_s();
  rdm_status synchronized = rdm_stream_synchronize(stream, RDM_WAIT_FOREVER);
  printf("after cudaDeviceReset: synchronize is %s: %s\n", rdm_status_name(synchronized), rdm_last_error_message());
  check(synchronized != RDM_OK, "a stream that is gone is told");
  rdm_event event;
  rdm_status created = rdm_event_create(device, RDM_EVENT_TIMING, &event);
  printf("after cudaDeviceReset: an event is %s\n", rdm_status_name(created));
  check(now_s() - begin < 5, "calls after the reset come back");
}

int main(void) {
  work_kernels kernels;
  work_buffers buffers;
  rdm_stream stream;
  if (!find_neighbour() || work_load(0, &kernels) != RDM_OK) {
    printf("SKIPPED: %s\n", rdm_last_error_message());
    return 77;
  }
  check(work_buffers_allocate(kernels.device, &buffers) == RDM_OK, "buffers");
  check(rdm_stream_create(0, &stream) == RDM_OK, "a stream");
  check(evaluates(stream, &kernels, &buffers), "an evaluation");
  check(set_device(0) == 0 && evaluates(stream, &kernels, &buffers), "an evaluation after the neighbour's set-device");
  leaves_an_error_pending(stream, &kernels, &buffers);
  resets_the_device(stream, kernels.device);
  printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}
