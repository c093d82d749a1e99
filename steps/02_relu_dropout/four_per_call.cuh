// A variant of rung 02. One idea: a call of Philox gives four words, so let it serve four elements.
//
// Element i draws word i % 4 of Philox(counter i / 4): another mask than that of relu_dropout.cuh, with the same
// statistics, for a quarter of the arithmetic. Each thread owns the four elements of one call, and moves them by one
// 16-byte access where the addresses allow it.
#pragma once

#include <cstdint>

#include "steps/02_relu_dropout/relu_dropout.cuh"

namespace step02 {

/// ReLU and dropout of the elements of one call. ReLU comes last here: the same number, to the bit, since 1 - p is
/// positive, and the division is spared the zeros that ReLU makes of half the elements. The compiled division has a
/// second path, and we infer that 0 takes it, and the whole warp with it; no profile shows that.
__device__ inline float4 relu_dropout_of_four(float4 a, uint4 words, float p) {
  return make_float4(relu(dropout(a.x, uniform_from(words.x), p)), relu(dropout(a.y, uniform_from(words.y), p)),
                     relu(dropout(a.z, uniform_from(words.z), p)), relu(dropout(a.w, uniform_from(words.w), p)));
}
/// The same where not all four exist, or cannot be moved at once.
__device__ inline void relu_dropout_one_by_one(const float* x,  // (n_elements)
                                               float* out,      // (n_elements), may be x
                                               int64_t offsets, int64_t n_elements, uint4 words, float p) {
  const auto one = [&](int64_t i, uint32_t word) {
    const bool mask = i >= 0 && i < n_elements;
    if (mask) out[i] = relu(dropout(x[i], uniform_from(word), p));
  };
  one(offsets, words.x);
  one(offsets + 1, words.y);
  one(offsets + 2, words.z);
  one(offsets + 3, words.w);
}

/// One thread per call of Philox. When the stream of random numbers does not start at a multiple of 4, the first thread
/// owns the elements of a call that an earlier launch began: its first offsets are negative then, and masked out. So
/// the same words go to the same places of the stream however it is cut into launches.
template <int BLOCK_SIZE, bool VECTORIZED>
__global__ void __launch_bounds__(BLOCK_SIZE)
    relu_dropout_four_per_call_kernel(const float* x,  // (n_elements)
                                      float* out,      // (n_elements), may be x
                                      int64_t n_elements, float p, uint64_t seed, uint64_t first_counter) {
  const int64_t call = int64_t{blockIdx.x} * BLOCK_SIZE + threadIdx.x;
  const int64_t offsets = call * 4 - static_cast<int64_t>(first_counter % 4);
  const uint4 words = random_words(seed, first_counter / 4 + call);
  if (VECTORIZED && offsets >= 0 && offsets + 4 <= n_elements) {
    const float4 a = *reinterpret_cast<const float4*>(x + offsets);
    *reinterpret_cast<float4*>(out + offsets) = relu_dropout_of_four(a, words, p);
  } else {
    relu_dropout_one_by_one(x, out, offsets, n_elements, words, p);
  }
}

/// True when the first element of each thread lies at a multiple of 16 bytes.
inline bool calls_are_aligned(const void* pointer, uint64_t first_counter) {
  return (reinterpret_cast<std::uintptr_t>(pointer) - first_counter % 4 * sizeof(float)) % 16 == 0;
}

/// The contract of relu_dropout(), with the other mapping: element i draws word (first_counter + i) % 4 of
/// Philox(seed, counter (first_counter + i) / 4). The mask depends on neither BLOCK_SIZE nor the pointers' alignment.
/// The next call that wants new numbers under the same seed starts at first_counter + n, here too.
template <int BLOCK_SIZE = 256>
void relu_dropout_four_per_call(ladder::Vector<const float> x, ladder::Vector<float> out, float p, uint64_t seed,
                                uint64_t first_counter = 0, cudaStream_t stream = nullptr) {
  require_relu_dropout("relu_dropout_four_per_call", x, out, p, first_counter);
  const int64_t n_elements = x.sizes[0];
  if (n_elements == 0) return;
  const bool aligned = calls_are_aligned(x.data, first_counter) && calls_are_aligned(out.data, first_counter);
  const auto kernel = aligned ? relu_dropout_four_per_call_kernel<BLOCK_SIZE, true>
                              : relu_dropout_four_per_call_kernel<BLOCK_SIZE, false>;
  const int64_t calls = ladder::cdiv(static_cast<int64_t>(first_counter % 4) + n_elements, 4);
  const dim3 grid = ladder::grid_of("relu_dropout_four_per_call", ladder::cdiv(calls, BLOCK_SIZE));
  ladder::launch(kernel, grid, dim3(BLOCK_SIZE), 0, stream, x.data, out.data, n_elements, p, seed, first_counter);
}

}  // namespace step02
