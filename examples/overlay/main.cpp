// Threads that evaluate arange * 2 + 1 through the overlay, each on two streams of its own: the kernels on one, the
// copy back on the other, behind an event. Checks every value, and what a refused launch, a deadline and a throwing
// handler come to. Ends with 77 where there is no GPU.
#include "overlay.h"

#include <atomic>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

namespace {

using overlay::Device;
using overlay::Stream;
namespace rocm = overlay::rocm;

constexpr int kThreads = 8;
constexpr int kRounds = 10;
constexpr std::uint32_t kCount = 1000;
constexpr std::uint32_t kBlock = 128;
constexpr std::chrono::seconds kLong{60};

constexpr const char *kSource = R"(
extern "C" __global__ void arange(float *out, unsigned int n) {
  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = (float)i;
}
extern "C" __global__ void multiply_add(float *values, float factor, float addend, unsigned int n) {
  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] = values[i] * factor + addend;
}
)";

std::atomic<int> completed{0};
std::atomic<int> failed{0};

void expect(bool holds, const char *what) {
  if (holds) return;
  failed++;
  std::fprintf(stderr, "FAILED: %s\n", what);
}

template <typename Function>
rdm_status status_of(Function function) {
  try {
    function();
  } catch (const rocm::Error &error) {
    return error.status();
  }
  return RDM_OK;
}

struct FreeMemory {
  rdm_device device;
  void operator()(float *pointer) const {
    rdm_memory_free(device, pointer);
  }
};

std::unique_ptr<float, FreeMemory> allocate(rdm_device device, std::size_t size_bytes) {
  void *memory = nullptr;
  rocm::check(rdm_memory_allocate(device, size_bytes, &memory));
  return {static_cast<float *>(memory), FreeMemory{device}};
}

// Gives the number of values that are right.
std::uint32_t evaluate(Stream compute, Stream transfer) {
  const rocm::DeviceHandle device = rocm::device(compute.device);
  const auto memory = allocate(device.raw(), kCount * sizeof(float));
  float *values = memory.get();
  const rocm::Dim3 grid{(kCount + kBlock - 1) / kBlock};

  auto encoder = rocm::get_command_encoder(compute);
  encoder.launch(device.get_kernel("overlay", kSource, "arange"), grid, {kBlock}, values, kCount);
  encoder.launch(device.get_kernel("overlay", kSource, "multiply_add"), grid, {kBlock}, values, 2.0f, 1.0f, kCount);
  encoder.add_completed_handler([](rdm_status status) { completed += status == RDM_OK ? 1 : 0; });
  encoder.commit();

  rocm::Event computed(compute.device);
  expect(!computed.is_signaled(), "an event that was never recorded is not signaled");
  computed.record(compute);
  computed.wait(transfer);

  std::vector<float> host(kCount, -1.0f);
  auto copier = rocm::get_command_encoder(transfer);
  copier.copy(host.data(), values, kCount * sizeof(float), RDM_COPY_DEVICE_TO_HOST);
  rocm::Event copied(compute.device);
  copied.record(transfer);
  copied.wait(kLong);
  expect(computed.is_signaled() && copied.is_signaled(), "what was waited for is signaled");
  // The handlers of that work have run when this returns.
  encoder.synchronize(kLong);

  std::uint32_t right = 0;
  for (std::uint32_t i = 0; i < kCount; i++) right += host[i] == static_cast<float>(i) * 2.0f + 1.0f ? 1 : 0;
  return right;
}

// A launch that is refused is this call's error, and is also kept for whoever asks the stream.
void refused_launch(Stream stream) {
  const rdm_kernel kernel = rocm::device(stream.device).get_kernel("overlay", kSource, "arange");
  float *nothing = nullptr;
  auto encoder = rocm::get_command_encoder(stream);
  const auto launch = [&] { encoder.launch(kernel, {1}, {2048}, nothing, 0u); };
  expect(status_of(launch) == RDM_ERROR_LAUNCH, "a block of 2048 threads is refused");
  expect(status_of([&] { rocm::take_stream_error(stream); }) == RDM_ERROR_LAUNCH, "the stream has kept it");
  expect(status_of([&] { rocm::take_stream_error(stream); }) == RDM_OK, "it was taken");
}

// What code that must not throw records, the next synchronize throws; the first one is kept.
void recorded_errors(Stream stream) {
  auto encoder = rocm::get_command_encoder(stream);
  expect(rocm::record_stream_error(stream, rocm::Error(RDM_ERROR_OUT_OF_MEMORY, "the first")), "it is recorded");
  expect(rocm::record_stream_error(stream, std::runtime_error("the second")), "it is taken for the first's");
  expect(status_of([&] { encoder.synchronize(kLong); }) == RDM_ERROR_OUT_OF_MEMORY, "synchronize throws the first");
  expect(status_of([&] { rocm::take_stream_error(stream); }) == RDM_ERROR_OUT_OF_MEMORY, "it is kept until taken");

  encoder.add_completed_handler([](rdm_status) { throw std::runtime_error("from a handler"); });
  encoder.commit();
  expect(status_of([&] { encoder.synchronize(kLong); }) == RDM_ERROR_DRIVER, "what a handler throws is the stream's");
  expect(status_of([&] { rocm::take_stream_error(stream); }) == RDM_ERROR_DRIVER, "it is taken");
  encoder.synchronize(kLong);
}

void handles(Stream stream) {
  rocm::Event event(stream.device);
  expect(status_of([&] { event.wait(kLong); }) == RDM_ERROR_NOT_RECORDED, "there is nothing to wait for");
  event.record(stream);
  const rocm::Event moved = std::move(event);
  moved.wait(kLong);
  expect(moved.native_event() != nullptr, "it has a native event");

  auto encoder = rocm::get_command_encoder(stream);
  expect(encoder.native_stream() != nullptr, "it has a native stream");
  rocm::check(rdm_clear_encoders());
  expect(status_of([&] { encoder.commit(); }) == RDM_ERROR_STALE_HANDLE, "it was cleared");
  rocm::get_command_encoder(stream).commit();

  const Device cpu{Device::Type::cpu, 0};
  expect(status_of([&] { rocm::device(cpu); }) == RDM_ERROR_INVALID_ARGUMENT, "the CPU is none of ours");
  expect(status_of([&] { rocm::get_command_encoder({0, cpu}); }) == RDM_ERROR_INVALID_ARGUMENT, "nor its streams");
  expect(status_of([] { rocm::device(1000); }) == RDM_ERROR_INVALID_DEVICE, "there is no such GPU");
}

}  // namespace

int main() {
  std::int32_t device_count = 0;
  if (rdm_device_count(&device_count) != RDM_OK || device_count == 0) {
    std::printf("overlay: skipped, there is no GPU: %s\n", device_count == 0 ? rdm_last_error_message() : "");
    return 77;
  }
  std::atomic<std::uint32_t> right{0};
  std::vector<std::thread> threads;
  for (int number = 0; number < kThreads; number++) {
    threads.emplace_back([number, device_count, &right] {
      const Device device{Device::Type::gpu, number % device_count};
      try {
        for (int round = 0; round < kRounds; round++) right += evaluate({2 * number, device}, {2 * number + 1, device});
      } catch (const std::exception &error) {
        expect(false, error.what());
      }
    });
  }
  for (std::thread &thread : threads) thread.join();
  try {
    const Stream stream{2 * kThreads, Device{}};
    refused_launch(stream);
    recorded_errors(stream);
    handles(stream);
  } catch (const std::exception &error) {
    expect(false, error.what());
  }
  expect(right == kThreads * kRounds * kCount, "every value is right");
  expect(completed == kThreads * kRounds, "every handler has run");
  std::printf("overlay: %d threads, %u values right, %d handlers, %d failed\n", kThreads, right.load(),
              completed.load(), failed.load());
  return failed == 0 ? 0 : 1;
}
