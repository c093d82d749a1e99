// Expectations that the tests of the CPU device share.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "common/cpu_device/control.hpp"
#include "common/harness/buffer.hpp"
#include "common/kernel/gpu.cuh"
#include "tests/expect.hpp"
#include "tests/main.hpp"

namespace {

using namespace ladder;

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

__global__ void write_indices(int* out, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  __syncthreads();
  const int from_next_lane = __shfl_sync(0xffffffffu, i, static_cast<int>(threadIdx.x) + 1);
  if (i < n) out[i] = from_next_lane;
}
/// True when a launch with a barrier, a shuffle, full and partial blocks does what it should: nothing is left of a
/// fault.
inline bool healthy() {
  constexpr int N = 16 * 1024 - 7;
  Buffer<int> out("healthy", N);
  launch(write_indices, dim3(16), dim3(1024), 0, nullptr, out.data(), N);
  const std::vector<int> values = out.download();
  for (int i = 0; i < N; ++i)
    if (values[static_cast<std::size_t>(i)] != (i & ~31) + ((i + 1) & 31)) return false;
  return true;
}

/// Other checks than usual while it lives, for a kernel that does on purpose what they report.
class WithChecks {
 public:
  explicit WithChecks(cpu_device::Checks checks) : before_(cpu_device::checks()) { cpu_device::set_checks(checks); }
  ~WithChecks() { cpu_device::set_checks(before_); }
  WithChecks(const WithChecks&) = delete;
  WithChecks& operator=(const WithChecks&) = delete;

 private:
  cpu_device::Checks before_;
};

}  // namespace

/// The kernel stops with exactly this report, and the next launch is right.
#define CHECK_FAULT(call, text)                                                 \
  do {                                                                          \
    CHECK(message_of<ladder::KernelFault>([&] { call; }) == std::string(text)); \
    CHECK(healthy());                                                           \
  } while (false)
