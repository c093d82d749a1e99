// One kernel of the device's own, which must see each of its accesses before it calls itself checked: what a compiler
// was asked for is not what it has done.
#include "common/cpu_device/cpu_device.hpp"
#include "common/cpu_device/self_check.hpp"

namespace ladder::cpu_device {
namespace {

__global__ void touch(float* cell, int64_t index, bool write_shared) {
  __shared__ float shared[1];
  if (write_shared) shared[0] = 1.0f;
  __syncthreads();
  cell[index] += shared[0];
}

}  // namespace

void launch_self_check(float* cell, int64_t index, bool write_shared) {
  launch(touch, dim3(1), dim3(1), 0, nullptr, cell, index, write_shared);
}

}  // namespace ladder::cpu_device
