/* The header as C++17, in a program that owns handles by its objects, static ones among them. */
#include "rocm_device_map.h"

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

static_assert(std::is_standard_layout<rdm_error>::value && std::is_trivial<rdm_device>::value, "plain data");

namespace {

void check(rdm_status status) {
  if (status != RDM_OK)
    throw std::runtime_error(std::string(rdm_status_name(status)) + ": " + rdm_last_error_message());
}

/* A stream that ends with its object; for a static one that is while the process exits. */
class Stream {
 public:
  explicit Stream(bool must_be_over) : must_be_over_(must_be_over) {}
  Stream(const Stream &) = delete;
  Stream &operator=(const Stream &) = delete;
  ~Stream() {
    int32_t count = 0;
    if (rdm_stream_release(handle_) != RDM_OK) std::_Exit(3);
    if ((rdm_device_count(&count) == RDM_ERROR_SHUTTING_DOWN) != must_be_over_) std::_Exit(4);
  }
  void create(int32_t device_index) {
    check(rdm_stream_create(device_index, &handle_));
  }
  rdm_stream get() const {
    return handle_;
  }

 private:
  rdm_stream handle_{};
  bool must_be_over_;
};

/* Constructed before the library is first used, so destroyed after the library's exit handler. */
Stream static_stream(true);

const char source_text[] =
    "extern \"C\" __global__ void fill(float *out, float by, unsigned count) {\n"
    "  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < count) out[i] = (float)i * by + 1.0f;\n"
    "}\n";

/* Evaluates arange(256) * 2 + 1 and returns how many elements are not exactly right. */
int evaluate(rdm_stream stream, int32_t device_index) {
  constexpr std::uint32_t count = 256;
  rdm_device device{};
  rdm_module module{};
  rdm_kernel kernel{};
  rdm_encoder encoder{};
  void *memory = nullptr;
  check(rdm_device_get(device_index, &device));
  rdm_module_source source{};
  source.struct_size = sizeof source;
  source.name = "fill";
  source.source = source_text;
  check(rdm_module_get(device, &source, &module));
  check(rdm_module_get_kernel(module, "fill", &kernel));
  check(rdm_memory_allocate(device, count * sizeof(float), &memory));
  check(rdm_encoder_get(stream, &encoder));
  float by = 2.0f;
  std::uint32_t length = count;
  void *arguments[] = {&memory, &by, &length};
  const rdm_launch_config config{sizeof config, {count / 64, 1, 1}, {64, 1, 1}, 0, nullptr};
  check(rdm_encoder_launch(encoder, kernel, &config, arguments, 3));
  std::vector<float> values(count);
  check(rdm_encoder_copy(encoder, values.data(), memory, count * sizeof(float), RDM_COPY_DEVICE_TO_HOST));
  check(rdm_stream_synchronize(stream, RDM_WAIT_FOREVER));
  check(rdm_memory_free(device, memory));
  int wrong = 0;
  for (std::uint32_t i = 0; i < count; i++) {
    if (values[i] < static_cast<float>(2 * i + 1) || values[i] > static_cast<float>(2 * i + 1)) wrong++;
  }
  return wrong;
}

int evaluate_on_new_stream(int32_t device_index) {
  Stream stream(false);
  stream.create(device_index);
  return evaluate(stream.get(), device_index);
}

}  // namespace

int main() {
  try {
    static_stream.create(0);
    int wrong = evaluate(static_stream.get(), 0);
    std::thread other([&wrong] { wrong += evaluate_on_new_stream(1); });
    other.join();
    std::printf("C++17: 2 evaluations, %d wrong values\n", wrong);
    return wrong == 0 ? 0 : 1;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
