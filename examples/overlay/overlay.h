// What a C++ overlay with the shape of MLX's ROCm backend looks like on top of this library.
//
// Each function is one call into the C ABI, or two. Nothing here has state of its own: no map, no pool, no lock, no
// static. Errors are exceptions on this side of the border and status codes on the other; no exception crosses it, in
// either direction. docs/integrate.md has the table of MLX's names and ours.
#ifndef OVERLAY_H
#define OVERLAY_H

#include <rocm_device_map.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

namespace overlay {

// Stand-ins for the two structs that the framework has already; an integration takes its own.
struct Device {
  enum class Type { cpu, gpu };
  Type type = Type::gpu;
  int index = 0;
};
struct Stream {
  int index = 0;
  Device device;
};

namespace rocm {

class Error : public std::runtime_error {
 public:
  Error(rdm_status status, const std::string &message) : std::runtime_error(message), status_(status) {}
  rdm_status status() const noexcept {
    return status_;
  }

 private:
  rdm_status status_;
};

// Throws what the thread's last call failed with. The one place where a status becomes an exception.
void check(rdm_status status);

inline constexpr std::chrono::nanoseconds kForever = std::chrono::nanoseconds::max();

// ---- Devices ----

// A handle, as small as a reference and valid for the life of the process: copied freely.
class DeviceHandle {
 public:
  explicit DeviceHandle(rdm_device raw) : raw_(raw) {}
  rdm_device raw() const noexcept {
    return raw_;
  }
  // For code that is about to call HIP itself; what is called here does this on its own.
  void make_current() const;
  // Compiled by the first call, from the cache of the process or of the disk by the others.
  rdm_kernel get_kernel(const char *module_name, const char *source, const char *kernel_name) const;

 private:
  rdm_device raw_;
};

// Built by the first call for this index, whichever thread makes it; other GPUs are not touched.
DeviceHandle device(int index);
DeviceHandle device(Device device);

// ---- Command encoders ----

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
};

// A handle too. One that was taken before rdm_clear_encoders throws RDM_ERROR_STALE_HANDLE: take a new one.
class CommandEncoder {
 public:
  CommandEncoder(rdm_stream stream, rdm_encoder raw) : stream_(stream), raw_(raw) {}
  rdm_encoder raw() const noexcept {
    return raw_;
  }

  // The values are copied before it returns. Their sizes are checked against the kernel's where the driver can tell.
  template <typename... Arguments>
  void launch(rdm_kernel kernel, Dim3 grid, Dim3 block, const Arguments &...arguments) {
    void *const pointers[] = {const_cast<void *>(static_cast<const void *>(&arguments))..., nullptr};
    const std::uint32_t sizes[] = {static_cast<std::uint32_t>(sizeof arguments)..., 0};
    launch_with(kernel, grid, block, pointers, sizes, sizeof...(arguments));
  }
  void copy(void *destination, const void *source, std::size_t size_bytes, rdm_copy_kind kind);
  // Runs on a thread of the library once the batch has completed or failed. What it throws is recorded for the stream.
  void add_completed_handler(std::function<void(rdm_status)> handler);
  void commit();
  // Waits for all that the stream was given, and throws the error that was recorded for it, if one was.
  void synchronize(std::chrono::nanoseconds timeout = kForever);
  // hipStream_t, for raw calls in stream order: hand it to them and keep it nowhere.
  void *native_stream() const;

 private:
  void launch_with(rdm_kernel kernel, Dim3 grid, Dim3 block, void *const *arguments, const std::uint32_t *sizes,
                   std::size_t count);
  rdm_stream stream_;
  rdm_encoder raw_;
};

CommandEncoder get_command_encoder(Stream stream);

// ---- Events ----

// Owned: it goes back to the library's pool at the end, from any thread, and as a static's destructor too.
class Event {
 public:
  explicit Event(Device device, std::uint32_t flags = RDM_EVENT_DEFAULT);
  ~Event();
  Event(Event &&other) noexcept : raw_(std::exchange(other.raw_, rdm_event{})) {}
  Event &operator=(Event &&other) noexcept {
    std::swap(raw_, other.raw_);
    return *this;
  }
  Event(const Event &) = delete;
  Event &operator=(const Event &) = delete;

  void record(Stream stream);
  // The host waits. RDM_ERROR_TIMEOUT spoils nothing: wait again, or leave what the work uses where it is.
  void wait(std::chrono::nanoseconds timeout = kForever) const;
  // The stream waits, on any device; the host does not.
  void wait(Stream stream) const;
  // False for an event that was never recorded.
  bool is_signaled() const;
  // hipEvent_t, for raw calls while this lives.
  void *native_event() const;

 private:
  rdm_event raw_{};
};

// ---- Errors of streams ----

// Keeps the first error of a stream until it is taken. For code that must not throw, such as an evaluation on a
// scheduler's thread. False where the stream's device can not be used, which its next use says.
bool record_stream_error(Stream stream, const std::exception &error) noexcept;
// Throws the stream's recorded error, and leaves none.
void take_stream_error(Stream stream);

}  // namespace rocm
}  // namespace overlay

#endif
