// The kernel by which the device looks at itself, in a file that is compiled as kernels are.
#pragma once

#include <cstdint>

namespace ladder::cpu_device {

// Adds to cell[index], of one cell, what a shared array holds: 1, or nothing where `write_shared` is false.
void launch_self_check(float* cell, int64_t index, bool write_shared);

}  // namespace ladder::cpu_device
