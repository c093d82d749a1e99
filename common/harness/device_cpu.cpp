#include <cstring>

#include "common/cpu_device/control.hpp"
#include "common/harness/device.hpp"

namespace ladder {

std::optional<std::string> device_missing() { return std::nullopt; }

std::string device_description() {
  const unsigned workers = cpu_device::workers();
  return "CPU device (limits of " + std::string(cpu_device::device_model()) + ", " + std::to_string(workers) +
         (workers == 1 ? " worker, " : " workers, ") + (device_checks() ? "checked)" : "unchecked)");
}

bool device_checks() { return cpu_device::checks_accesses(); }

bool try_set_device_model(std::string_view name) {
  cpu_device::set_device_model(name);
  return true;
}

void check_everything() { cpu_device::set_checks({.uninitialised = true, .races = true, .portability = true}); }

bool try_set_order(std::string_view words) {
  cpu_device::set_order(words);
  return true;
}

void record_launches(cpu_device::Recording what) { cpu_device::set_recording(what); }
std::vector<cpu_device::LaunchRecord> recorded_launches() { return cpu_device::take_records(); }

void device_synchronize() {}  // a launch returns when its kernel has ended

void* device_allocate(std::size_t bytes, std::size_t element_bytes, const std::string& name) {
  return cpu_device::allocate(bytes, element_bytes, name);
}
void device_free(void* memory) noexcept { cpu_device::release(memory); }
bool device_guards_intact(const void* memory) { return cpu_device::slack_intact(memory); }

void copy_to_device(void* device, const void* host, std::size_t bytes) {
  if (bytes == 0) return;
  std::memcpy(device, host, bytes);
  cpu_device::mark_initialised(device, bytes);
}
void device_poison(void* device, std::size_t bytes) { cpu_device::poison(device, bytes); }
void copy_from_device(void* host, const void* device, std::size_t bytes) {
  if (bytes != 0) std::memcpy(host, device, bytes);
}

static uint64_t counted_from = 0;
void reset_launches() {
  cpu_device::reset_traffic();
  counted_from = cpu_device::kernels_launched();
}
Launches read_launches() {
  Launches launches;
  launches.kernels = static_cast<int64_t>(cpu_device::kernels_launched() - counted_from);
  if (device_checks())
    for (const auto& buffer : cpu_device::traffic())
      launches.traffic.push_back(
          {buffer.name, static_cast<int64_t>(buffer.bytes_read), static_cast<int64_t>(buffer.bytes_written)});
  launches.streams = cpu_device::streams_used();
  return launches;
}

int64_t total_launches() { return static_cast<int64_t>(cpu_device::kernels_launched()); }

// A handle that no other stream has.
Stream::Stream() : stream_(reinterpret_cast<cudaStream_t>(new char)) {}
void Stream::Destroy::operator()(cudaStream_t stream) const noexcept { delete reinterpret_cast<char*>(stream); }

}  // namespace ladder
