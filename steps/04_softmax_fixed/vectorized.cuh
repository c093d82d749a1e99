// A variant of rung 04. One idea: four columns by one 16-byte access.
//
// The rung asks for 4 bytes a thread at a time, and on an H200 that many requests are the limit, not the bytes. Here a
// thread asks for 16. It also takes more columns than in the rung, up to 32, which it has all asked for before it looks
// at the first one; so a row needs fewer warps, and a row of up to 1024 columns just one, whose lanes meet by shuffles
// and wait at no barrier. Several such rows share a block.
#pragma once

#include <cstdint>

#include "steps/04_softmax_fixed/softmax.cuh"

namespace step04 {

// How a block is laid out: threads for each row, and rows for each block. Several rows only where a warp has one each.
struct RowLayout {
  int threads, rows;
};
constexpr RowLayout layout_for(int block_size) {
  if (block_size <= 1024) return {ladder::WARP_SIZE, 4};
  return {block_size / 16 < 1024 ? block_size / 16 : 1024, 1};
}

template <int BLOCK_SIZE, int THREADS, int ROWS, bool RECIPROCAL>
__global__ void __launch_bounds__(THREADS* ROWS)
    softmax_vectorized_kernel(float* output,             // (n_rows, n_cols), each row 16-byte aligned
                              const float* input,        // (n_rows, n_cols), likewise
                              int64_t input_row_stride,  // in elements
                              int64_t output_row_stride, int64_t n_rows,
                              int64_t n_cols) {  // a multiple of 4: the four columns of an access exist together
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

  const float reciprocal = 1.0f / denominator;
  const auto quotient = [&](float numerator) { return RECIPROCAL ? numerator * reciprocal : numerator / denominator; };
#pragma unroll
  for (int item = 0; item < ITEMS; ++item) {
    const int col_offsets = (item * THREADS + thread) * 4;
    const bool mask = col_offsets < n_cols;
    if (mask)
      *reinterpret_cast<float4*>(output_row_start + col_offsets) =
          make_float4(quotient(row[item].x), quotient(row[item].y), quotient(row[item].z), quotient(row[item].w));
  }
}

// True when each row starts at a multiple of 16 bytes.
template <class T>
bool rows_are_aligned(const ladder::Matrix<T>& view) {
  const bool first = reinterpret_cast<std::uintptr_t>(view.data) % 16 == 0;
  return first && (view.sizes[0] == 1 || view.strides[0] % 4 == 0);
}

template <int BLOCK_SIZE, int THREADS, int ROWS, bool RECIPROCAL>
void launch_vectorized(ladder::Matrix<const float> input, ladder::Matrix<float> output, cudaStream_t stream) {
  const dim3 grid = ladder::grid_of("softmax_vectorized", ladder::cdiv(input.sizes[0], ROWS));
  ladder::launch(softmax_vectorized_kernel<BLOCK_SIZE, THREADS, ROWS, RECIPROCAL>, grid, dim3(THREADS * ROWS), 0,
                 stream, output.data, input.data, input.strides[0], output.strides[0], input.sizes[0], input.sizes[1]);
}

/// The contract of softmax; the results may differ by rounding, since the sum is formed in another order. Where rows
/// start off 16-byte alignment, or their width is no multiple of 4, it leaves them to softmax.
inline void softmax_vectorized(ladder::Matrix<const float> input, ladder::Matrix<float> output,
                               cudaStream_t stream = nullptr) {
  require_softmax("softmax_vectorized", input, output);
  if (input.empty()) return;
  const int64_t n_cols = input.sizes[1];
  ladder::require_range("softmax_vectorized", "n_cols", n_cols, 0, MAX_BLOCK_SIZE);
  if (n_cols % 4 != 0 || !rows_are_aligned(input) || !rows_are_aligned(output)) return softmax(input, output, stream);
  ladder::dispatch_block_size<MAX_BLOCK_SIZE>(
      "softmax_vectorized", ladder::next_power_of_2(n_cols), [&](auto block_size) {
        constexpr RowLayout layout = layout_for(block_size());
        launch_vectorized<block_size(), layout.threads, layout.rows, false>(input, output, stream);
      });
}

}  // namespace step04
