// The two kernels whose cost on the CPU device is watched. Each .cu file that includes this compiles a pair of its own:
// one with the access callbacks, one without.
#pragma once

#include "common/kernel/gpu.cuh"
#include "tests/cpu_device/cost.hpp"

namespace {

// out = x + y: no barrier, almost no work per thread. What it costs is entering a thread.
__global__ void cost_vector_add(const float* x, const float* y, float* out, int64_t n) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i] + y[i];
}

constexpr int COST_THREADS = 256;
constexpr int COST_COLUMNS = COST_SOFTMAX_COLUMNS;

// A tree over shared memory, the way it was written before there were shuffles: 10 barriers.
template <class Operation>
__device__ float cost_tree(float* partial,  // (COST_THREADS) in shared memory
                           float value, Operation operation) {
  const unsigned t = threadIdx.x;
  partial[t] = value;
  __syncthreads();
  for (unsigned half = COST_THREADS / 2; half > 0; half /= 2) {
    if (t < half) partial[t] = operation(partial[t], partial[t + half]);
    __syncthreads();
  }
  value = partial[0];
  __syncthreads();  // all have read it; partial may be used again
  return value;
}

// Softmax of one row per block, its reductions in shared memory: 20 barriers. The row is read three times.
__global__ void cost_softmax(const float* input, float* output) {  // (rows, COST_COLUMNS) both
  __shared__ float partial[COST_THREADS];
  const int64_t row_start = int64_t{blockIdx.x} * COST_COLUMNS;
  const float* row = input + row_start;
  float row_max = -INFINITY;
  for (int column = static_cast<int>(threadIdx.x); column < COST_COLUMNS; column += COST_THREADS)
    row_max = fmaxf(row_max, row[column]);
  row_max = cost_tree(partial, row_max, ladder::Max{});
  float denominator = 0;
  for (int column = static_cast<int>(threadIdx.x); column < COST_COLUMNS; column += COST_THREADS)
    denominator += expf(row[column] - row_max);
  denominator = cost_tree(partial, denominator, ladder::Sum{});
  for (int column = static_cast<int>(threadIdx.x); column < COST_COLUMNS; column += COST_THREADS)
    output[row_start + column] = expf(row[column] - row_max) / denominator;
}

constexpr CostKernels KERNELS_OF_THIS_FILE{[](const float* input, float* output, int64_t rows) {
                                             ladder::launch(cost_softmax, ladder::grid_of("cost_softmax", rows),
                                                            dim3(COST_THREADS), 0, nullptr, input, output);
                                           },
                                           [](const float* x, const float* y, float* out, int64_t n) {
                                             ladder::launch(cost_vector_add,
                                                            ladder::grid_of("cost_vector_add", ladder::cdiv(n, 256)),
                                                            dim3(256), 0, nullptr, x, y, out, n);
                                           }};

}  // namespace
