// Rung 04: the softmax of each row. One idea: the block is made for the row, BLOCK_SIZE = next_power_of_2(n_cols). The
// kernel is that of rung 03 to the letter; one line of the launcher differs.
#pragma once

#include <string>

#include "common/kernel/gpu.cuh"

namespace step04 {

/// The most columns that a block has room for. It keeps its row in registers. A block has at most 1024 threads, which
/// leaves 64 registers to each: 32 columns of the widest row take half of them.
constexpr int MAX_BLOCK_SIZE = 32768;

/// The threads of a block with room for `block_size` columns: whole warps; four columns for each thread, until a block
/// can have no more threads.
__host__ __device__ constexpr int threads_for(int block_size) {
  return block_size < 128 ? 32 : block_size < 4096 ? block_size / 4 : 1024;
}

/// One block per row. BLOCK_SIZE is the number of columns that a block has room for, a power of two; n_cols is how many
/// there are. The row is read once and written once, and between the two it is in registers: output may be input, since
/// each thread writes only the columns that it has read itself.
template <int BLOCK_SIZE>
__global__ void __launch_bounds__(threads_for(BLOCK_SIZE)) softmax_kernel(float* output,             // (n_rows, n_cols)
                                                                          const float* input,        // (n_rows, n_cols)
                                                                          int64_t input_row_stride,  // in elements
                                                                          int64_t output_row_stride, int64_t n_cols) {
  constexpr int THREADS = threads_for(BLOCK_SIZE);
  constexpr int ITEMS = static_cast<int>(ladder::cdiv(BLOCK_SIZE, THREADS));  // columns per thread
  const int64_t row_idx = blockIdx.x;
  const float* row_start = input + row_idx * input_row_stride;
  float* output_row_start = output + row_idx * output_row_stride;

  // Neighbouring threads take neighbouring columns, so that each warp reads 128 bytes that lie together. The loops have
  // constant bounds and are unrolled: only then can row[] be registers, which cannot be indexed at run time.
  float row[ITEMS];
  float row_max = -INFINITY;
#pragma unroll
  for (int item = 0; item < ITEMS; ++item) {
    const int col_offsets = item * THREADS + static_cast<int>(threadIdx.x);
    const bool mask = col_offsets < n_cols;
    row[item] = mask ? row_start[col_offsets] : -INFINITY;  // never the maximum, and exp makes it 0
    row_max = fmaxf(row_max, row[item]);
  }
  row_max = ladder::block_reduce<THREADS>(row_max, ladder::Max{});  // every thread holds it

  // exp overflows above 88.7; after the subtraction its argument is at most 0, and the quotient is the same.
  float denominator = 0.0f;
#pragma unroll
  for (int item = 0; item < ITEMS; ++item) {
    const float numerator = expf(row[item] - row_max);
    row[item] = numerator;
    denominator += numerator;
  }
  denominator = ladder::block_reduce<THREADS>(denominator, ladder::Sum{});  // every thread holds it

#pragma unroll
  for (int item = 0; item < ITEMS; ++item) {
    const int col_offsets = item * THREADS + static_cast<int>(threadIdx.x);
    const bool mask = col_offsets < n_cols;
    const float softmax_output = row[item] / denominator;
    if (mask) output_row_start[col_offsets] = softmax_output;
  }
}

/// Throws ladder::InvalidArgument unless the matrices are what a launcher of this rung takes: see softmax().
inline void require_softmax(const char* function, const ladder::Matrix<const float>& input,
                            const ladder::Matrix<float>& output) {
  ladder::require_rows(function, "input", input);
  ladder::require_rows(function, "output", output);
  ladder::require_same_sizes(function, "output", output, "input", input);
  ladder::require_no_partial_overlap(function, "output", output, "input", input);
}

/// output[r][c] = exp(input[r][c]) / sum over c of exp(input[r][c]), for 1 to 32768 columns and any number of rows.
/// A row that holds a NaN, +inf, or nothing but -inf becomes NaN throughout, as in PyTorch.
/// Both are (n_rows, n_cols), contiguous along a row, with any row stride of at least n_cols; output may be input.
/// Throws ladder::InvalidArgument otherwise. No rows or no columns: nothing is launched.
/// Moves 8 n_rows n_cols bytes: 4 read and 4 written for each element.
inline void softmax(ladder::Matrix<const float> input, ladder::Matrix<float> output, cudaStream_t stream = nullptr) {
  require_softmax("softmax", input, output);
  if (input.empty()) return;
  const int64_t n_rows = input.sizes[0], n_cols = input.sizes[1];
  const dim3 grid = ladder::grid_of("softmax", n_rows);
  const int64_t BLOCK_SIZE = ladder::next_power_of_2(n_cols);
  if (BLOCK_SIZE > MAX_BLOCK_SIZE)
    ladder::refuse("softmax", "n_cols", std::to_string(n_cols),
                   "at most " + std::to_string(MAX_BLOCK_SIZE) +
                       ": one block keeps the whole row in registers. An online softmax (rung 06) reads the row in "
                       "pieces, keeps a running maximum and a running sum, and takes any width");
  // Of a constant the lambda captures nothing, and one kernel is compiled; else one for each power of two.
  const auto chosen = [&] { return BLOCK_SIZE; };
  ladder::dispatch_block_size<MAX_BLOCK_SIZE>("softmax", chosen, [&](auto block_size) {
    ladder::launch(softmax_kernel<block_size()>, grid, dim3(threads_for(block_size())), 0, stream, output.data,
                   input.data, input.strides[0], output.strides[0], n_cols);
  });
}

}  // namespace step04
