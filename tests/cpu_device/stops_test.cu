// A kernel that stops itself: a failed assert and an exception are faults of a block and a thread, as all others are.
#undef NDEBUG
#include <cassert>
#include <stdexcept>

#include "tests/cpu_device/expect_fault.hpp"

namespace {

std::string at(int line) { return ", at tests/cpu_device/stops_test.cu:" + std::to_string(line); }

__device__ bool chosen() { return blockIdx.x == 2 && threadIdx.x == 5; }
const dim3 GRID(40), BLOCK(128);

__global__ void asserts(int* out, int limit) {
  __syncthreads();
  assert(!chosen() || static_cast<int>(threadIdx.x) < limit);
  out[threadIdx.x] = 1;
}
constexpr int ASSERT = __LINE__ - 3;

struct Nothing {};

__global__ void throws(int* out, bool standard) {
  out[threadIdx.x] = 1;
  __syncthreads();
  if (chosen() && standard) throw std::runtime_error("too long");
  if (chosen()) throw Nothing{};
}

}  // namespace

TEST_CASE("a failed assert in a kernel") {
  const Buffer<int> out("out", 128);
  CHECK_FAULT(launch(asserts, GRID, BLOCK, 0, nullptr, out.data(), 5),
              "assertion failed: !chosen() || static_cast<int>(threadIdx.x) < limit\n  in kernel (anonymous "
              "namespace)::asserts, block 2, thread 5" +
                  at(ASSERT));
  launch(asserts, GRID, BLOCK, 0, nullptr, out.data(), 6);
  CHECK(out.download()[5] == exactly(1));
}

TEST_CASE("an exception that leaves a kernel") {
  const Buffer<int> out("out", 128);
  const auto report = [&](bool standard) {
    return message_of<KernelFault>([&] { launch(throws, GRID, BLOCK, 0, nullptr, out.data(), standard); });
  };
  for (int i = 0; i < 20; ++i) {  // what was thrown is let go, and the next launch is as good as ever
    const std::string standard = report(true);
    CHECK(
        standard.starts_with("an exception leaves the kernel: too long\n  in kernel (anonymous namespace)::throws, "));
    CHECK(standard.ends_with(", block 2, thread 5"));
    CHECK(healthy());
    CHECK(report(false).starts_with("an exception leaves the kernel: of a type that is no std::exception\n"));
    CHECK(std::uncaught_exceptions() == exactly(0));
    CHECK(healthy());
  }
}
