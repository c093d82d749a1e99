// A variant of rung 01. One idea: four elements per thread, moved by one 16-byte access instead of four of 4 bytes.
//
// The bytes are the same; the instructions that ask for them are a quarter as many. A 16-byte access must start at a
// multiple of 16, which a pointer into the middle of a tensor need not: the launcher looks at the pointers, never at
// the size, and takes the kernel of vector_add.cuh when one of them is off.
#pragma once

#include <cstdint>

#include "steps/01_vector_add/vector_add.cuh"

namespace step01 {

/// Four elements per thread. A block owns 4 * BLOCK_SIZE of them; the last thread with work may have fewer than four.
template <int BLOCK_SIZE>
__global__ void __launch_bounds__(BLOCK_SIZE)
    vector_add_vectorized_kernel(const float* x,  // (n_elements), 16-byte aligned
                                 const float* y,  // (n_elements), likewise
                                 float* out,      // (n_elements), likewise
                                 int64_t n_elements) {
  const int64_t block_start = int64_t{blockIdx.x} * (BLOCK_SIZE * 4);
  const int64_t offsets = block_start + threadIdx.x * 4;
  if (offsets + 4 <= n_elements) {
    const float4 a = *reinterpret_cast<const float4*>(x + offsets);
    const float4 b = *reinterpret_cast<const float4*>(y + offsets);
    *reinterpret_cast<float4*>(out + offsets) = make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
  } else {
    // At most one thread of the grid has a piece of fewer than four elements.
    for (int64_t i = offsets; i < n_elements; ++i) out[i] = x[i] + y[i];
  }
}

/// Where a 16-byte access may start.
inline bool aligned_to_16_bytes(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0; }

/// The same contract and the same result as vector_add(), to the bit.
inline void vector_add_vectorized(ladder::Vector<const float> x, ladder::Vector<const float> y,
                                  ladder::Vector<float> out, cudaStream_t stream = nullptr) {
  require_vectors("vector_add_vectorized", x, y, out);
  const int64_t n_elements = x.sizes[0];
  if (n_elements == 0) return;
  constexpr int BLOCK_SIZE = 256;
  const bool aligned = aligned_to_16_bytes(x.data) && aligned_to_16_bytes(y.data) && aligned_to_16_bytes(out.data);
  const auto kernel = aligned ? vector_add_vectorized_kernel<BLOCK_SIZE> : vector_add_kernel<BLOCK_SIZE>;
  const int64_t elements_per_block = aligned ? BLOCK_SIZE * 4 : BLOCK_SIZE;
  const dim3 grid = ladder::grid_of("vector_add_vectorized", ladder::cdiv(n_elements, elements_per_block));
  ladder::launch(kernel, grid, dim3(BLOCK_SIZE), 0, stream, x.data, y.data, out.data, n_elements);
}

}  // namespace step01
