// WRONG ON PURPOSE: the kernel of vector_add.cuh without its mask, to show what the mask is for.
#pragma once

#include "common/kernel/gpu.cuh"

namespace step01 {
/// WRONG: one thread per element, and threads of the last block that have none touch what lies behind the arrays.
template <int BLOCK_SIZE>
__global__ void __launch_bounds__(BLOCK_SIZE)
    vector_add_without_mask_kernel(const float* x, const float* y, float* out) {
  const int64_t block_start = int64_t{blockIdx.x} * BLOCK_SIZE;
  const int64_t offsets = block_start + threadIdx.x;
  out[offsets] = x[offsets] + y[offsets];  // past the end in the last block, unless n is a multiple of BLOCK_SIZE
}

/// Launches it for x.sizes[0] elements. Its arguments are not checked: a fault is what it is for.
inline void vector_add_without_mask(ladder::Vector<const float> x, ladder::Vector<const float> y,
                                    ladder::Vector<float> out) {
  constexpr int BLOCK_SIZE = 256;
  const dim3 grid = ladder::grid_of("vector_add_without_mask", ladder::cdiv(x.sizes[0], BLOCK_SIZE));
  ladder::launch(vector_add_without_mask_kernel<BLOCK_SIZE>, grid, dim3(BLOCK_SIZE), 0, nullptr, x.data, y.data,
                 out.data);
}

}  // namespace step01
