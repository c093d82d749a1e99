// What a launcher or a launch throws. One line of text each: who refuses, which argument, its value, the limit.
#pragma once

#include <stdexcept>

namespace ladder {

/// A launcher's contract was not met. Nothing was launched and nothing was written.
struct InvalidArgument : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

/// The device does not take this grid, block or amount of shared memory. Nothing ran; the next launch is clean.
struct LaunchRefused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A kernel did what CUDA forbids, or the device failed while it ran. Its outputs are worth nothing.
struct KernelFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace ladder
