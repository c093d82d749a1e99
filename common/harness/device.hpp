// The device as mains, tests and benchmarks see it: memory, streams, what it is, and what the last launch moved.
// device_cpu.cpp answers for the CPU device, device_cuda.cu for a GPU; a build has one of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/cpu_device/recording.hpp"
#include "common/kernel/stream.hpp"

namespace ladder {

/// Why no kernel can run here ("no CUDA device: ..."), or nothing when one can. Tests exit with 77 (skipped) then.
std::optional<std::string> device_missing();

/// One line for reports: "CPU device (model sm_90, 2 workers, checked)" or "NVIDIA H200 (sm_90, 132 SMs)".
std::string device_description();

/// True on the CPU device in its checked build: accesses are seen, counted and refused when they are out of bounds.
bool device_checks();

/// Takes on the limits of another architecture, one of DEVICE_MODELS, for the launches to come. Only the CPU device
/// can: a GPU is what it is, and answers false.
bool try_set_device_model(std::string_view name);

/// Looks for races between the threads of a block too, from now on: programs and tests can afford it. Only the CPU
/// device can, in its checked build; elsewhere this does nothing.
void watch_races();

/// Runs threads and blocks in another order from here on: "forward", "reversed", "warp-reversed" or "random:SEED", else
/// it throws InvalidArgument. A GPU answers false.
bool try_set_order(std::string_view words);

/// Records the launches to come, and forgets those recorded before. Only a device that checks does.
void record_launches(cpu_device::Recording what);
std::vector<cpu_device::LaunchRecord> recorded_launches();  // handed over, in order

/// Waits for all kernels. Throws KernelFault when one of them failed.
void device_synchronize();

/// Memory on the device, filled with the byte 0xff: a NaN in every float that nothing has written. `element_bytes` and
/// `name` are for messages. Throws std::bad_alloc.
void* device_allocate(std::size_t bytes, std::size_t element_bytes, const std::string& name);
void device_free(void* memory) noexcept;

/// False when somebody wrote into the pattern that lies before and behind this memory.
bool device_guards_intact(const void* memory);

/// Fills with 0xff again, as after device_allocate: for the device nothing is written there then.
void device_poison(void* device, std::size_t bytes);
void copy_to_device(void* device, const void* host, std::size_t bytes);
void copy_from_device(void* host, const void* device, std::size_t bytes);

/// Bytes that kernels read from and wrote to one buffer.
struct Traffic {
  std::string buffer;
  int64_t bytes_read = 0;
  int64_t bytes_written = 0;
};
struct Launches {
  int64_t kernels = 0;
  std::vector<Traffic> traffic;  // one entry for each live buffer, in order of allocation

  int64_t bytes() const {  // all that was read and written
    int64_t sum = 0;
    for (const Traffic& buffer : traffic) sum += buffer.bytes_read + buffer.bytes_written;
    return sum;
  }
};

void reset_launches();
Launches read_launches();
int64_t total_launches();  // kernels since the program began

/// What `body` launched and moved. Only a device that checks can count: elsewhere kernels is counted and traffic empty.
/// Launches of other host threads would be counted too.
template <class Body>
Launches count_launches(Body&& body) {
  reset_launches();
  body();
  device_synchronize();
  return read_launches();
}

/// Owns a stream. Kernels on one stream run in order; on the CPU device every launch has ended when it returns.
class Stream {
 public:
  Stream();
  cudaStream_t get() const { return stream_.get(); }

 private:
  struct Destroy {
    void operator()(cudaStream_t stream) const noexcept;
  };
  std::unique_ptr<std::remove_pointer_t<cudaStream_t>, Destroy> stream_;
};

}  // namespace ladder
