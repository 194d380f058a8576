/* The same work through PyTorch's C++ API: its stream pool, its event class, its allocator and its kernels. */
#include "measure.hpp"

#include <ATen/ATen.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/core/InferenceMode.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <exception>

static c10::cuda::CUDAStream pooled_stream() {
  return c10::cuda::getStreamFromPool(/*isHighPriority=*/false, /*device=*/0);
}

static void evaluate(peers::worker &worker) {
  c10::InferenceMode inference;
  c10::cuda::CUDAStream stream = pooled_stream();
  c10::cuda::CUDAStreamGuard guard(stream);
  const auto on_gpu = at::TensorOptions().device(at::kCUDA, 0).dtype(at::kFloat);
  at::Tensor host = at::empty({peers::value_count}, at::TensorOptions().dtype(at::kFloat).pinned_memory(true));
  const float *values = host.data_ptr<float>();
  /* The first evaluation fills the stream's part of the allocator. */
  host.copy_(at::arange(peers::value_count, on_gpu) * 2 + 1, /*non_blocking=*/true);
  stream.synchronize();
  worker.start();
  while (worker.more()) {
    host.copy_(at::arange(peers::value_count, on_gpu) * 2 + 1, /*non_blocking=*/true);
    at::cuda::CUDAEvent done;
    done.record(stream);
    while (!done.query()) {
    }
    worker.wrong += peers::wrong_values(values);
  }
  worker.stop();
}

static void measure_lookups(const peers::settings &settings) {
  peers::measure(settings, "pytorch", "device_lookup", [](peers::worker &worker) {
    c10::cuda::set_device(0);
    volatile int sink = 0;
    worker.start();
    while (worker.more()) sink = c10::cuda::current_device();
    worker.stop();
    (void)sink;
  });
  peers::measure(settings, "pytorch", "stream_lookup", [](peers::worker &worker) {
    c10::cuda::CUDAStream stream = pooled_stream();
    c10::cuda::CUDAStreamGuard guard(stream);
    volatile long sink = 0;
    worker.start();
    while (worker.more()) sink = static_cast<long>(c10::cuda::getCurrentCUDAStream(0).id());
    worker.stop();
    (void)sink;
  });
}

static void measure_pools(const peers::settings &settings) {
  /* Its event class makes the driver's event as it is first recorded, so there is no create and destroy alone. */
  peers::measure(settings, "pytorch", "event_create_record_destroy", [](peers::worker &worker) {
    c10::cuda::CUDAStream stream = pooled_stream();
    c10::cuda::CUDAStreamGuard guard(stream);
    worker.start();
    while (worker.more()) {
      at::cuda::CUDAEvent event;
      event.record(stream);
    }
    stream.synchronize();
    worker.stop();
  });
  peers::measure(settings, "pytorch", "stream_get_put", [](peers::worker &worker) {
    c10::cuda::set_device(0);
    volatile long sink = 0;
    worker.start();
    while (worker.more()) sink = static_cast<long>(pooled_stream().id());
    worker.stop();
    (void)sink;
  });
}

int main(int argument_count, char **arguments) {
  peers::settings settings = peers::settings_from(argument_count, arguments);
  /* What PyTorch is refused it throws, also on the threads that measure: those end the process with its text. */
  try {
    if (!at::hasCUDA() || c10::cuda::device_count() == 0) {
      std::fprintf(stderr, "torch_peer: skipped: PyTorch finds no GPU\n");
      return peers::nothing_to_measure;
    }
    at::zeros({4}, at::TensorOptions().device(at::kCUDA, 0).dtype(at::kFloat));
    measure_lookups(settings);
    measure_pools(settings);
    uint64_t wrong = peers::measure(settings, "pytorch", "evaluation", evaluate);
    return peers::conclude("torch_peer", wrong);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "torch_peer: %s\n", error.what());
    return 1;
  }
}
