/* The same work written by hand against the CUDA runtime: the floor that a library can be measured from. */
#include "measure.hpp"

#include <cuda_runtime.h>

static void check(cudaError_t error, const char *doing) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "handwritten: %s: %s: %s\n", doing, cudaGetErrorName(error), cudaGetErrorString(error));
  std::exit(1);
}

__global__ void empty_kernel() {}
__global__ void arange_kernel(float *out, float start, float step) {
  out[threadIdx.x] = start + static_cast<float>(threadIdx.x) * step;
}
__global__ void multiply_kernel(float *values, float by) {
  values[threadIdx.x] *= by;
}
__global__ void add_kernel(float *values, float what) {
  values[threadIdx.x] += what;
}

static void use_device_0() {
  check(cudaSetDevice(0), "making the device current");
}

static cudaStream_t new_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
  return stream;
}

static cudaEvent_t new_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event");
  return event;
}

static void evaluate(peers::worker &worker) {
  const size_t size = peers::value_count * sizeof(float);
  use_device_0();
  cudaStream_t stream = new_stream();
  cudaEvent_t done = new_event();
  float *values = nullptr, *host = nullptr;
  check(cudaMalloc(reinterpret_cast<void **>(&values), size), "allocating device memory");
  check(cudaMallocHost(reinterpret_cast<void **>(&host), size), "allocating host memory");
  auto once = [&] {
    arange_kernel<<<1, peers::value_count, 0, stream>>>(values, 0.0f, 1.0f);
    check(cudaGetLastError(), "launching arange");
    multiply_kernel<<<1, peers::value_count, 0, stream>>>(values, 2.0f);
    check(cudaGetLastError(), "launching multiply");
    add_kernel<<<1, peers::value_count, 0, stream>>>(values, 1.0f);
    check(cudaGetLastError(), "launching add");
    check(cudaMemcpyAsync(host, values, size, cudaMemcpyDeviceToHost, stream), "copying back");
    check(cudaEventRecord(done, stream), "recording an event");
    cudaError_t state = cudaErrorNotReady;
    while ((state = cudaEventQuery(done)) == cudaErrorNotReady) {
    }
    check(state, "asking for an event");
    worker.wrong += peers::wrong_values(host);
  };
  /* The runtime loads a kernel with its first launch. */
  once();
  worker.start();
  while (worker.more()) once();
  worker.stop();
  check(cudaFreeHost(host), "freeing host memory");
  check(cudaFree(values), "freeing device memory");
  check(cudaEventDestroy(done), "ending an event");
  check(cudaStreamDestroy(stream), "ending the stream");
}

static void launch_empty(peers::worker &worker) {
  use_device_0();
  cudaStream_t stream = new_stream();
  auto once = [&] {
    empty_kernel<<<1, 1, 0, stream>>>();
    check(cudaGetLastError(), "launching the empty kernel");
  };
  once();
  worker.start();
  while (worker.more()) once();
  check(cudaStreamSynchronize(stream), "waiting for the stream");
  worker.stop();
  check(cudaStreamDestroy(stream), "ending the stream");
}

static void measure_events(const peers::settings &settings) {
  peers::measure(settings, "handwritten", "event_create_destroy", [](peers::worker &worker) {
    use_device_0();
    worker.start();
    while (worker.more()) check(cudaEventDestroy(new_event()), "ending an event");
    worker.stop();
  });
  peers::measure(settings, "handwritten", "event_create_record_destroy", [](peers::worker &worker) {
    use_device_0();
    cudaStream_t stream = new_stream();
    worker.start();
    while (worker.more()) {
      cudaEvent_t event = new_event();
      check(cudaEventRecord(event, stream), "recording an event");
      check(cudaEventDestroy(event), "ending an event");
    }
    check(cudaStreamSynchronize(stream), "waiting for the stream");
    worker.stop();
    check(cudaStreamDestroy(stream), "ending the stream");
  });
}

int main(int argument_count, char **arguments) {
  peers::settings settings = peers::settings_from(argument_count, arguments);
  int count = 0;
  cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) {
    std::fprintf(stderr, "handwritten: skipped: %s\n",
                 error != cudaSuccess ? cudaGetErrorString(error) : "there is no GPU");
    return peers::nothing_to_measure;
  }
  use_device_0();
  check(cudaFree(nullptr), "making the context");
  peers::measure(settings, "handwritten", "device_lookup", [](peers::worker &worker) {
    use_device_0();
    worker.start();
    while (worker.more()) use_device_0();
    worker.stop();
  });
  measure_events(settings);
  peers::measure(settings, "handwritten", "stream_get_put", [](peers::worker &worker) {
    use_device_0();
    worker.start();
    while (worker.more()) check(cudaStreamDestroy(new_stream()), "ending a stream");
    worker.stop();
  });
  peers::measure(settings, "handwritten", "launch_empty", launch_empty);
  uint64_t wrong = peers::measure(settings, "handwritten", "evaluation", evaluate);
  return peers::conclude("handwritten", wrong);
}
