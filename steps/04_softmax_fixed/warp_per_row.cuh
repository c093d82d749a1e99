// A variant of rung 04. One idea: a narrow row is the work of one warp, and a block takes several rows.
//
// The rung gives a row of 1024 columns eight warps, which wait for each other at four barriers; while they wait, they
// ask the memory for nothing. The lanes of one warp need no barrier: their reductions are shuffles.
#pragma once

#include "steps/04_softmax_fixed/softmax.cuh"

namespace step04 {

constexpr int ROWS_PER_BLOCK = 4;
constexpr int WIDEST_ROW_OF_A_WARP = 1024;  // 32 columns a lane, as in the widest block of the rung

template <int BLOCK_SIZE>
__global__ void __launch_bounds__(ROWS_PER_BLOCK* ladder::WARP_SIZE)
    softmax_warp_per_row_kernel(float* output,             // (n_rows, n_cols)
                                const float* input,        // (n_rows, n_cols)
                                int64_t input_row_stride,  // in elements
                                int64_t output_row_stride, int64_t n_rows, int64_t n_cols) {
  using ladder::WARP_SIZE;
  constexpr int ITEMS = static_cast<int>(ladder::cdiv(BLOCK_SIZE, WARP_SIZE));  // columns per lane
  const int lane = threadIdx.x % WARP_SIZE;
  const int64_t row_idx = int64_t{blockIdx.x} * ROWS_PER_BLOCK + threadIdx.x / WARP_SIZE;
  if (row_idx >= n_rows) return;  // a whole warp or none of it, and no barrier waits for it
  const float* row_start = input + row_idx * input_row_stride;
  float* output_row_start = output + row_idx * output_row_stride;

  float row[ITEMS];
  float row_max = -INFINITY;
#pragma unroll
  for (int item = 0; item < ITEMS; ++item) {
    const int col_offsets = item * WARP_SIZE + lane;
    const bool mask = col_offsets < n_cols;
    row[item] = mask ? row_start[col_offsets] : -INFINITY;
    row_max = fmaxf(row_max, row[item]);
  }
  row_max = ladder::warp_reduce(row_max, ladder::Max{});  // in every lane

  float denominator = 0.0f;
#pragma unroll
  for (int item = 0; item < ITEMS; ++item) {
    const float numerator = expf(row[item] - row_max);
    row[item] = numerator;
    denominator += numerator;
  }
  denominator = ladder::warp_reduce(denominator, ladder::Sum{});  // in every lane

#pragma unroll
  for (int item = 0; item < ITEMS; ++item) {
    const int col_offsets = item * WARP_SIZE + lane;
    const bool mask = col_offsets < n_cols;
    if (mask) output_row_start[col_offsets] = row[item] / denominator;
  }
}

/// The contract of softmax. Rows of more than 1024 columns are left to it; narrower ones may differ from its result by
/// rounding, since the sum is formed in another order.
inline void softmax_warp_per_row(ladder::Matrix<const float> input, ladder::Matrix<float> output,
                                 cudaStream_t stream = nullptr) {
  require_softmax("softmax_warp_per_row", input, output);
  if (input.empty()) return;
  const int64_t n_rows = input.sizes[0], n_cols = input.sizes[1];
  if (n_cols > WIDEST_ROW_OF_A_WARP) return softmax(input, output, stream);
  const dim3 grid = ladder::grid_of("softmax_warp_per_row", ladder::cdiv(n_rows, ROWS_PER_BLOCK));
  const int64_t BLOCK_SIZE = ladder::next_power_of_2(n_cols);
  ladder::dispatch_block_size<WIDEST_ROW_OF_A_WARP>("softmax_warp_per_row", BLOCK_SIZE, [&](auto block_size) {
    ladder::launch(softmax_warp_per_row_kernel<block_size()>, grid, dim3(ROWS_PER_BLOCK * ladder::WARP_SIZE), 0, stream,
                   output.data, input.data, input.strides[0], output.strides[0], n_rows, n_cols);
  });
}

}  // namespace step04
