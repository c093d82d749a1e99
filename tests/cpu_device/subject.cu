// A program that process_test runs, once for each way to end that only a whole process can show.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "common/harness/buffer.hpp"
#include "common/harness/device.hpp"
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
  if (threadIdx.x == 5)
    __syncthreads();
  else
    __syncwarp();
}

__global__ void prints(float x) {
  __syncthreads();
  if (threadIdx.x == 3)
    std::printf("block %d, thread %d: %.2f %s\n", static_cast<int>(blockIdx.x), static_cast<int>(threadIdx.x),
                static_cast<double>(x), "from a kernel");
}

__global__ void returns_early() {
  if (threadIdx.x < 31) return;
  __syncthreads();
}

__global__ void count(int* out) { out[int64_t{blockIdx.x} * blockDim.x + threadIdx.x] = static_cast<int>(blockIdx.x); }

__global__ void aborts() {
  if (threadIdx.x == 7) std::abort();
}
__global__ void divides(int* out, int value, int by) {
  out[threadIdx.x] = value / (by + static_cast<int>(threadIdx.x));
}

// A right kernel that clears its shared array and copies `bytes` of `in` to `out`.
__global__ void copies(char* out, const char* in, std::size_t bytes) {
  __shared__ float sums[8];
  if (threadIdx.x == 0) std::memset(sums, 0, sizeof sums);
  __syncthreads();
  if (threadIdx.x != 3) return;
  std::memcpy(out, in, bytes);
  out[0] = static_cast<char>(1 + static_cast<int>(sums[3]));
}

// A launch that every worker takes part in; true when it was right.
bool launches_well() {
  constexpr int BLOCKS = 64, THREADS = 256;
  const Buffer<int> out("out", BLOCKS * THREADS);
  launch(count, dim3(BLOCKS), dim3(THREADS), 0, nullptr, out.data());
  const std::vector<int> values = out.download();
  for (int i = 0; i < BLOCKS * THREADS; ++i)
    if (values[static_cast<std::size_t>(i)] != i / THREADS) return false;
  return true;
}

// How a child ends that does this, and then exits as any program.
template <class Body>
int status_of_child(Body&& body) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) std::exit(body() ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

int main(int argc, char** argv) try {
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
  } else if (asked_for("fork")) {
    std::printf("the parent, before: %s\n", launches_well() ? "right" : "wrong");
    std::printf("a child that launches: %d\n", status_of_child(launches_well));
    std::printf("a child that does not: %d\n", status_of_child([] { return true; }));
    std::printf("a child of a child: %d\n",
                status_of_child([] { return launches_well() && status_of_child(launches_well) == 0; }));
    std::printf("the parent, after: %s\n", launches_well() ? "right" : "wrong");
  } else if (asked_for("copies") || asked_for("copy-too-much")) {
    const Buffer<char> in("in", std::vector<char>(100, 5)), out("out", 48);
    launch(copies, dim3(1), dim3(32), 0, nullptr, out.data(), in.data(),
           std::size_t{asked_for("copy-too-much") ? 49u : 48u});
    std::printf("%d %d\n", out.download()[0], out.download()[47]);
  } else if (asked_for("returned-threads")) {
    for (int i = 0; i < 3; ++i) launch(returns_early, dim3(100), dim3(64), 0, nullptr);
  } else if (asked_for("abort")) {
    launch(aborts, dim3(1), dim3(32), 0, nullptr);
  } else if (asked_for("division")) {
    const Buffer<int> out("out", 32);
    launch(divides, dim3(1), dim3(32), 0, nullptr, out.data(), 100, -5);
  } else if (asked_for("description")) {
    std::puts(device_description().c_str());
  } else {
    return 3;
  }
  std::puts("the end");
  return 0;
} catch (const std::exception& error) {
  std::printf("error: %s\n", error.what());
  return 2;
}
