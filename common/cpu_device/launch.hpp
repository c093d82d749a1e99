// Launching a kernel on the CPU device, and the block's dynamic shared memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "common/cpu_device/vocabulary.hpp"
#include "common/kernel/error.hpp"
#include "common/kernel/launch_limits.hpp"
#include "common/kernel/stream.hpp"

namespace ladder::cpu_device {

// What the loop over a block's threads needs at hand; the rest of the state of an OS thread is in worker.cpp.
struct Running {
  bool faulty = false;               // an exception has left the kernel
  bool in_kernel = false;            // a kernel's own code runs: its accesses count, those of host and device do not
  uint32_t thread = 0;               // the running CUDA thread, counted through its block
  uint32_t threads = 0;              // threads of the block
  uint32_t started = 0;              // threads that have begun
  uint32_t ready = 0;                // threads that waited and may go on: they go before fresh ones
  uint32_t done = 0;                 // threads that have returned
  uint32_t collectives = 0;          // warp functions in which some lanes wait for others
  const uint3* indices = nullptr;    // threadIdx of each thread
  const uint16_t* order = nullptr;   // in which fresh threads begin; nullptr: in that of their numbers
  uint32_t returned_lanes[32] = {};  // per warp
};
inline constinit thread_local Running running{};

// The device's own code must not be watched: it shares the library's templates with the kernel files, and the linker
// may have kept the copies that call the device.
struct OutsideKernel {
  [[gnu::no_sanitize_thread]] OutsideKernel() { running.in_kernel = false; }
  [[gnu::no_sanitize_thread]] ~OutsideKernel() { running.in_kernel = true; }
};

void thread_returned();        // tells a warp function that waits not to wait for this lane
void exception_left_kernel();  // called while it is being handled
[[noreturn]] void abandon_thread();

// Enters the next fresh thread of the block; false when there is none or another fiber has to go on first.
[[gnu::no_sanitize_thread]] inline bool begin_thread() {
  if (running.ready != 0 || running.started == running.threads) return false;
  running.thread = running.order ? running.order[running.started] : running.started;
  ++running.started;
  threadIdx = running.indices[running.thread];
  running.in_kernel = true;
  return true;
}
[[gnu::no_sanitize_thread]] inline void end_thread() {
  running.in_kernel = false;
  if (running.faulty) [[unlikely]] {
    running.faulty = false;
    abandon_thread();
  }
  ++running.done;
  running.returned_lanes[running.thread / 32] |= 1u << running.thread % 32;
  if (running.collectives != 0) thread_returned();
}

// Kernels that are compiled without the access callbacks and without LADDER_BARE_KERNELS, which says that this is
// meant. The tag keeps the linker from taking another file's launch for one of these.
#if defined(__SANITIZE_THREAD__) || defined(LADDER_BARE_KERNELS)
#define LADDER_SEEN_OR_BARE true
#define LADDER_LAUNCH_TAG
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define LADDER_SEEN_OR_BARE true
#define LADDER_LAUNCH_TAG
#endif
#endif
#ifndef LADDER_SEEN_OR_BARE
#define LADDER_SEEN_OR_BARE false
#define LADDER_LAUNCH_TAG [[gnu::abi_tag("unseen")]]
#endif

struct Grid {
  const void* kernel;
  bool seen_or_bare;
  dim3 grid, block;
  std::size_t shared_bytes;
  cudaStream_t stream;
  void (*run_threads)(void* call);  // runs fresh threads on the current fiber while begin_thread() allows
  void* call;                       // the kernel and its arguments
  std::size_t call_bytes;
};
// Runs all blocks; returns when the last one has ended. Throws LaunchRefused before, KernelFault after anything ran.
void run_grid(const Grid& grid);

void* dynamic_shared_memory();

}  // namespace ladder::cpu_device

namespace ladder {

/// `kernel<<<grid, block, shared_bytes, stream>>>(arguments...)`, which only nvcc can parse. On the CPU device the
/// kernel has ended when this returns, and a fault inside it is thrown from here as KernelFault. Throws LaunchRefused,
/// before anything runs, for a launch that a GPU of the current model would not take.
template <class... Parameters, class... Arguments>
LADDER_LAUNCH_TAG void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
                              cudaStream_t stream, Arguments&&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments),
                "launch: as many arguments as the kernel has parameters");
  auto run_threads = [ kernel, ... values = static_cast<Parameters>(std::forward<Arguments>(arguments)) ]()
      __attribute__((no_sanitize_thread)) {
    while (cpu_device::begin_thread()) {
      try {
        kernel(values...);
      } catch (...) {  // CUDA has no exceptions in kernels
        cpu_device::exception_left_kernel();
      }
      cpu_device::end_thread();
    }
  };
  const auto call = [](void* closure) __attribute__((no_sanitize_thread)) {
    (*static_cast<decltype(run_threads)*>(closure))();
  };
  cpu_device::run_grid({reinterpret_cast<const void*>(kernel), LADDER_SEEN_OR_BARE, grid, block, shared_bytes, stream,
                        call, &run_threads, sizeof run_threads});
}

/// The block's dynamic shared memory as an array of T, of as many bytes as the launch asked for.
template <class T>
T* dynamic_shared() {
  return static_cast<T*>(cpu_device::dynamic_shared_memory());
}

}  // namespace ladder
