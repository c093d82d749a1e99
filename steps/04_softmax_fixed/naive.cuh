// WRONG ON PURPOSE: softmax as the formula has it, without subtracting the row's maximum, to show what that is for.
#pragma once

#include "steps/04_softmax_fixed/softmax.cuh"

namespace step04 {

/// WRONG: one block per row, and no maximum. exp(x) is infinite in fp32 above x = 88.7228, and infinity / infinity is
/// NaN. The sum can be infinite where no exp is, and each quotient is 0 then; where every exp is 0, it is 0 / 0, NaN.
template <int THREADS>
__global__ void __launch_bounds__(THREADS)
    softmax_naive_kernel(float* output,       // (n_rows, n_cols)
                         const float* input,  // (n_rows, n_cols)
                         int64_t input_row_stride, int64_t output_row_stride, int64_t n_cols) {
  const float* row_start = input + blockIdx.x * input_row_stride;
  float* output_row_start = output + blockIdx.x * output_row_stride;
  float denominator = 0.0f;
  for (int64_t col = threadIdx.x; col < n_cols; col += THREADS) denominator += expf(row_start[col]);
  denominator = ladder::block_reduce<THREADS>(denominator, ladder::Sum{});
  for (int64_t col = threadIdx.x; col < n_cols; col += THREADS)
    output_row_start[col] = expf(row_start[col]) / denominator;
}

/// The contract of softmax(), for any number of columns, as long as the exp of each column and their sum are finite and
/// the sum is not 0. Of other rows: [89, 0] gives [NaN, 0], [88.72, 88.72] zeros, and [-104, -104] NaN.
inline void softmax_naive(ladder::Matrix<const float> input, ladder::Matrix<float> output,
                          cudaStream_t stream = nullptr) {
  require_softmax("softmax_naive", input, output);
  if (input.empty()) return;
  constexpr int THREADS = 256;
  const dim3 grid = ladder::grid_of("softmax_naive", input.sizes[0]);
  ladder::launch(softmax_naive_kernel<THREADS>, grid, dim3(THREADS), 0, stream, output.data, input.data,
                 input.strides[0], output.strides[0], input.sizes[1]);
}

}  // namespace step04
