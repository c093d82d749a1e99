// A variant of rung 04. One idea: a thread moves 16 bytes by one access, four columns of fp32 or eight of bf16.
//
// The rung asks for 4 bytes a thread at a time, and each thread of a 1024-column row for 16 in all. On an H200 that is,
// we infer from the times, too little under way to keep the memory busy. Here a thread asks for 16 bytes at a time and
// for 32 or more in all, before it looks at the first of them; and up to 16,384 columns a row has half the warps of the
// rung, or fewer, to meet at its barriers. Narrow rows have none: several share a warp or a block, and their threads
// meet by shuffles.
//
// With the memory busy, arithmetic can show: at 32,768 columns a division for each element cost 3 % of the rate. So the
// row is divided once, into 1, and multiplied. That rounds once more; the tolerance of the tests is the rung's all the
// same. In bf16 a row has half the bytes and leaves half the time, and from 1000 to 8192 columns the exponential showed
// too.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/kernel/access.cuh"
#include "steps/04_softmax_fixed/softmax.cuh"

namespace step04 {

/// Threads for a row, chosen by measurement on an H200. fp32: eight columns for each thread up to 512 threads, then
/// more columns up to 32, which fill half of the registers, then more threads.
template <class T>
constexpr int vectorized_threads_for(int block_size) {
  return block_size <= 16384 ? std::clamp(block_size / 8, 32, 512) : 1024;
}
/// Threads for a row of bf16: sixteen columns for each thread, above 1024 columns thirty-two.
template <>
constexpr int vectorized_threads_for<__nv_bfloat16>(int block_size) {
  return std::clamp(block_size / (block_size <= 1024 ? 16 : 32), 16, 1024);
}

/// Rows for a block. Where a row has a warp or less, its threads meet by shuffles, and no row waits for another.
__host__ __device__ constexpr int vectorized_rows_for(int threads) {
  return threads <= ladder::WARP_SIZE ? 64 / threads : 1;
}

/// exp, as exact as the result is stored, of which the second argument has the type.
__device__ inline float exp_for(float x, float) { return expf(x); }
/// The same for bf16, which rounds it to 4e-3. There `__expf` is exact enough, and a few instructions where expf is
/// eight; at x - max = -16 it may be 20 units in the last place off, 2.4e-6.
__device__ inline float exp_for(float x, __nv_bfloat16) { return __expf(x); }

/// A row for each THREADS threads. COLUMNS of an access: a whole access, or 1 where rows do not start at multiples of
/// 16 bytes.
template <int BLOCK_SIZE, int THREADS, int COLUMNS, class T>
__global__ void __launch_bounds__(THREADS* vectorized_rows_for(THREADS))
    softmax_vectorized_kernel(T* output,                 // (n_rows, n_cols), each row aligned to an access
                              const T* input,            // (n_rows, n_cols), likewise
                              int64_t input_row_stride,  // in elements
                              int64_t output_row_stride, int64_t n_rows,
                              int64_t n_cols) {  // a multiple of COLUMNS: the columns of an access exist together
  constexpr int ROWS = vectorized_rows_for(THREADS);
  constexpr int ITEMS = static_cast<int>(ladder::cdiv(BLOCK_SIZE, THREADS * COLUMNS));  // accesses per thread
  const int thread = static_cast<int>(threadIdx.x) % THREADS;
  const int64_t row_idx = int64_t{blockIdx.x} * ROWS + threadIdx.x / THREADS;
  const bool exists = ROWS == 1 || row_idx < n_rows;  // threads without a row stay: the shuffles need whole warps
  const int64_t columns = exists ? n_cols : 0;
  // Of a row that does not exist the offset need not fit in 64 bits: a single row's stride may be anything.
  const T* row_start = input + (exists ? row_idx * input_row_stride : 0);
  T* output_row_start = output + (exists ? row_idx * output_row_stride : 0);

  float row[ITEMS][COLUMNS];
#pragma unroll
  for (int item = 0; item < ITEMS; ++item) {
    const int col_offsets = (item * THREADS + thread) * COLUMNS;
    const bool mask = col_offsets < columns;
    if (mask) {
      ladder::load(row_start + col_offsets, row[item]);
    } else {
#pragma unroll
      for (int column = 0; column < COLUMNS; ++column) row[item][column] = -INFINITY;
    }
  }
  float row_max = -INFINITY;
#pragma unroll
  for (int item = 0; item < ITEMS; ++item)
#pragma unroll
    for (int column = 0; column < COLUMNS; ++column) row_max = fmaxf(row_max, row[item][column]);
  row_max = ladder::block_reduce<THREADS>(row_max, ladder::Max{});  // every thread of the row holds it

  float denominator = 0.0f;
#pragma unroll
  for (int item = 0; item < ITEMS; ++item) {
    float sum = 0.0f;  // of this access
#pragma unroll
    for (int column = 0; column < COLUMNS; ++column) {
      const float numerator = exp_for(row[item][column] - row_max, T{});
      row[item][column] = numerator;
      sum += numerator;
    }
    denominator += sum;
  }
  denominator = ladder::block_reduce<THREADS>(denominator, ladder::Sum{});  // every thread of the row holds it

  const float reciprocal = 1.0f / denominator;  // the denominator lies between 1 and 32768, or is NaN
#pragma unroll
  for (int item = 0; item < ITEMS; ++item) {
    const int col_offsets = (item * THREADS + thread) * COLUMNS;
    const bool mask = col_offsets < columns;
#pragma unroll
    for (int column = 0; column < COLUMNS; ++column) row[item][column] *= reciprocal;
    if (mask) ladder::store(output_row_start + col_offsets, row[item]);
  }
}

/// Throws ladder::InvalidArgument unless the matrices are what softmax_vectorized takes.
template <class T>
void require_vectorized(const ladder::Matrix<const T>& input, const ladder::Matrix<T>& output) {
  constexpr const char* FUNCTION = "softmax_vectorized";
  ladder::require_rows(FUNCTION, "input", input);
  ladder::require_rows(FUNCTION, "output", output);
  ladder::require_same_sizes(FUNCTION, "output", output, "input", input);
  ladder::require_no_partial_overlap(FUNCTION, "output", output, "input", input);
  if (!input.empty()) ladder::require_range(FUNCTION, "n_cols", input.sizes[1], 1, MAX_BLOCK_SIZE);
}

/// True when each row starts at a multiple of 16 bytes.
template <class T>
bool rows_are_aligned(const ladder::Matrix<T>& view) {
  const bool first = reinterpret_cast<std::uintptr_t>(view.data) % ladder::ACCESS_BYTES == 0;
  return first && (view.sizes[0] == 1 || view.strides[0] % ladder::WHOLE_ACCESS<T> == 0);
}

/// Launches the kernel for a row's width, with accesses of COLUMNS elements. There must be a row and a column.
template <int COLUMNS, class T>
void launch_vectorized(ladder::Matrix<const T> input, ladder::Matrix<T> output, cudaStream_t stream) {
  const int64_t n_rows = input.sizes[0], n_cols = input.sizes[1];
  ladder::dispatch_block_size<MAX_BLOCK_SIZE>(
      "softmax_vectorized", ladder::next_power_of_2(n_cols), [&](auto block_size) {
        constexpr int THREADS = vectorized_threads_for<T>(block_size()), ROWS = vectorized_rows_for(THREADS);
        ladder::launch(softmax_vectorized_kernel<block_size(), THREADS, COLUMNS, T>,
                       ladder::grid_of("softmax_vectorized", ladder::cdiv(n_rows, ROWS)), dim3(THREADS * ROWS), 0,
                       stream, output.data, input.data, input.strides[0], output.strides[0], n_rows, n_cols);
      });
}

/// True when all of both matrices can be moved by accesses of 16 bytes.
template <class T>
bool takes_whole_accesses(const ladder::Matrix<const T>& input, const ladder::Matrix<T>& output) {
  return input.sizes[1] % ladder::WHOLE_ACCESS<T> == 0 && rows_are_aligned(input) && rows_are_aligned(output);
}

/// The contract of softmax(); the results may differ by rounding, since the sum is formed in another order. Where rows
/// start off 16-byte alignment, or their width is no multiple of 4, it leaves them to softmax.
inline void softmax_vectorized(ladder::Matrix<const float> input, ladder::Matrix<float> output,
                               cudaStream_t stream = nullptr) {
  require_vectorized(input, output);
  if (input.empty()) return;
  if (!takes_whole_accesses(input, output)) {
    ladder::grid_of("softmax_vectorized", input.sizes[0]);  // all that softmax could still refuse, by this name
    return softmax(input, output, stream);
  }
  launch_vectorized<ladder::WHOLE_ACCESS<float>>(input, output, stream);
}

/// The same for bf16: read as bf16, computed in fp32 throughout, each result rounded once to bf16. Where rows start off
/// 16-byte alignment, or their width is no multiple of 8, it moves one column by an access.
/// Moves 4 n_rows n_cols bytes: 2 read and 2 written for each element.
inline void softmax_vectorized(ladder::Matrix<const __nv_bfloat16> input, ladder::Matrix<__nv_bfloat16> output,
                               cudaStream_t stream = nullptr) {
  require_vectorized(input, output);
  if (input.empty()) return;
  if (takes_whole_accesses(input, output))
    launch_vectorized<ladder::WHOLE_ACCESS<__nv_bfloat16>>(input, output, stream);
  else
    launch_vectorized<1>(input, output, stream);
}

}  // namespace step04
