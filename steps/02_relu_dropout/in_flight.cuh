// A variant of rung 02. One idea: keep more bytes in flight. A thread asks for all that it will need before it computes
// anything, so that the arithmetic of one call of Philox hides the way of the next call's elements.
//
// The mapping and the numbers are those of four_per_call.cuh, which has 16 bytes on their way for each thread; here
// there are CALLS times as many.
#pragma once

#include "steps/02_relu_dropout/four_per_call.cuh"

namespace step02 {

/// CALLS calls of Philox per thread, all loads before the first of them, for pointers that calls_are_aligned() accepts.
/// A block owns CALLS * BLOCK_SIZE calls of Philox; a thread's calls lie BLOCK_SIZE apart, so that a warp's accesses
/// are 512 bytes that lie together.
template <int BLOCK_SIZE, int CALLS>
__global__ void __launch_bounds__(BLOCK_SIZE)
    relu_dropout_in_flight_kernel(const float* x,  // (n_elements)
                                  float* out,      // (n_elements), may be x
                                  int64_t n_elements, float p, uint64_t seed, uint64_t first_counter) {
  const int64_t first_call = int64_t{blockIdx.x} * (BLOCK_SIZE * CALLS) + threadIdx.x;
  const auto offsets_of = [&](int i) {
    return (first_call + i * BLOCK_SIZE) * 4 - static_cast<int64_t>(first_counter % 4);
  };
  const auto whole = [&](int64_t offsets) { return offsets >= 0 && offsets + 4 <= n_elements; };

  float4 a[CALLS];
#pragma unroll
  for (int i = 0; i < CALLS; ++i)
    if (whole(offsets_of(i))) a[i] = *reinterpret_cast<const float4*>(x + offsets_of(i));
#pragma unroll
  for (int i = 0; i < CALLS; ++i) {
    const int64_t offsets = offsets_of(i);
    const uint4 words = random_words(seed, first_counter / 4 + first_call + i * BLOCK_SIZE);
    if (whole(offsets))
      *reinterpret_cast<float4*>(out + offsets) = relu_dropout_of_four(a[i], words, p);
    else
      relu_dropout_one_by_one(x, out, offsets, n_elements, words, p);
  }
}

/// The contract and the result of relu_dropout_four_per_call(), to the bit.
template <int BLOCK_SIZE = 64, int CALLS = 4>
void relu_dropout_in_flight(ladder::Vector<const float> x, ladder::Vector<float> out, float p, uint64_t seed,
                            uint64_t first_counter = 0, cudaStream_t stream = nullptr) {
  require_relu_dropout("relu_dropout_in_flight", x, out, p, first_counter);
  const int64_t n_elements = x.sizes[0];
  if (n_elements == 0) return;
  const bool aligned = calls_are_aligned(x.data, first_counter) && calls_are_aligned(out.data, first_counter);
  const auto kernel =
      aligned ? relu_dropout_in_flight_kernel<BLOCK_SIZE, CALLS> : relu_dropout_four_per_call_kernel<BLOCK_SIZE, false>;
  const int64_t calls = ladder::cdiv(static_cast<int64_t>(first_counter % 4) + n_elements, 4);
  const int64_t calls_per_block = aligned ? BLOCK_SIZE * CALLS : BLOCK_SIZE;
  const dim3 grid = ladder::grid_of("relu_dropout_in_flight", ladder::cdiv(calls, calls_per_block));
  ladder::launch(kernel, grid, dim3(BLOCK_SIZE), 0, stream, x.data, out.data, n_elements, p, seed, first_counter);
}

}  // namespace step02
