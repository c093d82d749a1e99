// What cost_bench.cpp times: the same work as a plain loop, and as a kernel with and without the access callbacks.
#pragma once

#include <cstdint>

struct CostKernels {
  void (*softmax)(const float* input, float* output, int64_t rows);  // (rows, 2000)
  void (*vector_add)(const float* x, const float* y, float* out, int64_t n);
};
extern const CostKernels WATCHED, BARE;

constexpr int64_t COST_SOFTMAX_COLUMNS = 2000;
