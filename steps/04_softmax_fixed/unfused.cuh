// The foil of rung 04. One idea: the same softmax as five kernels, as a library does it that has one kernel for each
// operation. Every intermediate result goes out to global memory and comes back.
#pragma once

#include <limits>

#include "steps/04_softmax_fixed/softmax.cuh"

namespace step04 {

// In all five: one block per row, and its threads take the columns in turn.

/// The first: row_max = the maximum of each row.
template <int THREADS>
__global__ void __launch_bounds__(THREADS)
    row_max_kernel(float* row_max,  // (n_rows)
                   const float* input, int64_t input_row_stride, int64_t n_cols) {
  const float* row_start = input + blockIdx.x * input_row_stride;
  float value = -INFINITY;
  for (int64_t col = threadIdx.x; col < n_cols; col += THREADS) value = fmaxf(value, row_start[col]);
  value = ladder::block_reduce<THREADS>(value, ladder::Max{});
  if (threadIdx.x == 0) row_max[blockIdx.x] = value;
}

/// The second: shifted = input - row_max, column by column.
template <int THREADS>
__global__ void __launch_bounds__(THREADS) subtract_kernel(float* shifted,  // (n_rows, n_cols), contiguous
                                                           const float* input, int64_t input_row_stride,
                                                           const float* row_max,  // (n_rows)
                                                           int64_t n_cols) {
  const float* row_start = input + blockIdx.x * input_row_stride;
  float* shifted_row = shifted + blockIdx.x * n_cols;
  const float subtrahend = row_max[blockIdx.x];
  for (int64_t col = threadIdx.x; col < n_cols; col += THREADS) shifted_row[col] = row_start[col] - subtrahend;
}

/// The third: numerator = exp(shifted).
template <int THREADS>
__global__ void __launch_bounds__(THREADS) exp_kernel(float* numerator,      // (n_rows, n_cols), contiguous
                                                      const float* shifted,  // (n_rows, n_cols), contiguous
                                                      int64_t n_cols) {
  const int64_t row = blockIdx.x * n_cols;
  for (int64_t col = threadIdx.x; col < n_cols; col += THREADS) numerator[row + col] = expf(shifted[row + col]);
}

/// The fourth: denominator = the sum of each row.
template <int THREADS>
__global__ void __launch_bounds__(THREADS) row_sum_kernel(float* denominator,      // (n_rows)
                                                          const float* numerator,  // (n_rows, n_cols), contiguous
                                                          int64_t n_cols) {
  const float* row_start = numerator + blockIdx.x * n_cols;
  float value = 0.0f;
  for (int64_t col = threadIdx.x; col < n_cols; col += THREADS) value += row_start[col];
  value = ladder::block_reduce<THREADS>(value, ladder::Sum{});
  if (threadIdx.x == 0) denominator[blockIdx.x] = value;
}

/// The fifth: output = numerator / denominator.
template <int THREADS>
__global__ void __launch_bounds__(THREADS) divide_kernel(float* output, int64_t output_row_stride,
                                                         const float* numerator,    // (n_rows, n_cols), contiguous
                                                         const float* denominator,  // (n_rows)
                                                         int64_t n_cols) {
  const float* row_start = numerator + blockIdx.x * n_cols;
  float* output_row_start = output + blockIdx.x * output_row_stride;
  const float divisor = denominator[blockIdx.x];
  for (int64_t col = threadIdx.x; col < n_cols; col += THREADS) output_row_start[col] = row_start[col] / divisor;
}

constexpr int UNFUSED_THREADS = 256;  ///< Threads of a block of each of the five.

/// Elements that softmax_unfused needs for its intermediates: two of the input's shape, and two for each row.
constexpr int64_t unfused_scratch(int64_t n_rows, int64_t n_cols) { return 2 * n_rows * (n_cols + 1); }

/// The bytes by Triton's count, below: a row's maximum and sum make one trip each way.
constexpr double unfused_bytes(int64_t n_rows, int64_t n_cols) {
  const auto rows = static_cast<double>(n_rows), cols = static_cast<double>(n_cols);
  return 4 * (8 * rows * cols + 4 * rows);
}

/// The same as softmax(), up to the rounding of the sum, and for any number of columns. `scratch` (contiguous, at least
/// unfused_scratch(n_rows, n_cols) elements) receives the intermediates and must lie apart from input and output.
///
/// Moves, in elements, 8 M N + 2 M + 2 * 256 M for M rows of N columns: 5 M N read and 3 M N written, a maximum and a
/// sum written for each row, and both read by each of the 256 threads of its block. (A warp reads them at one address,
/// which is one trip for its 32 lanes; Triton's tutorial counts one for the row, and so 8 M N + 4 M.)
inline void softmax_unfused(ladder::Matrix<const float> input, ladder::Matrix<float> output,
                            ladder::Vector<float> scratch, cudaStream_t stream = nullptr) {
  using namespace ladder;
  require_softmax("softmax_unfused", input, output);
  require_view("softmax_unfused", "scratch", scratch);
  require_unit_last_stride("softmax_unfused", "scratch", scratch);
  const int64_t n_rows = input.sizes[0], n_cols = input.sizes[1];
  if (input.empty()) return;
  require_range("softmax_unfused", "scratch.sizes[0]", scratch.sizes[0], unfused_scratch(n_rows, n_cols),
                std::numeric_limits<int64_t>::max());
  if (spans_overlap(scratch, input)) refuse("softmax_unfused", "scratch.data", "inside input", "apart from it");
  if (spans_overlap(scratch, output)) refuse("softmax_unfused", "scratch.data", "inside output", "apart from it");
  const dim3 grid = grid_of("softmax_unfused", n_rows);
  constexpr int THREADS = UNFUSED_THREADS;

  float* shifted = scratch.data;
  float* numerator = shifted + n_rows * n_cols;
  float* row_max = numerator + n_rows * n_cols;
  float* denominator = row_max + n_rows;
  launch(row_max_kernel<THREADS>, grid, dim3(THREADS), 0, stream, row_max, input.data, input.strides[0], n_cols);
  launch(subtract_kernel<THREADS>, grid, dim3(THREADS), 0, stream, shifted, input.data, input.strides[0], row_max,
         n_cols);
  launch(exp_kernel<THREADS>, grid, dim3(THREADS), 0, stream, numerator, shifted, n_cols);
  launch(row_sum_kernel<THREADS>, grid, dim3(THREADS), 0, stream, denominator, numerator, n_cols);
  launch(divide_kernel<THREADS>, grid, dim3(THREADS), 0, stream, output.data, output.strides[0], numerator, denominator,
         n_cols);
}

}  // namespace step04
