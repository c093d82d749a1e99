// The GPU side of the vocabulary: what `launch` and dynamic shared memory are when nvcc compiles a kernel.
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "common/kernel/error.hpp"
#include "common/kernel/launch_limits.hpp"

namespace ladder {

/// Throws KernelFault with the call and CUDA's own words unless `status` is success. Clears the error first where CUDA
/// allows it, so that a later call is not blamed.
inline void check_cuda(cudaError_t status, const std::string& call) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();
  throw KernelFault(call + ": " + cudaGetErrorName(status) + " (" + cudaGetErrorString(status) + ")");
}

/// The dynamic shared memory, in bytes, that one block may have on the current device.
inline std::size_t shared_memory_limit() {
  int device = 0, bytes = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "cudaDeviceGetAttribute");
  return static_cast<std::size_t>(bytes);
}

/// Shared memory of one kernel on one device, in bytes.
struct KernelShared {
  std::size_t static_bytes;  ///< Of its `__shared__` arrays, and of those of the functions that it calls.
  std::size_t limit;         ///< What one block may have, these included.
};
/// Asks CUDA once for each kernel and device. From then on the kernel takes launches up to the limit: a launch with
/// more than 48 KiB in all, static and dynamic, needs an opt-in.
inline KernelShared kernel_shared(const void* function) {
  static std::mutex mutex;
  static std::map<std::pair<int, const void*>, KernelShared> known;
  int device = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  const std::lock_guard lock(mutex);
  const auto found = known.find({device, function});
  if (found != known.end()) return found->second;
  cudaFuncAttributes attributes{};
  check_cuda(cudaFuncGetAttributes(&attributes, function), "cudaFuncGetAttributes");
  const KernelShared shared{attributes.sharedSizeBytes, shared_memory_limit()};
  check_cuda(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(shared.limit - shared.static_bytes)),
             "cudaFuncSetAttribute");
  return known[{device, function}] = shared;
}

/// Kernels launched by this program so far.
inline std::atomic<int64_t> kernels_launched{0};

/// `kernel<<<grid, block, shared_bytes, stream>>>(arguments...)`, with every result checked. Throws LaunchRefused,
/// before anything runs, when the device does not take the launch; the next launch is then clean. What goes wrong
/// inside the kernel is only known when the stream is synchronized. (On the CPU device the kernel has ended when this
/// returns, and its fault is thrown from here, as KernelFault.)
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
            Arguments&&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments),
                "launch: as many arguments as the kernel has parameters");
  const auto function = reinterpret_cast<const void*>(kernel);
  const auto name = [&] {
    const char* mangled = nullptr;
    return cudaFuncGetName(&mangled, function) == cudaSuccess && mangled ? std::string(mangled) : std::string("kernel");
  };
  const KernelShared shared = kernel_shared(function);
  check_launch(name, grid, block, shared.static_bytes, shared_bytes, shared.limit);
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  const cudaError_t status =
      cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(std::forward<Arguments>(arguments))...);
  if (status != cudaSuccess) {
    (void)cudaGetLastError();
    throw LaunchRefused("launch of " + name() + ": " + cudaGetErrorName(status) + " (" + cudaGetErrorString(status) +
                        ")");
  }
  ++kernels_launched;
}

/// The block's dynamic shared memory as an array of T. CUDA's own `extern __shared__ T name[]` cannot stand in a
/// template under two types of T.
template <class T>
__device__ T* dynamic_shared() {
  extern __shared__ __align__(16) unsigned char ladder_dynamic_shared[];
  return reinterpret_cast<T*>(ladder_dynamic_shared);
}

}  // namespace ladder
