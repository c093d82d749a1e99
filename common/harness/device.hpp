// The device as mains, tests and benchmarks see it: memory, streams, what it is, and what the last launch moved.
// device_cpu.cpp answers for the CPU device, device_cuda.cu for a GPU; a build has one of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
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

/// Looks for all that the device can look for from now on, also for races and for what older GPUs would not run:
/// programs and tests can afford it. Only the CPU device can; elsewhere this does nothing.
void check_everything();

/// Runs threads and blocks in another order from here on: "forward", "reversed", "warp-reversed" or "random:SEED", else
/// it throws InvalidArgument. A GPU answers false.
bool try_set_order(std::string_view words);

/// Records the launches to come, and forgets those recorded before. Only a device that checks does.
void record_launches(cpu_device::Recording what);
/// What was recorded since, in order of launching. It is handed over, not copied: the next call gives what came after.
std::vector<cpu_device::LaunchRecord> recorded_launches();

/// Waits for all kernels. Throws KernelFault when one of them failed.
void device_synchronize();

/// Memory on the device, filled with the byte 0xff: a NaN in every float that nothing has written. `element_bytes` and
/// `name` are for messages. Throws std::bad_alloc.
void* device_allocate(std::size_t bytes, std::size_t element_bytes, const std::string& name);
/// Frees memory from device_allocate; of nullptr, nothing.
void device_free(void* memory) noexcept;

/// False when somebody wrote into the pattern that lies before and behind this memory.
bool device_guards_intact(const void* memory);

/// Fills with 0xff again, as after device_allocate: for the device nothing is written there then.
void device_poison(void* device, std::size_t bytes);
/// Copies `bytes` from the host, and returns when they are there.
void copy_to_device(void* device, const void* host, std::size_t bytes);
/// Copies `bytes` to the host, after the kernels before it have ended.
void copy_from_device(void* host, const void* device, std::size_t bytes);

/// Bytes that kernels read from and wrote to one buffer.
struct Traffic {
  std::string buffer;         ///< Its name.
  int64_t bytes_read = 0;     ///< By all threads together: a cell that 32 of them read counts 32 times.
  int64_t bytes_written = 0;  ///< Likewise.
};
/// Launches that were counted together.
struct Launches {
  int64_t kernels = 0;           ///< How many.
  std::vector<Traffic> traffic;  ///< One entry for each live buffer, in order of allocation.
  /// The streams that they were given. Only the CPU device knows; a GPU leaves it empty.
  std::set<cudaStream_t> streams{};

  /// All that was read and written.
  int64_t bytes() const {
    int64_t sum = 0;
    for (const Traffic& buffer : traffic) sum += buffer.bytes_read + buffer.bytes_written;
    return sum;
  }
};

/// Sets what read_launches() counts to 0.
void reset_launches();
/// What was launched and moved since reset_launches().
Launches read_launches();
/// Kernels since the program began.
int64_t total_launches();

/// What `body` launched and moved. Only a device that checks can count: elsewhere kernels is counted and traffic empty.
/// Launches of other host threads would be counted too.
template <class Body>
Launches count_launches(Body&& body) {
  reset_launches();
  body();
  device_synchronize();
  return read_launches();
}

/// Owns a stream. Kernels on one stream run in order; on the CPU device, where every launch has ended when it returns,
/// a stream is a name.
class Stream {
 public:
  /// Makes a stream. Throws KernelFault when CUDA cannot.
  Stream();
  /// The stream, for a launcher. It ends with this object.
  cudaStream_t get() const { return stream_.get(); }

 private:
  struct Destroy {
    void operator()(cudaStream_t stream) const noexcept;
  };
  std::unique_ptr<std::remove_pointer_t<cudaStream_t>, Destroy> stream_;
};

}  // namespace ladder
