/* The library's own part of the comparison, through its C ABI: what a server does on each thread. */
#include "measure.hpp"
#include "rocm_device_map.h"

static void check(rdm_status status, const char *doing) {
  if (status == RDM_OK) return;
  std::fprintf(stderr, "ours: %s: %s: %s\n", doing, rdm_status_name(status), rdm_last_error_message());
  std::exit(1);
}

static const char *const kernels_source = R"(
extern "C" __global__ void empty_kernel() {}
extern "C" __global__ void arange_kernel(float *out, float start, float step) {
  out[threadIdx.x] = start + (float)threadIdx.x * step;
}
extern "C" __global__ void multiply_kernel(float *values, float by) { values[threadIdx.x] *= by; }
extern "C" __global__ void add_kernel(float *values, float what) { values[threadIdx.x] += what; }
)";

struct kernels {
  rdm_kernel empty, arange, multiply, add;
};

static kernels compile(rdm_device device) {
  rdm_module_source source = {};
  source.struct_size = sizeof source;
  source.name = "peers.hip";
  source.source = kernels_source;
  rdm_module module = {};
  check(rdm_module_get(device, &source, &module), "compiling the kernels");
  kernels result = {};
  check(rdm_module_get_kernel(module, "empty_kernel", &result.empty), "looking for a kernel");
  check(rdm_module_get_kernel(module, "arange_kernel", &result.arange), "looking for a kernel");
  check(rdm_module_get_kernel(module, "multiply_kernel", &result.multiply), "looking for a kernel");
  check(rdm_module_get_kernel(module, "add_kernel", &result.add), "looking for a kernel");
  return result;
}

static rdm_launch_config one_block(uint32_t threads) {
  rdm_launch_config config = {};
  config.struct_size = sizeof config;
  for (int i = 0; i < 3; i++) config.grid[i] = config.block[i] = 1;
  config.block[0] = threads;
  return config;
}

static rdm_stream new_stream() {
  rdm_stream stream = {};
  check(rdm_stream_create(0, &stream), "making a stream");
  return stream;
}

static rdm_encoder encoder_of(rdm_stream stream) {
  rdm_encoder encoder = {};
  check(rdm_encoder_get(stream, &encoder), "looking up the encoder");
  return encoder;
}

static rdm_device device_0() {
  rdm_device device = {};
  check(rdm_device_get(0, &device), "looking up the device");
  return device;
}

static rdm_event new_event(rdm_device device) {
  rdm_event event = {};
  check(rdm_event_create(device, RDM_EVENT_DEFAULT, &event), "making an event");
  return event;
}

/* What every launch in the library's Rust part costs too: the device and the encoder are looked up for each. */
static void launch(rdm_stream stream, rdm_kernel kernel, uint32_t threads, void **arguments, uint32_t count) {
  device_0();
  rdm_launch_config config = one_block(threads);
  check(rdm_encoder_launch(encoder_of(stream), kernel, &config, arguments, count), "launching a kernel");
}

static void evaluate(peers::worker &worker, const kernels &kernels) {
  const size_t size = peers::value_count * sizeof(float);
  rdm_device device = device_0();
  rdm_stream stream = new_stream();
  void *values = nullptr, *host = nullptr;
  check(rdm_memory_allocate(device, size, &values), "allocating device memory");
  check(rdm_host_memory_allocate(device, size, &host), "allocating host memory");
  float start = 0, step = 1, by = 2, what = 1;
  void *arange_arguments[] = {&values, &start, &step};
  void *multiply_arguments[] = {&values, &by};
  void *add_arguments[] = {&values, &what};
  auto once = [&] {
    launch(stream, kernels.arange, peers::value_count, arange_arguments, 3);
    launch(stream, kernels.multiply, peers::value_count, multiply_arguments, 2);
    launch(stream, kernels.add, peers::value_count, add_arguments, 2);
    rdm_encoder encoder = encoder_of(stream);
    check(rdm_encoder_copy(encoder, host, values, size, RDM_COPY_DEVICE_TO_HOST), "copying back");
    rdm_event done = new_event(device);
    check(rdm_encoder_record_event(encoder, done), "recording an event");
    check(rdm_event_wait(done, RDM_WAIT_FOREVER), "waiting for an event");
    check(rdm_event_release(done), "releasing an event");
    worker.wrong += peers::wrong_values(static_cast<const float *>(host));
  };
  /* The driver may load a kernel with its first launch. */
  once();
  worker.start();
  while (worker.more()) once();
  worker.stop();
  check(rdm_stream_synchronize(stream, RDM_WAIT_FOREVER), "waiting for the stream");
  check(rdm_host_memory_free(device, host), "freeing host memory");
  check(rdm_memory_free(device, values), "freeing device memory");
  check(rdm_stream_release(stream), "releasing the stream");
}

static void measure_lookups(const peers::settings &settings) {
  peers::measure(settings, "rocm-device-map", "device_lookup", [](peers::worker &worker) {
    device_0();
    worker.start();
    while (worker.more()) device_0();
    worker.stop();
  });
  peers::measure(settings, "rocm-device-map", "stream_lookup", [](peers::worker &worker) {
    rdm_stream stream = new_stream();
    encoder_of(stream);
    worker.start();
    while (worker.more()) encoder_of(stream);
    worker.stop();
    check(rdm_stream_release(stream), "releasing the stream");
  });
}

static void measure_pools(const peers::settings &settings) {
  peers::measure(settings, "rocm-device-map", "event_create_destroy", [](peers::worker &worker) {
    rdm_device device = device_0();
    worker.start();
    while (worker.more()) check(rdm_event_release(new_event(device)), "releasing an event");
    worker.stop();
  });
  peers::measure(settings, "rocm-device-map", "event_create_record_destroy", [](peers::worker &worker) {
    rdm_device device = device_0();
    rdm_stream stream = new_stream();
    rdm_encoder encoder = encoder_of(stream);
    worker.start();
    while (worker.more()) {
      rdm_event event = new_event(device);
      check(rdm_encoder_record_event(encoder, event), "recording an event");
      check(rdm_event_release(event), "releasing an event");
    }
    check(rdm_stream_synchronize(stream, RDM_WAIT_FOREVER), "waiting for the stream");
    worker.stop();
    check(rdm_stream_release(stream), "releasing the stream");
  });
  peers::measure(settings, "rocm-device-map", "stream_get_put", [](peers::worker &worker) {
    device_0();
    worker.start();
    while (worker.more()) {
      rdm_stream stream = new_stream();
      encoder_of(stream);
      check(rdm_stream_release(stream), "releasing the stream");
    }
    worker.stop();
  });
}

int main(int argument_count, char **arguments) {
  peers::settings settings = peers::settings_from(argument_count, arguments);
  int32_t count = 0;
  rdm_status status = rdm_device_count(&count);
  if (status != RDM_OK || count == 0) {
    std::fprintf(stderr, "ours: skipped: %s\n", status != RDM_OK ? rdm_last_error_message() : "there is no GPU");
    return peers::nothing_to_measure;
  }
  kernels kernels = compile(device_0());
  measure_lookups(settings);
  measure_pools(settings);
  peers::measure(settings, "rocm-device-map", "launch_empty", [&kernels](peers::worker &worker) {
    rdm_stream stream = new_stream();
    launch(stream, kernels.empty, 1, nullptr, 0);
    worker.start();
    while (worker.more()) launch(stream, kernels.empty, 1, nullptr, 0);
    check(rdm_stream_synchronize(stream, RDM_WAIT_FOREVER), "waiting for the stream");
    worker.stop();
    check(rdm_stream_release(stream), "releasing the stream");
  });
  uint64_t wrong = peers::measure(settings, "rocm-device-map", "evaluation",
                                  [&kernels](peers::worker &worker) { evaluate(worker, kernels); });
  return peers::conclude("ours", wrong);
}
