// Rung 01: out = x + y. One idea: a grid of blocks, each of which finds its own elements (block, offsets, mask).
#pragma once

#include "common/kernel/gpu.cuh"

namespace step01 {

/// One thread per element. n_elements is seldom a multiple of BLOCK_SIZE, so the last block has threads with nothing to
/// do: the mask keeps them from touching what lies behind the arrays.
template <int BLOCK_SIZE>
__global__ void __launch_bounds__(BLOCK_SIZE) vector_add_kernel(const float* x,  // (n_elements)
                                                                const float* y,  // (n_elements)
                                                                float* out,      // (n_elements), may be x or y
                                                                int64_t n_elements) {
  const int64_t block_start = int64_t{blockIdx.x} * BLOCK_SIZE;  // 64 bits: blockIdx.x * BLOCK_SIZE can pass 2^32
  const int64_t offsets = block_start + threadIdx.x;
  const bool mask = offsets < n_elements;
  if (mask) out[offsets] = x[offsets] + y[offsets];
}

/// Throws ladder::InvalidArgument unless the vectors are what both launchers of this rung take: see vector_add().
inline void require_vectors(const char* function, const ladder::Vector<const float>& x,
                            const ladder::Vector<const float>& y, const ladder::Vector<float>& out) {
  using namespace ladder;
  require_view(function, "x", x);
  require_view(function, "y", y);
  require_view(function, "out", out);
  require_same_sizes(function, "y", y, "x", x);
  require_same_sizes(function, "out", out, "x", x);
  require_unit_last_stride(function, "x", x);
  require_unit_last_stride(function, "y", y);
  require_unit_last_stride(function, "out", out);
  require_no_partial_overlap(function, "out", out, "x", x);
  require_no_partial_overlap(function, "out", out, "y", y);
}

/// out[i] = x[i] + y[i], exactly the float sum, for any number of elements; 0 elements launch nothing.
/// All three are (n) and contiguous; out may be x or y. Throws ladder::InvalidArgument otherwise.
/// Moves 12 n bytes: 8 n read, 4 n written.
inline void vector_add(ladder::Vector<const float> x, ladder::Vector<const float> y, ladder::Vector<float> out,
                       cudaStream_t stream = nullptr) {
  require_vectors("vector_add", x, y, out);
  const int64_t n_elements = x.sizes[0];
  if (n_elements == 0) return;
  constexpr int BLOCK_SIZE = 256;
  const dim3 grid = ladder::grid_of("vector_add", ladder::cdiv(n_elements, BLOCK_SIZE));
  ladder::launch(vector_add_kernel<BLOCK_SIZE>, grid, dim3(BLOCK_SIZE), 0, stream, x.data, y.data, out.data,
                 n_elements);
}

}  // namespace step01
