// The foil of rung 02: the same two operations as two kernels. One idea: what lies between two kernels goes through
// memory. The arithmetic is the same to the bit; the bytes are twice as many.
#pragma once

#include "steps/02_relu_dropout/relu_dropout.cuh"

namespace step02 {

/// The first of the two. One thread per element: out = relu(x).
template <int BLOCK_SIZE>
__global__ void __launch_bounds__(BLOCK_SIZE) relu_kernel(const float* x,  // (n_elements)
                                                          float* out,      // (n_elements), may be x
                                                          int64_t n_elements) {
  const int64_t offsets = int64_t{blockIdx.x} * BLOCK_SIZE + threadIdx.x;
  const bool mask = offsets < n_elements;
  if (mask) out[offsets] = relu(x[offsets]);
}

/// The second: out = dropout(x), with the random numbers of relu_dropout_kernel.
template <int BLOCK_SIZE>
__global__ void __launch_bounds__(BLOCK_SIZE)
    dropout_kernel(const float* x,  // (n_elements)
                   float* out,      // (n_elements), may be x
                   int64_t n_elements, float p, uint64_t seed, uint64_t first_counter) {
  const int64_t offsets = int64_t{blockIdx.x} * BLOCK_SIZE + threadIdx.x;
  const bool mask = offsets < n_elements;
  if (mask) out[offsets] = dropout(x[offsets], uniform_from(random_words(seed, first_counter + offsets).x), p);
}

/// The same contract and the same result as relu_dropout(), to the bit. `out` also holds what passes between the
/// kernels. Moves 16 n bytes: 8 n read, 8 n written.
inline void relu_dropout_unfused(ladder::Vector<const float> x, ladder::Vector<float> out, float p, uint64_t seed,
                                 uint64_t first_counter = 0, cudaStream_t stream = nullptr) {
  require_relu_dropout("relu_dropout_unfused", x, out, p, first_counter);
  const int64_t n_elements = x.sizes[0];
  if (n_elements == 0) return;
  constexpr int BLOCK_SIZE = 256;
  const dim3 grid = ladder::grid_of("relu_dropout_unfused", ladder::cdiv(n_elements, BLOCK_SIZE));
  ladder::launch(relu_kernel<BLOCK_SIZE>, grid, dim3(BLOCK_SIZE), 0, stream, x.data, out.data, n_elements);
  // The second kernel starts when the first has ended, as both are in one stream, and reads what it has written.
  ladder::launch(dropout_kernel<BLOCK_SIZE>, grid, dim3(BLOCK_SIZE), 0, stream, out.data, out.data, n_elements, p, seed,
                 first_counter);
}

}  // namespace step02
