// A C++17 program that has the installed header and library and nothing else: four threads on two simulated GPUs, each
// with a stream of its own.
#include <rocm_device_map.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr std::uint32_t kCount = 777;
constexpr std::uint32_t kBlock = 64;
constexpr int kDevices = 2;
constexpr int kThreads = 4;

constexpr const char *kSource = R"(
extern "C" __global__ void scale(float *out, float factor, unsigned int n) {
  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = factor * (float)i;
}
)";

void check(rdm_status status, const char *what) {
  if (status == RDM_OK) return;
  throw std::runtime_error(std::string(what) + ": " + rdm_status_name(status) + ": " + rdm_last_error_message());
}

class Stream {
 public:
  explicit Stream(int device_index) {
    check(rdm_stream_create(device_index, &raw_), "rdm_stream_create");
  }
  ~Stream() {
    rdm_stream_release(raw_);
  }
  Stream(const Stream &) = delete;
  Stream &operator=(const Stream &) = delete;
  rdm_stream get() const {
    return raw_;
  }

 private:
  rdm_stream raw_{};
};

// Leaves the number of values that are right.
std::uint32_t run(int device_index, float factor) {
  rdm_device device{};
  check(rdm_device_get(device_index, &device), "rdm_device_get");
  const Stream stream(device_index);

  rdm_module_source source{};
  source.struct_size = sizeof source;
  source.name = "scale.hip";
  source.source = kSource;
  rdm_module module{};
  rdm_kernel kernel{};
  check(rdm_module_get(device, &source, &module), "rdm_module_get");
  check(rdm_module_get_kernel(module, "scale", &kernel), "rdm_module_get_kernel");

  void *memory = nullptr;
  check(rdm_memory_allocate(device, kCount * sizeof(float), &memory), "rdm_memory_allocate");
  const auto free_memory = [device](void *pointer) { rdm_memory_free(device, pointer); };
  const std::unique_ptr<void, decltype(free_memory)> owner(memory, free_memory);

  rdm_launch_config launch{};
  launch.struct_size = sizeof launch;
  launch.grid[0] = (kCount + kBlock - 1) / kBlock;
  launch.block[0] = kBlock;
  launch.grid[1] = launch.grid[2] = launch.block[1] = launch.block[2] = 1;
  std::uint32_t count = kCount;
  void *const arguments[] = {&memory, &factor, &count};
  std::vector<float> values(kCount);
  rdm_encoder encoder{};
  check(rdm_encoder_get(stream.get(), &encoder), "rdm_encoder_get");
  check(rdm_encoder_launch(encoder, kernel, &launch, arguments, 3), "rdm_encoder_launch");
  check(rdm_encoder_copy(encoder, values.data(), memory, kCount * sizeof(float), RDM_COPY_DEVICE_TO_HOST),
        "rdm_encoder_copy");
  check(rdm_stream_synchronize(stream.get(), RDM_WAIT_FOREVER), "rdm_stream_synchronize");

  std::uint32_t right = 0;
  for (std::uint32_t i = 0; i < kCount; i++) right += values[i] == factor * static_cast<float>(i) ? 1 : 0;
  return right;
}

}  // namespace

int main() {
  rdm_config config{};
  config.struct_size = sizeof config;
  config.driver = "sim";
  config.sim_device_count = kDevices;
  std::atomic<std::uint32_t> right{0};
  try {
    check(rdm_configure(&config), "rdm_configure");
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; i++) {
      threads.emplace_back([i, &right] {
        try {
          right += run(i % kDevices, static_cast<float>(i + 1));
        } catch (const std::exception &error) {
          std::fprintf(stderr, "thread %d: %s\n", i, error.what());
        }
      });
    }
    for (std::thread &thread : threads) thread.join();
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  if (right != kThreads * kCount) {
    std::fprintf(stderr, "%u values are right\n", static_cast<unsigned>(right));
    return 1;
  }
  std::printf("c++ consumer: %u values are right\n", static_cast<unsigned>(right));
  return 0;
}
