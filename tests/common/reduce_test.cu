// common/kernel/reduce.cuh: who holds the result, to which bit, and that calls may follow each other.
#include <doctest/doctest.h>

#include <cmath>

#include "common/harness/buffer.hpp"
#include "common/harness/inputs.hpp"
#include "common/kernel/gpu.cuh"
#include "tests/expect.hpp"

namespace {

using namespace ladder;

// A maximum and two sums with no barrier of the caller's between them, and what each thread holds after each.
template <int THREADS>
__global__ void reduce_kernel(const float* x,  // (blocks, THREADS)
                              float* out) {    // (3, blocks, THREADS)
  const int64_t i = int64_t{blockIdx.x} * THREADS + threadIdx.x;
  const int64_t n = int64_t{gridDim.x} * THREADS;
  out[i] = block_reduce<THREADS>(x[i], Max{});
  out[n + i] = block_reduce<THREADS>(x[i], Sum{});
  out[2 * n + i] = block_reduce<THREADS>(2 * x[i], Sum{});
}

template <int THREADS>
void check() {
  CAPTURE(THREADS);
  constexpr int64_t BLOCKS = 5, N = BLOCKS * THREADS;
  const std::vector<float> host_x = normal(N, THREADS, -20);  // negative, so that a maximum started at 0 shows
  const Buffer<float> x("x", host_x);
  Buffer<float> out("out", 3 * N);
  launch(reduce_kernel<THREADS>, dim3(BLOCKS), dim3(THREADS), 0, nullptr, x.data(), out.data());
  const std::vector<float> results = out.download();
  for (int64_t block = 0; block < BLOCKS; ++block) {
    float maximum = -INFINITY;
    double sum = 0;
    for (int64_t i = block * THREADS; i < (block + 1) * THREADS; ++i) {
      maximum = std::max(maximum, host_x[i]);
      sum += host_x[i];
    }
    bool all_equal = true;  // one report for a block, not one for each thread
    for (int64_t i = block * THREADS; i < (block + 1) * THREADS; ++i)
      all_equal = all_equal && results[i] == maximum && results[N + i] == results[N + block * THREADS] &&
                  results[2 * N + i] == 2 * results[N + i];
    CHECK(all_equal);
    CHECK(within(results[N + block * THREADS], sum, 1e-6 * std::abs(sum)));
  }
}

}  // namespace

TEST_CASE("block_reduce: every thread holds the block's maximum and sum, call after call") {
  check<32>();
  check<64>();
  check<96>();
  check<256>();
  check<992>();
  check<1024>();
}
