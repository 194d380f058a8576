/* Kernel launches: arguments, shapes, limits and order. */
#include "conformance.h"

static void fill(void) {
  enum { COUNT = 1000 };
  void *kernel = make_kernel(make_module(), "fill");
  void *stream = make_stream();
  float *memory = make_device_memory(sizeof(float) * COUNT);
  float *host = make_host_memory(sizeof(float) * COUNT);
  need("memset", driver->memory_set_async(memory, 0, sizeof(float) * COUNT, stream));
  check_error("launch", launch_fill(kernel, stream, memory, 2.5f, COUNT - 1), 0);
  need("copy", driver->memory_copy_async(host, memory, sizeof(float) * COUNT, 2, stream));
  check_error("launch.synchronize", driver->stream_synchronize(stream), 0);
  bool right = true;
  for (int i = 0; i < COUNT - 1; i++) right = right && host[i] == 2.5f;
  check("launch.data", right && host[COUNT - 1] == 0.0f, "it differs");
}

/* Arguments are read at the call: the caller may change them as soon as it returns. */
static void arguments(void) {
  void *kernel = make_kernel(make_module(), "fill");
  void *stream = make_stream();
  float *memory = make_device_memory(sizeof(float) * 64);
  float *host = make_host_memory(sizeof(float) * 64);
  gate held;
  gate_make(&held);
  void *out = memory;
  float value = 3.0f;
  unsigned count = 64;
  void *list[] = {&out, &value, &count};
  const unsigned grid[3] = {1, 1, 1};
  const unsigned block[3] = {64, 1, 1};
  gate_hold(&held, stream);
  need("launch", driver->launch_kernel(kernel, grid, block, 0, stream, list));
  out = NULL;
  value = 99.0f;
  count = 0;
  list[0] = list[1] = list[2] = NULL;
  need("copy", driver->memory_copy_async(host, memory, sizeof(float) * 64, 2, stream));
  gate_open(&held);
  need("stream_synchronize", driver->stream_synchronize(stream));
  check("launch.arguments_are_copied", host[0] == 3.0f && host[63] == 3.0f, "the kernel saw %f", (double)host[0]);
}

static void shapes(void) {
  void *kernel = make_kernel(make_module(), "shape");
  void *stream = make_stream();
  unsigned *memory = make_device_memory(sizeof(unsigned) * 64);
  unsigned *host = make_host_memory(sizeof(unsigned) * 64);
  void *list[] = {&memory};
  const unsigned grid[3] = {3, 4, 5};
  const unsigned block[3] = {7, 6, 2};
  need("memset", driver->memory_set_async(memory, 0, sizeof(unsigned) * 64, stream));
  check_error("launch.three_dimensions", driver->launch_kernel(kernel, grid, block, 0, stream, list), 0);
  need("copy", driver->memory_copy_async(host, memory, sizeof(unsigned) * 64, 2, stream));
  need("stream_synchronize", driver->stream_synchronize(stream));
  bool right = host[60] == 0;
  for (int i = 0; i < 60; i++) right = right && host[i] == 70602u;
  check("launch.shape", right, "block 0 saw %u", host[0]);
  const unsigned largest[3] = {1024, 1, 1};
  check_error("launch.largest_block", driver->launch_kernel(kernel, grid, largest, 0, stream, list), 0);
  check_error("launch.largest_block_done", driver->stream_synchronize(stream), 0);
}

static void refused(void) {
  void *module = make_module();
  void *kernel = make_kernel(module, "shape");
  void *stream = make_stream();
  unsigned *memory = make_device_memory(sizeof(unsigned) * 64);
  void *list[] = {&memory};
  const unsigned one[3] = {1, 1, 1};
  const unsigned blocks_too_large[4][3] = {{2048, 1, 1}, {1025, 1, 1}, {32, 33, 1}, {1, 1, 2048}};
  bool all = true;
  for (int i = 0; i < 4; i++) {
    int error = driver->launch_kernel(kernel, one, blocks_too_large[i], 0, stream, list);
    all = all && (error == RDM_HIP_INVALID_VALUE || error == RDM_HIP_INVALID_CONFIGURATION);
  }
  check("launch.too_many_threads", all, "one was not refused");
  check_either("launch.too_many_threads_last_error", driver->get_last_error(), RDM_HIP_INVALID_VALUE,
               RDM_HIP_INVALID_CONFIGURATION);
  check_error("launch.refusal_is_left_once", driver->get_last_error(), 0);
  const unsigned no_threads[3] = {0, 1, 1};
  check_either("launch.no_threads", driver->launch_kernel(kernel, one, no_threads, 0, stream, list),
               RDM_HIP_INVALID_VALUE, RDM_HIP_INVALID_CONFIGURATION);
  check_either("launch.no_blocks", driver->launch_kernel(kernel, no_threads, one, 0, stream, list),
               RDM_HIP_INVALID_VALUE, RDM_HIP_INVALID_CONFIGURATION);
  int error = driver->launch_kernel(kernel, one, one, 1u << 30, stream, list);
  check("launch.too_much_shared_memory",
        error == RDM_HIP_INVALID_VALUE || error == RDM_HIP_INVALID_CONFIGURATION ||
            error == RDM_HIP_LAUNCH_OUT_OF_RESOURCES || error == RDM_HIP_OUT_OF_MEMORY,
        "returned %d", error);
  check_error("launch.null_kernel", driver->launch_kernel(NULL, one, one, 0, stream, list), RDM_HIP_INVALID_HANDLE);
  (void)driver->get_last_error();
  check_error("launch.device_is_usable", driver->launch_kernel(kernel, one, one, 0, stream, list), 0);
  check_error("launch.device_is_usable_done", driver->stream_synchronize(stream), 0);
  check_error("launch.good_one_leaves_no_error", driver->get_last_error(), 0);
}

/* Launches on one stream run one after the other. */
static void order(void) {
  enum { COUNT = 4096, STEPS = 100 };
  void *module = make_module();
  void *step = make_kernel(module, "step");
  void *stream = make_stream();
  unsigned *memory = make_device_memory(sizeof(unsigned) * COUNT);
  unsigned *host = make_host_memory(sizeof(unsigned) * COUNT);
  for (unsigned i = 0; i < COUNT; i++) host[i] = i;
  need("copy", driver->memory_copy_async(memory, host, sizeof(unsigned) * COUNT, 1, stream));
  int error = 0;
  for (int i = 0; i < STEPS && error == 0; i++) error = launch_step(step, stream, memory, COUNT);
  check_error("launch.many", error, 0);
  need("copy", driver->memory_copy_async(host, memory, sizeof(unsigned) * COUNT, 2, stream));
  need("stream_synchronize", driver->stream_synchronize(stream));
  bool right = true;
  for (unsigned i = 0; i < COUNT; i++) {
    unsigned expected = i;
    for (int j = 0; j < STEPS; j++) expected = expected * 2 + 1;
    right = right && host[i] == expected;
  }
  check("launch.in_order", right, "a step is missing or was out of order");
}

static void asynchronous(void) {
  void *kernel = make_kernel(make_module(), "fill");
  void *stream = make_stream();
  float *memory = make_device_memory(sizeof(float) * 64);
  float *host = make_host_memory(sizeof(float) * 64);
  gate held;
  gate_make(&held);
  gate_hold(&held, stream);
  need("launch", launch_fill(kernel, stream, memory, 4.0f, 64));
  need("copy", driver->memory_copy_async(host, memory, sizeof(float) * 64, 2, stream));
  gate_wait_entered(&held);
  check_error("launch.is_queued", driver->stream_query(stream), RDM_HIP_NOT_READY);
  check("launch.has_not_run", ((volatile float *)host)[0] == 0.0f, "it has");
  gate_open(&held);
  need("stream_synchronize", driver->stream_synchronize(stream));
  check("launch.has_run", host[0] == 4.0f, "it has not");
}

static void across_devices(void) {
  need("set_device", driver->set_device(0));
  void *kernel = make_kernel(make_module(), "fill");
  float *memory = make_device_memory(sizeof(float) * 64);
  void *own_stream = make_stream();
  need("set_device", driver->set_device(1));
  void *stream = make_stream();
  int error = launch_fill(kernel, stream, memory, 1.0f, 64);
  check("launch.kernel_of_another_device",
        error == RDM_HIP_INVALID_HANDLE || error == RDM_HIP_INVALID_VALUE || error == RDM_HIP_INVALID_DEVICE,
        "returned %d", error);
  (void)driver->get_last_error();
  need("set_device", driver->set_device(0));
  check_error("launch.usable_after", launch_fill(kernel, own_stream, memory, 1.0f, 64), 0);
  check_error("launch.usable_after_done", driver->stream_synchronize(own_stream), 0);
}

const conformance_test launch_tests[] = {
    {"launch_fill", fill, 1},
    {"launch_arguments", arguments, 1},
    {"launch_shapes", shapes, 1},
    {"launch_refused", refused, 1},
    {"launch_order", order, 1},
    {"launch_asynchronous", asynchronous, 1},
    {"launch_across_devices", across_devices, 2},
    {NULL, NULL, 0},
};
