// What every device takes in one launch, checked in one place so that the CPU device refuses what a GPU refuses, in the
// same words.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/kernel/error.hpp"

namespace ladder {

/// A GPU architecture, as far as a launch is concerned. Source: CUDA C++ Programming Guide, "Compute Capabilities".
struct DeviceModel {
  std::string_view name;     ///< As nvcc calls it: "sm_90".
  std::size_t shared_bytes;  ///< Dynamic shared memory that one block may have, after opting in above 48 KiB.
};
/// The architectures that the CPU device can play.
inline constexpr std::array<DeviceModel, 5> DEVICE_MODELS{
    {{"sm_75", 64 * 1024}, {"sm_80", 163 * 1024}, {"sm_86", 99 * 1024}, {"sm_89", 99 * 1024}, {"sm_90", 227 * 1024}}};
/// The most bytes that all `__shared__` arrays of a kernel may have together, and that a launch has without opting in.
inline constexpr std::size_t STATIC_SHARED_BYTES = 48 * 1024;

/// Throws LaunchRefused when no GPU, or not one with `shared_limit` bytes of shared memory per block, takes this
/// launch. `static_bytes` are those of the kernel's `__shared__` arrays, which count with the dynamic ones.
/// `kernel_name` is called only then: finding a name costs more than a small launch.
template <class Name, class Dim3>
void check_launch(const Name& kernel_name, const Dim3& grid, const Dim3& block, std::size_t static_bytes,
                  std::size_t shared_bytes, std::size_t shared_limit) {
  const auto require = [&](const std::string& argument, uint64_t value, uint64_t lowest, uint64_t highest) {
    if (value < lowest || value > highest)
      throw LaunchRefused(
          "launch of " + kernel_name() + ": " + argument + " is " + std::to_string(value) + ", must be " +
          (value < lowest ? "at least " + std::to_string(lowest) : "at most " + std::to_string(highest)));
  };
  require("grid.x", grid.x, 1, 2147483647);
  require("grid.y", grid.y, 1, 65535);
  require("grid.z", grid.z, 1, 65535);
  require("block.x", block.x, 1, 1024);
  require("block.y", block.y, 1, 1024);
  require("block.z", block.z, 1, 64);
  require("threads per block", uint64_t{block.x} * block.y * block.z, 1, 1024);
  require("the kernel's __shared__ arrays in bytes", static_bytes, 0, STATIC_SHARED_BYTES);
  const std::string beside =
      static_bytes == 0 ? "" : " (beside " + std::to_string(static_bytes) + " of __shared__ arrays)";
  require("dynamic shared memory in bytes" + beside, shared_bytes, 0, shared_limit - static_bytes);
}

}  // namespace ladder
