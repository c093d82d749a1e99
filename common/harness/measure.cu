// The kernels behind measure.hpp: a copy, multiply-adds, and a search for cells that nobody wrote.
#include "common/harness/measure.hpp"
#include "common/kernel/gpu.cuh"

namespace ladder {
namespace {

constexpr int THREADS = 256;

__global__ void __launch_bounds__(THREADS) copy_kernel(const float4* from, float4* to) {
  const int64_t i = int64_t{blockIdx.x} * THREADS + threadIdx.x;
  to[i] = from[i];
}

// Chains of multiply-adds that do not wait for each other, and no memory: what the fp32 units can do.
constexpr int CHAINS = 16, STEPS = 4096;
__global__ void __launch_bounds__(THREADS) multiply_add_kernel(float* out, float factor) {
  float chain[CHAINS];
#pragma unroll
  for (int c = 0; c < CHAINS; ++c) chain[c] = static_cast<float>(threadIdx.x + c);
  for (int step = 0; step < STEPS; ++step) {
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) chain[c] = fmaf(chain[c], factor, 1.0f);
  }
  float sum = 0;
#pragma unroll
  for (int c = 0; c < CHAINS; ++c) sum += chain[c];
  out[int64_t{blockIdx.x} * THREADS + threadIdx.x] = sum;
}

constexpr int CELLS_PER_THREAD = 64;
__global__ void __launch_bounds__(THREADS)
    count_unwritten_kernel(const uint32_t* cells, int64_t n, unsigned* unwritten) {
  const int64_t block_start = int64_t{blockIdx.x} * THREADS * CELLS_PER_THREAD;
  unsigned found = 0;
  for (int item = 0; item < CELLS_PER_THREAD; ++item) {
    const int64_t i = block_start + item * THREADS + threadIdx.x;
    if (i < n && cells[i] == 0xffffffffu) ++found;
  }
  if (found > 0) atomicAdd(unwritten, found);
}

}  // namespace

Ceilings measure_ceilings(int calls) {
  Ceilings ceilings;
  const int64_t n = int64_t{1} << 28, blocks = 4096;
  const Buffer<float> from = normal_buffer("from", n, 1), to("to", n);
  const double moved = 2.0 * sizeof(float) * static_cast<double>(n);
  const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(float);
  ceilings.memcpy_bytes = moved / median_seconds(calls, [&] { copy_on_device(to.data(), from.data(), bytes); });
  ceilings.kernel_bytes = moved / median_seconds(calls, [&] {
                            launch(copy_kernel, grid_of("copy", n / 4 / THREADS), dim3(THREADS), 0, nullptr,
                                   reinterpret_cast<const float4*>(from.data()), reinterpret_cast<float4*>(to.data()));
                          });
  ceilings.operations =
      2.0 * CHAINS * STEPS * THREADS * static_cast<double>(blocks) / median_seconds(calls, [&] {
        launch(multiply_add_kernel, grid_of("multiply_add", blocks), dim3(THREADS), 0, nullptr, to.data(), 0.5f);
      });
  return ceilings;
}

int64_t count_unwritten(const Buffer<float>& buffer) {
  const Buffer<unsigned> unwritten("unwritten", std::vector<unsigned>{0});
  launch(count_unwritten_kernel, grid_of("count_unwritten", cdiv(buffer.size(), THREADS * CELLS_PER_THREAD)),
         dim3(THREADS), 0, nullptr, reinterpret_cast<const uint32_t*>(buffer.data()), buffer.size(), unwritten.data());
  device_synchronize();
  return unwritten.download()[0];
}

}  // namespace ladder
