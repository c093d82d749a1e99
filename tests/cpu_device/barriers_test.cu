// Barriers and warp functions that not all threads reach: a report, and never a hang. Needs no checks of accesses.
#include "common/cpu_device/control.hpp"
#include "tests/cpu_device/expect_fault.hpp"

namespace {

std::string at(int line) { return " at tests/cpu_device/barriers_test.cu:" + std::to_string(line); }

// As the device is at first, but for races: a thread that has returned is not waited for.
constexpr cpu_device::Checks NO_PORTABILITY{.uninitialised = true, .races = true, .portability = false};

__global__ void barrier_in_a_branch() {
  if (threadIdx.x % 2 == 0) __syncthreads();
}
constexpr int BRANCH = __LINE__ - 2;

__global__ void return_before_barrier(int* out, int n) {
  const int i = static_cast<int>(threadIdx.x);
  if (i >= n) return;
  __syncthreads();
  out[i] = i;
}
constexpr int AFTER_RETURN = __LINE__ - 3;

__global__ void two_barriers() {
  if (threadIdx.x % 2 == 0) __syncthreads();
  __syncthreads();
}
constexpr int FIRST = __LINE__ - 3, SECOND = __LINE__ - 2;

__global__ void uneven_counts() {
  for (int i = 0; i < 4; ++i) {
    if (threadIdx.x == 0 && i == 2) continue;
    __syncthreads();
  }
}
constexpr int UNEVEN = __LINE__ - 3;

const std::string DEADLOCK = "barrier that not all threads reach: no thread of the block can go on\n    ";
const std::string PORTABILITY =
    "portability: threads return before a barrier that others reach; it waits for the others since sm_70, and before, "
    "this was undefined\n    ";

}  // namespace

TEST_CASE("a barrier in a branch") {
  CHECK_FAULT(launch(barrier_in_a_branch, dim3(3), dim3(64), 0, nullptr),
              PORTABILITY +
                  "32 threads have returned from the kernel: first 1, last 63\n    32 threads wait in __syncthreads" +
                  at(BRANCH) + ": first 0, last 62\n  in kernel (anonymous namespace)::barrier_in_a_branch, block 0");
}

TEST_CASE("BC-084: threads that return before a barrier are not waited for; the portability check reports them") {
  const Buffer<int> out("out", 64);
  const auto run = [&] { launch(return_before_barrier, dim3(1), dim3(64), 0, nullptr, out.data(), 33); };
  CHECK_FAULT(run(), PORTABILITY +
                         "31 threads have returned from the kernel: first 33, last 63\n    33 threads wait in "
                         "__syncthreads" +
                         at(AFTER_RETURN) +
                         ": first 0, last 32\n  in kernel (anonymous namespace)::return_before_barrier, block 0");
  const WithChecks other(NO_PORTABILITY);
  run();
  for (int i = 0; i < 33; ++i) CHECK(out.download()[static_cast<std::size_t>(i)] == i);
}

namespace {

// What threads have returned when the others meet changes from barrier to barrier; `s` shows that each was one.
__global__ void returns_in_turn(int* out, int first, int step) {
  __shared__ int s[256];
  const int i = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  int sum = 0;
  for (int round = 0; round < 6; ++round) {
    s[i] = i + round;
    __syncthreads();
    sum += s[first + (i + 1) % (threads - first)];  // of one that stays to the end
    __syncthreads();
    if (i < first && i % step == round % step) return;
  }
  out[i] = sum;
}

}  // namespace

TEST_CASE("threads return between barriers, in every order: those that stay meet all the same") {
  const WithChecks other(NO_PORTABILITY);
  for (const char* order : {"forward", "reversed", "warp-reversed", "random:1", "random:2"})
    for (const int threads : {33, 64, 96, 256})
      for (const int first : {1, 31, 32})
        for (const int step : {1, 2, 5}) {
          CAPTURE(order);
          CAPTURE(threads);
          CAPTURE(first);
          CAPTURE(step);
          cpu_device::set_order(order);
          const Buffer<int> out("out", 256);
          launch(returns_in_turn, dim3(1), dim3(static_cast<unsigned>(threads)), 0, nullptr, out.data(), first, step);
          const std::vector<int> values = out.download();
          for (int i = first; i < threads; ++i)
            CHECK(values[static_cast<std::size_t>(i)] == exactly(6 * (first + (i + 1) % (threads - first)) + 15));
        }
  cpu_device::set_order("forward");
}

namespace {

// Thread 5 never comes to the barrier: it waits for a lane that has gone there.
__global__ void barrier_and_shuffle(int* out) {
  if (threadIdx.x >= 40) return;
  if (threadIdx.x == 5)
    out[5] = __shfl_sync(0xffffffffu, 1, 0);
  else
    __syncthreads();
}

}  // namespace

TEST_CASE("a barrier that can never be met is reported whatever the rule for threads that have returned") {
  const Buffer<int> out("out", 64);
  const auto run = [&] { launch(barrier_and_shuffle, dim3(1), dim3(64), 0, nullptr, out.data()); };
  CHECK(contains(message_of<KernelFault>(run), DEADLOCK + "24 threads have returned from the kernel: first 40"));
  const WithChecks other(NO_PORTABILITY);
  CHECK(contains(message_of<KernelFault>(run), DEADLOCK + "24 threads have returned from the kernel: first 40"));
  CHECK(healthy());
}

TEST_CASE("BC-085: two barriers at two lines") {
  CHECK_FAULT(launch(two_barriers, dim3(2), dim3(32), 0, nullptr),
              "divergent barrier: thread 0 waits in __syncthreads" + at(FIRST) +
                  ", and this thread comes to another; all threads of a block must reach the same one\n  in kernel "
                  "(anonymous namespace)::two_barriers, block 0, thread 1," +
                  at(SECOND));
}

TEST_CASE("BC-086: one thread does three barriers, the others four") {
  CHECK_FAULT(launch(uneven_counts, dim3(1), dim3(96), 0, nullptr),
              PORTABILITY + "1 thread has returned from the kernel: 0\n    95 threads wait in __syncthreads" +
                  at(UNEVEN) + ": first 1, last 95\n  in kernel (anonymous namespace)::uneven_counts, block 0");
}

namespace {

// Half of the threads that are left return after each round.
__global__ void shrinking_block(int* out) {
  __shared__ int s[8];
  const int i = static_cast<int>(threadIdx.x);
  s[i] = i + 1;
  __syncthreads();
  for (int half = 4; half > 0; half /= 2) {
    if (i >= half) return;
    s[i] += s[i + half];
    __syncthreads();
  }
  out[blockIdx.x] = s[0];
}

}  // namespace

TEST_CASE("BC-087: half of the threads return at each round") {
  const Buffer<int> out("out", 50);
  const auto run = [&] { launch(shrinking_block, dim3(50), dim3(8), 0, nullptr, out.data()); };
  const std::string strict = message_of<KernelFault>(run);
  CHECK(contains(strict,
                 PORTABILITY + "4 threads have returned from the kernel: first 4, last 7\n    4 threads wait in"));
  CHECK(healthy());
  const WithChecks other(NO_PORTABILITY);
  run();
  CHECK(out.download() == std::vector<int>(50, 36));
}

namespace {

__global__ void half_mask(int* out) {
  const int i = static_cast<int>(threadIdx.x);
  out[i] = __shfl_sync(0x0000ffffu, i, 0);
}
constexpr int HALF = __LINE__ - 2;

__global__ void masks_differ() {
  if (threadIdx.x == 0)
    __syncwarp(0x0000ffffu);
  else
    __syncwarp();
}
constexpr int MASKS = __LINE__ - 2;

__global__ void functions_differ(int* out) {
  if (threadIdx.x % 2 == 0)
    out[threadIdx.x] = __any_sync(0xffffffffu, 1);
  else
    out[threadIdx.x] = __all_sync(0xffffffffu, 1);
}
constexpr int FUNCTIONS = __LINE__ - 2;

__global__ void missing_lane(int* out) {
  if (threadIdx.x != 7)
    out[threadIdx.x] = __shfl_xor_sync(0xffffffffu, 1, 1);
  else
    __syncthreads();
}
constexpr int SHUFFLE = __LINE__ - 4, BARRIER = __LINE__ - 2;

}  // namespace

TEST_CASE("BC-095: a lane that is not in its own mask") {
  const Buffer<int> out("out", 64);
  CHECK_FAULT(launch(half_mask, dim3(1), dim3(64), 0, nullptr, out.data()),
              "__shfl_sync: lane 16 calls it, but is not in its mask 0x0000ffff\n  in kernel (anonymous "
              "namespace)::half_mask, block 0, thread 16," +
                  at(HALF));
}

TEST_CASE("a divergent warp: lanes that wait for each other with two masks, or in two functions") {
  const Buffer<int> out("out", 32);
  CHECK_FAULT(
      launch(masks_differ, dim3(1), dim3(32), 0, nullptr),
      "divergent warp: lane 1 calls __syncwarp with mask 0xffffffff while lane 0 of its warp waits in __syncwarp "
      "with mask 0x0000ffff\n  in kernel (anonymous namespace)::masks_differ, block 0, thread 1," +
          at(MASKS));
  CHECK_FAULT(
      launch(functions_differ, dim3(1), dim3(32), 0, nullptr, out.data()),
      "divergent warp: lane 1 calls __all_sync with mask 0xffffffff while lane 0 of its warp waits in __any_sync "
      "with mask 0xffffffff\n  in kernel (anonymous namespace)::functions_differ, block 0, thread 1," +
          at(FUNCTIONS));
}

TEST_CASE("a lane that a shuffle waits for and that waits elsewhere: a report, not a hang") {
  const Buffer<int> out("out", 32);
  CHECK_FAULT(launch(missing_lane, dim3(1), dim3(32), 0, nullptr, out.data()),
              DEADLOCK + "31 threads wait in __shfl_xor_sync" + at(SHUFFLE) +
                  ": first 0, last 31\n    1 thread waits in "
                  "__syncthreads" +
                  at(BARRIER) + ": 7\n  in kernel (anonymous namespace)::missing_lane, block 0");
}

TEST_CASE("a fault ends one block after another, on all workers, many times over") {
  for (int i = 0; i < 50; ++i)
    REQUIRE(contains(message_of<KernelFault>([] { launch(barrier_in_a_branch, dim3(300), dim3(256), 0, nullptr); }),
                     "barrier_in_a_branch, block 0"));
  CHECK(healthy());
}
