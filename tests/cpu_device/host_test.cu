// The device and its host: many host threads, many buffers, no memory left.
#include <atomic>
#include <new>
#include <thread>

#include "common/cpu_device/control.hpp"
#include "tests/cpu_device/expect_fault.hpp"

namespace {

__global__ void add_one(int* x) {
  __syncthreads();
  x[blockIdx.x * blockDim.x + threadIdx.x] += 1;
}
__global__ void barrier_in_a_branch() {
  if (threadIdx.x == 0) __syncthreads();
}

}  // namespace

TEST_CASE("launches from several host threads; the faults of some do not disturb the others") {
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&wrong, t] {
      const Buffer<int> x("x", std::vector<int>(100 * 64));
      for (int i = 0; i < 30; ++i) {
        if (t % 2 == 0)
          launch(add_one, dim3(100), dim3(64), 0, nullptr, x.data());
        else
          wrong +=
              !contains(message_of<KernelFault>([] { launch(barrier_in_a_branch, dim3(100), dim3(64), 0, nullptr); }),
                        "portability: threads return before a barrier that others reach");
      }
      if (t % 2 == 0) wrong += x.download() != std::vector<int>(100 * 64, 30);
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(healthy());
}

TEST_CASE("thousands of buffers, made and destroyed, of many sizes; each begins as poison") {
  const WithChecks no_checks({.uninitialised = false, .races = false});  // the kernel reads the poison
  for (int round = 0; round < 3; ++round) {
    std::vector<Buffer<int>> buffers;
    for (int i = 0; i < 1000; ++i) buffers.emplace_back("buffer", 1 + i * 7 % 1000);
    launch(add_one, dim3(1), dim3(1), 0, nullptr, buffers[500].data());
    CHECK(buffers[500].data()[0] == 0);  // the poison is -1
    for (int i = 0; i < 1000; ++i) REQUIRE((i == 500 || buffers[static_cast<std::size_t>(i)].data()[0] == -1));
    for (const Buffer<int>& buffer : buffers) REQUIRE(buffer.guards_intact());
  }
  for (int i = 0; i < 5000; ++i) {
    const Buffer<int> one("one", 1);
    REQUIRE(one.data()[0] == -1);
  }
}

TEST_CASE("guards_intact sees what the host wrote behind the end") {
  const Buffer<int> x("x", 10);
  CHECK(x.guards_intact());
  if (device_description().find("unchecked") == std::string::npos) x.data()[10] = 1;  // AddressSanitizer would stop it
  CHECK(x.guards_intact() == !device_checks());
}

TEST_CASE("more memory than there is: std::bad_alloc, and the device goes on") {
  for (std::size_t bytes : {std::size_t{1} << 37, std::size_t{1} << 38, std::size_t{1} << 62, ~std::size_t{0}})
    CHECK_THROWS_AS(cpu_device::allocate(bytes, 1, "huge"), std::bad_alloc);
  CHECK(healthy());
}

TEST_CASE("a buffer without elements has an address of its own") {
  const Buffer<int> none("none", 0), other("other", 0);
  CHECK(none.data() != nullptr);
  CHECK(none.data() != other.data());
  CHECK(none.guards_intact());
}
