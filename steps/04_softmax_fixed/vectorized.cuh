// A variant of rung 04. One idea: four columns by one 16-byte access, and sixteen columns to a thread.
//
// A thread then has up to four accesses of 16 bytes under way at once, and a row has a quarter of the warps that meet
// at its barriers. A 16-byte access must start at a multiple of 16: the launcher looks at the pointers, the row strides
// and the width, and takes the kernel of softmax.cuh when one of them is off.
#pragma once

#include <cstdint>

#include "steps/04_softmax_fixed/softmax.cuh"

namespace step04 {

// Whole warps; sixteen columns for each thread, until a block can have no more threads.
__host__ __device__ constexpr int vectorized_threads_for(int block_size) {
  return block_size < 512 ? 32 : block_size < 16384 ? block_size / 16 : 1024;
}

template <int BLOCK_SIZE>
__global__ void __launch_bounds__(vectorized_threads_for(BLOCK_SIZE))
    softmax_vectorized_kernel(float* output,             // (n_rows, n_cols), each row 16-byte aligned
                              const float* input,        // (n_rows, n_cols), likewise
                              int64_t input_row_stride,  // in elements, a multiple of 4
                              int64_t output_row_stride,
                              int64_t n_cols) {  // a multiple of 4: the four columns of an access exist together
  constexpr int THREADS = vectorized_threads_for(BLOCK_SIZE);
  constexpr int ITEMS = static_cast<int>(ladder::cdiv(BLOCK_SIZE, THREADS * 4));  // accesses per thread
  const int64_t row_idx = blockIdx.x;
  const float* row_start = input + row_idx * input_row_stride;
  float* output_row_start = output + row_idx * output_row_stride;

  float4 row[ITEMS];
  float row_max = -INFINITY;
#pragma unroll
  for (int item = 0; item < ITEMS; ++item) {
    const int col_offsets = (item * THREADS + static_cast<int>(threadIdx.x)) * 4;
    const bool mask = col_offsets < n_cols;
    row[item] = mask ? *reinterpret_cast<const float4*>(row_start + col_offsets)
                     : make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
    row_max = fmaxf(row_max, fmaxf(fmaxf(row[item].x, row[item].y), fmaxf(row[item].z, row[item].w)));
  }
  row_max = ladder::block_reduce<THREADS>(row_max, ladder::Max{});  // every thread holds it

  float denominator = 0.0f;
#pragma unroll
  for (int item = 0; item < ITEMS; ++item) {
    const float4 numerator = make_float4(expf(row[item].x - row_max), expf(row[item].y - row_max),
                                         expf(row[item].z - row_max), expf(row[item].w - row_max));
    row[item] = numerator;
    denominator += (numerator.x + numerator.y) + (numerator.z + numerator.w);
  }
  denominator = ladder::block_reduce<THREADS>(denominator, ladder::Sum{});  // every thread holds it

#pragma unroll
  for (int item = 0; item < ITEMS; ++item) {
    const int col_offsets = (item * THREADS + static_cast<int>(threadIdx.x)) * 4;
    const bool mask = col_offsets < n_cols;
    if (mask)
      *reinterpret_cast<float4*>(output_row_start + col_offsets) =
          make_float4(row[item].x / denominator, row[item].y / denominator,  //
                      row[item].z / denominator, row[item].w / denominator);
  }
}

// True when each row starts at a multiple of 16 bytes.
template <class T>
bool rows_are_aligned(const ladder::Matrix<T>& view) {
  const bool first = reinterpret_cast<std::uintptr_t>(view.data) % 16 == 0;
  return first && (view.sizes[0] == 1 || view.strides[0] % 4 == 0);
}

/// The contract of softmax; the results may differ by rounding, since the sum is formed in another order.
inline void softmax_vectorized(ladder::Matrix<const float> input, ladder::Matrix<float> output,
                               cudaStream_t stream = nullptr) {
  require_softmax("softmax_vectorized", input, output);
  if (input.empty()) return;
  const int64_t n_rows = input.sizes[0], n_cols = input.sizes[1];
  if (n_cols > MAX_BLOCK_SIZE || n_cols % 4 != 0 || !rows_are_aligned(input) || !rows_are_aligned(output))
    return softmax(input, output, stream);
  const dim3 grid = ladder::grid_of("softmax_vectorized", n_rows);
  const int64_t BLOCK_SIZE = ladder::next_power_of_2(n_cols);
  ladder::dispatch_block_size<MAX_BLOCK_SIZE>("softmax_vectorized", BLOCK_SIZE, [&](auto block_size) {
    ladder::launch(softmax_vectorized_kernel<block_size()>, grid, dim3(vectorized_threads_for(block_size())), 0, stream,
                   output.data, input.data, input.strides[0], output.strides[0], n_cols);
  });
}

}  // namespace step04
