// A program that process_test runs, once for each way to end that only a whole process can show.
#include <cstdio>
#include <cstring>

#include "common/harness/buffer.hpp"
#include "common/kernel/gpu.cuh"

namespace {

using namespace ladder;

__global__ void large_local_array(float* out) {
  volatile float array[64 * 1024];
  array[threadIdx.x] = 1.0f;
  __syncthreads();
  out[threadIdx.x] = array[threadIdx.x];
}

__device__ int64_t descend(volatile int64_t* depth, int64_t deepest) {
  volatile int64_t mine = *depth + 1;
  return mine > deepest ? 0 : descend(&mine, deepest) + mine;
}
__global__ void recursion(float* out, int64_t deepest) {
  int64_t depth = threadIdx.x;
  out[0] = static_cast<float>(descend(&depth, deepest));
}

__global__ void barrier_in_a_branch() {
  if (threadIdx.x == 5) __syncthreads();
}

__global__ void prints(float x) {
  __syncthreads();
  if (threadIdx.x == 3)
    std::printf("block %d, thread %d: %.2f %s\n", static_cast<int>(blockIdx.x), static_cast<int>(threadIdx.x),
                static_cast<double>(x), "from a kernel");
}

}  // namespace

int main(int argc, char** argv) {
  const auto asked_for = [&](const char* name) { return argc == 2 && std::strcmp(argv[1], name) == 0; };
  if (asked_for("array")) {
    const Buffer<float> out("out", 1024);
    launch(large_local_array, dim3(3), dim3(1024), 0, nullptr, out.data());
  } else if (asked_for("recursion")) {
    const Buffer<float> out("out", 1);
    launch(recursion, dim3(1), dim3(1), 0, nullptr, out.data(), int64_t{1} << 40);
  } else if (asked_for("faults")) {
    for (int i = 0; i < 20; ++i) try {
        launch(barrier_in_a_branch, dim3(200), dim3(100), static_cast<std::size_t>(i), nullptr);
      } catch (const KernelFault& fault) {
        if (i == 19) std::puts(fault.what());
      }
  } else if (asked_for("print")) {
    launch(prints, dim3(1), dim3(64), 0, nullptr, 2.5f);
  } else {
    return 3;
  }
  std::puts("the end");
  return 0;
}
