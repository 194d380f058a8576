#include "overlay.h"

#include <memory>

namespace overlay::rocm {

namespace {

// Frameworks number their streams from 0, as rdm_stream_create does. From here on they never name each other's.
constexpr int kFirstIndex = 1 << 24;

rdm_stream raw_stream(Stream stream) {
  if (stream.device.type != Device::Type::gpu) {
    throw Error(RDM_ERROR_INVALID_ARGUMENT, "stream " + std::to_string(stream.index) + " is the CPU's");
  }
  rdm_stream raw{};
  check(rdm_stream_get(stream.device.index, kFirstIndex + stream.index, &raw));
  return raw;
}

std::uint64_t nanoseconds(std::chrono::nanoseconds timeout) {
  if (timeout == kForever) return RDM_WAIT_FOREVER;
  return timeout.count() < 0 ? 0 : static_cast<std::uint64_t>(timeout.count());
}

// What a handler is called with. The stream is for what it throws.
struct Completion {
  rdm_stream stream;
  std::function<void(rdm_status)> handler;
};

extern "C" void overlay_completed(rdm_status status, void *user_data) {
  const std::unique_ptr<Completion> completion(static_cast<Completion *>(user_data));
  try {
    completion->handler(status);
  } catch (const std::exception &error) {
    rdm_stream_record_error(completion->stream, RDM_ERROR_DRIVER, error.what());
  } catch (...) {
    rdm_stream_record_error(completion->stream, RDM_ERROR_DRIVER, "a completion handler threw");
  }
}

}  // namespace

void check(rdm_status status) {
  if (status != RDM_OK) throw Error(status, rdm_last_error_message());
}

DeviceHandle device(int index) {
  rdm_device raw{};
  check(rdm_device_get(index, &raw));
  return DeviceHandle(raw);
}

DeviceHandle device(Device device) {
  if (device.type != Device::Type::gpu) throw Error(RDM_ERROR_INVALID_ARGUMENT, "the device is the CPU");
  return rocm::device(device.index);
}

void DeviceHandle::make_current() const {
  check(rdm_device_make_current(raw_));
}

rdm_kernel DeviceHandle::get_kernel(const char *module_name, const char *source, const char *kernel_name) const {
  rdm_module_source text{};
  text.struct_size = sizeof text;
  text.name = module_name;
  text.source = source;
  rdm_module module{};
  rdm_kernel kernel{};
  check(rdm_module_get(raw_, &text, &module));
  check(rdm_module_get_kernel(module, kernel_name, &kernel));
  return kernel;
}

CommandEncoder get_command_encoder(Stream stream) {
  const rdm_stream raw = raw_stream(stream);
  rdm_encoder encoder{};
  check(rdm_encoder_get(raw, &encoder));
  return CommandEncoder(raw, encoder);
}

void CommandEncoder::launch_with(rdm_kernel kernel, Dim3 grid, Dim3 block, void *const *arguments,
                                 const std::uint32_t *sizes, std::size_t count) {
  rdm_launch_config config{};
  config.struct_size = sizeof config;
  const std::uint32_t grid_sizes[] = {grid.x, grid.y, grid.z};
  const std::uint32_t block_sizes[] = {block.x, block.y, block.z};
  for (int i = 0; i < 3; i++) {
    config.grid[i] = grid_sizes[i];
    config.block[i] = block_sizes[i];
  }
  config.argument_sizes_bytes = sizes;
  check(rdm_encoder_launch(raw_, kernel, &config, arguments, static_cast<std::uint32_t>(count)));
}

void CommandEncoder::copy(void *destination, const void *source, std::size_t size_bytes, rdm_copy_kind kind) {
  check(rdm_encoder_copy(raw_, destination, source, size_bytes, kind));
}

void CommandEncoder::add_completed_handler(std::function<void(rdm_status)> handler) {
  auto completion = std::make_unique<Completion>(Completion{stream_, std::move(handler)});
  check(rdm_encoder_add_completion_handler(raw_, overlay_completed, completion.get()));
  // The library's now: it is called exactly once.
  (void)completion.release();
}

void CommandEncoder::commit() {
  check(rdm_encoder_commit(raw_));
}

void CommandEncoder::synchronize(std::chrono::nanoseconds timeout) {
  check(rdm_stream_synchronize(stream_, nanoseconds(timeout)));
}

void *CommandEncoder::native_stream() const {
  void *native = nullptr;
  check(rdm_encoder_get_native_stream(raw_, &native));
  return native;
}

Event::Event(Device device, std::uint32_t flags) {
  check(rdm_event_create(rocm::device(device).raw(), flags, &raw_));
}

Event::~Event() {
  if (raw_.bits != 0) rdm_event_release(raw_);
}

void Event::record(Stream stream) {
  check(rdm_encoder_record_event(get_command_encoder(stream).raw(), raw_));
}

void Event::wait(std::chrono::nanoseconds timeout) const {
  check(rdm_event_wait(raw_, nanoseconds(timeout)));
}

void Event::wait(Stream stream) const {
  check(rdm_encoder_wait_event(get_command_encoder(stream).raw(), raw_));
}

bool Event::is_signaled() const {
  const rdm_status status = rdm_event_query(raw_);
  if (status == RDM_NOT_READY) return false;
  check(status);
  return true;
}

void *Event::native_event() const {
  void *native = nullptr;
  check(rdm_event_get_native(raw_, &native));
  return native;
}

bool record_stream_error(Stream stream, const std::exception &error) noexcept {
  const auto *own = dynamic_cast<const Error *>(&error);
  rdm_stream raw{};
  if (rdm_stream_get(stream.device.index, kFirstIndex + stream.index, &raw) != RDM_OK) return false;
  return rdm_stream_record_error(raw, own != nullptr ? own->status() : RDM_ERROR_DRIVER, error.what()) == RDM_OK;
}

void take_stream_error(Stream stream) {
  rdm_error error{};
  error.struct_size = sizeof error;
  check(rdm_stream_take_error(raw_stream(stream), &error));
  if (error.status != RDM_OK) throw Error(error.status, error.message);
}

}  // namespace overlay::rocm
