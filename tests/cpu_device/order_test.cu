// The orders in which threads and blocks take their turns, and what a kernel that depends on them gives.
#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <set>

#include "tests/cpu_device/expect_fault.hpp"

namespace {

using cpu_device::Order;

// The ticket that each thread drew: tickets[i] is the place of thread i in the order.
__global__ void draw(int* tickets, int* next) { tickets[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd(next, 1); }
// The same after a barrier.
__global__ void draw_after_barrier(int* tickets, int* next) {
  __syncthreads();
  tickets[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd(next, 1);
}
// The same after a shuffle.
__global__ void draw_after_shuffle(int* tickets, int* next) {
  __shfl_sync(0xffffffffu, 0, 0);
  tickets[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd(next, 1);
}

struct InOrder {
  explicit InOrder(Order order, uint64_t seed = 0) { cpu_device::set_order(order, seed); }
  ~InOrder() { cpu_device::set_order(Order::forward); }
};

using Kernel = void (*)(int*, int*);

// Few enough threads that one worker runs them all.
std::vector<int> tickets_of(Kernel kernel, int blocks, int threads) {
  const Buffer<int> tickets("tickets", blocks * threads), next("next", std::vector<int>(1));
  launch(kernel, dim3(static_cast<unsigned>(blocks)), dim3(static_cast<unsigned>(threads)), 0, nullptr, tickets.data(),
         next.data());
  return tickets.download();
}
std::vector<int> count_up(int n) {
  std::vector<int> numbers(static_cast<std::size_t>(n));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}
std::vector<int> count_down(int n) {
  std::vector<int> numbers = count_up(n);
  std::reverse(numbers.begin(), numbers.end());
  return numbers;
}

constexpr Kernel KERNELS[] = {draw, draw_after_barrier, draw_after_shuffle};

}  // namespace

TEST_CASE("forward: threads and blocks in the order of their numbers") {
  for (Kernel kernel : KERNELS) CHECK(tickets_of(kernel, 3, 96) == count_up(3 * 96));
}

TEST_CASE("reversed: the last block first, and in it the last thread") {
  const InOrder order(Order::reversed);
  for (Kernel kernel : KERNELS) CHECK(tickets_of(kernel, 3, 96) == count_down(3 * 96));
  CHECK(tickets_of(draw, 1, 1) == std::vector<int>{0});
}

TEST_CASE("warp-reversed: the last warp first, its lanes forward; also with a part of a warp") {
  const InOrder order(Order::warp_reversed);
  for (Kernel kernel : {draw, draw_after_barrier}) {
    const std::vector<int> tickets = tickets_of(kernel, 1, 80);  // 32 + 32 + 16
    for (int thread = 0; thread < 80; ++thread) {
      const int warp = thread / 32, before = warp == 2 ? 0 : warp == 1 ? 16 : 48;
      CHECK(tickets[static_cast<std::size_t>(thread)] == before + thread % 32);
    }
  }
}

TEST_CASE("random: every thread and block once, differently from seed to seed, the same for the same seed") {
  for (Kernel kernel : KERNELS) {
    std::set<std::vector<int>> seen;
    for (uint64_t seed = 0; seed < 20; ++seed) {
      const InOrder order(Order::random, seed);
      const std::vector<int> tickets = tickets_of(kernel, 5, 96);
      CHECK(tickets == tickets_of(kernel, 5, 96));
      std::vector<int> sorted = tickets;
      std::sort(sorted.begin(), sorted.end());
      REQUIRE(sorted == count_up(5 * 96));
      seen.insert(tickets);
    }
    CHECK(seen.size() == 20);
  }
}

TEST_CASE("random: on all workers a block's threads come in the same order") {
  std::vector<int> before;
  for (int run = 0; run < 3; ++run) {
    const InOrder order(Order::random, 3);
    // A counter for each block: the order of the blocks depends on the workers, that of a block's threads must not.
    constexpr int BLOCKS = 200, THREADS = 64;
    const Buffer<int> tickets("tickets", BLOCKS * THREADS), next("next", std::vector<int>(BLOCKS));
    launch(
        +[](int* t, int* n) { t[blockIdx.x * THREADS + threadIdx.x] = atomicAdd(n + blockIdx.x, 1); }, dim3(BLOCKS),
        dim3(THREADS), 0, nullptr, tickets.data(), next.data());
    if (run > 0) CHECK(tickets.download() == before);
    before = tickets.download();
  }
}

TEST_CASE("the words for an order") {
  const InOrder afterwards(Order::forward);
  cpu_device::set_order("reversed");
  CHECK(tickets_of(draw, 1, 32) == count_down(32));
  cpu_device::set_order("forward");
  CHECK(tickets_of(draw, 1, 32) == count_up(32));
  cpu_device::set_order("random:12");
  const std::vector<int> twelve = tickets_of(draw, 1, 32);
  cpu_device::set_order(Order::random, 12);
  CHECK(tickets_of(draw, 1, 32) == twelve);
  cpu_device::set_order("warp-reversed");
  CHECK(tickets_of(draw, 1, 33).back() == 0);
  for (const char* wrong : {"", "backward", "random", "random:", "random:x", "random:-1", "random:1 ", "Forward"})
    CHECK_REFUSED(cpu_device::set_order(wrong),
                  "the order is '" + std::string(wrong) + "', must be forward, reversed, warp-reversed or random:SEED");
}
