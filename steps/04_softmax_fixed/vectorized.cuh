// A variant of rung 04. One idea: four columns by one 16-byte access.
//
// The rung asks for 4 bytes a thread at a time, and each thread of a 1024-column row for 16 in all. On an H200 that is
// too little under way to keep the memory busy. Here a thread asks for 16 bytes at a time and for 32 or more in all,
// before it looks at the first of them; and up to 16,384 columns a row has half the warps of the rung to meet at its
// barriers. A row of up to 256 columns has only one, whose lanes meet by shuffles, and two such rows share a block.
//
// With the memory busy, the division shows: some ten instructions for each element. So the row is divided once, into 1,
// and multiplied. That rounds once more; the tolerance of the tests is the rung's all the same.
#pragma once

#include <cstdint>

#include "steps/04_softmax_fixed/softmax.cuh"

namespace step04 {

// Threads for a row. Whole warps; eight columns for each thread up to 512 threads, then more columns up to 32, which
// fill half of the registers, then more threads. On an H200 twice the threads were slower at each width measured
// from 1000 to 16,384 columns.
__host__ __device__ constexpr int vectorized_threads_for(int block_size) {
  return block_size <= 256 ? 32 : block_size < 4096 ? block_size / 8 : block_size <= 16384 ? 512 : 1024;
}

// Rows for a block. With one warp for a row no thread waits for another row's.
__host__ __device__ constexpr int vectorized_rows_for(int block_size) { return block_size <= 256 ? 2 : 1; }

template <int BLOCK_SIZE>
__global__ void __launch_bounds__(vectorized_threads_for(BLOCK_SIZE) * vectorized_rows_for(BLOCK_SIZE))
    softmax_vectorized_kernel(float* output,             // (n_rows, n_cols), each row 16-byte aligned
                              const float* input,        // (n_rows, n_cols), likewise
                              int64_t input_row_stride,  // in elements
                              int64_t output_row_stride, int64_t n_rows,
                              int64_t n_cols) {  // a multiple of 4: the four columns of an access exist together
  constexpr int THREADS = vectorized_threads_for(BLOCK_SIZE), ROWS = vectorized_rows_for(BLOCK_SIZE);
  static_assert(ROWS == 1 || THREADS == ladder::WARP_SIZE, "block_reduce reduces a whole block, or a warp");
  constexpr int ITEMS = static_cast<int>(ladder::cdiv(BLOCK_SIZE, THREADS * 4));  // accesses per thread
  const int thread = static_cast<int>(threadIdx.x) % THREADS;
  const int64_t row_idx = int64_t{blockIdx.x} * ROWS + threadIdx.x / THREADS;
  if (row_idx >= n_rows) return;  // a whole warp or none of it, and then there is no barrier
  const float* row_start = input + row_idx * input_row_stride;
  float* output_row_start = output + row_idx * output_row_stride;

  float4 row[ITEMS];
  float row_max = -INFINITY;
#pragma unroll
  for (int item = 0; item < ITEMS; ++item) {
    const int col_offsets = (item * THREADS + thread) * 4;
    const bool mask = col_offsets < n_cols;
    row[item] = mask ? *reinterpret_cast<const float4*>(row_start + col_offsets)
                     : make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
  }
#pragma unroll
  for (int item = 0; item < ITEMS; ++item)
    row_max = fmaxf(row_max, fmaxf(fmaxf(row[item].x, row[item].y), fmaxf(row[item].z, row[item].w)));
  row_max = ladder::block_reduce<THREADS>(row_max, ladder::Max{});  // every thread of the row holds it

  float denominator = 0.0f;
#pragma unroll
  for (int item = 0; item < ITEMS; ++item) {
    const float4 numerator = make_float4(expf(row[item].x - row_max), expf(row[item].y - row_max),
                                         expf(row[item].z - row_max), expf(row[item].w - row_max));
    row[item] = numerator;
    denominator += (numerator.x + numerator.y) + (numerator.z + numerator.w);
  }
  denominator = ladder::block_reduce<THREADS>(denominator, ladder::Sum{});  // every thread of the row holds it

  const float reciprocal = 1.0f / denominator;  // the denominator lies between 1 and 32768, or is NaN
#pragma unroll
  for (int item = 0; item < ITEMS; ++item) {
    const int col_offsets = (item * THREADS + thread) * 4;
    const bool mask = col_offsets < n_cols;
    if (mask)
      *reinterpret_cast<float4*>(output_row_start + col_offsets) = make_float4(
          row[item].x * reciprocal, row[item].y * reciprocal, row[item].z * reciprocal, row[item].w * reciprocal);
  }
}

// True when each row starts at a multiple of 16 bytes.
template <class T>
bool rows_are_aligned(const ladder::Matrix<T>& view) {
  const bool first = reinterpret_cast<std::uintptr_t>(view.data) % 16 == 0;
  return first && (view.sizes[0] == 1 || view.strides[0] % 4 == 0);
}

/// The contract of softmax; the results may differ by rounding, since the sum is formed in another order. Where rows
/// start off 16-byte alignment, or their width is no multiple of 4, it leaves them to softmax.
inline void softmax_vectorized(ladder::Matrix<const float> input, ladder::Matrix<float> output,
                               cudaStream_t stream = nullptr) {
  require_softmax("softmax_vectorized", input, output);
  if (input.empty()) return;
  const int64_t n_rows = input.sizes[0], n_cols = input.sizes[1];
  ladder::require_range("softmax_vectorized", "n_cols", n_cols, 0, MAX_BLOCK_SIZE);
  if (n_cols % 4 != 0 || !rows_are_aligned(input) || !rows_are_aligned(output)) return softmax(input, output, stream);
  ladder::dispatch_block_size<MAX_BLOCK_SIZE>(
      "softmax_vectorized", ladder::next_power_of_2(n_cols), [&](auto block_size) {
        constexpr int THREADS = vectorized_threads_for(block_size()), ROWS = vectorized_rows_for(block_size());
        ladder::launch(softmax_vectorized_kernel<block_size()>,
                       ladder::grid_of("softmax_vectorized", ladder::cdiv(n_rows, ROWS)), dim3(THREADS * ROWS), 0,
                       stream, output.data, input.data, input.strides[0], output.strides[0], n_rows, n_cols);
      });
}

}  // namespace step04
