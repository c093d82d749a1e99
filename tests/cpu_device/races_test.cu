// Races between threads of a block: each is reported in whatever order the threads ran; what a barrier orders is not.
#include <algorithm>

#include "tests/cpu_device/expect_fault.hpp"

namespace {

const bool needs = needs_device_checks = true;

using cpu_device::Order;

std::string line(int number) { return "tests/cpu_device/races_test.cu:" + std::to_string(number); }

// Every order must give the same answer: a race, or none.
template <class Body>
void in_each_order(Body&& body) {
  const auto run = [&](Order order, uint64_t seed) {
    cpu_device::set_order(order, seed);
    body();
    cpu_device::set_order(Order::forward);
  };
  for (Order order : {Order::forward, Order::reversed, Order::warp_reversed}) run(order, 0);
  for (uint64_t seed = 1; seed <= 20; ++seed) run(Order::random, seed);
}

using Kernel = void (*)(float* out);

std::string report_of(Kernel kernel, unsigned threads = 64, std::size_t shared_bytes = 1024) {
  const Buffer<float> out("out", std::vector<float>(1024));
  return message_of<KernelFault>([&] { launch(kernel, dim3(1), dim3(threads), shared_bytes, nullptr, out.data()); });
}
void check_race(Kernel kernel, const std::string& cell, unsigned threads = 64) {
  in_each_order([&] {
    const std::string report = report_of(kernel, threads);
    CHECK_MESSAGE(contains(report, "race on " + cell), report);
  });
}
void check_no_race(Kernel kernel, unsigned threads = 64) {
  in_each_order([&] {
    const std::string report = report_of(kernel, threads);
    CHECK_MESSAGE(report == "<nothing was thrown>", report);
  });
}

__device__ int thread() { return static_cast<int>(threadIdx.x); }

__global__ void no_barrier(float* out) {
  __shared__ float row[64];
  row[thread()] = 1.0f;
  out[thread()] = row[63 - thread()];
}
constexpr int NO_BARRIER_WRITE = __LINE__ - 3, NO_BARRIER_READ = __LINE__ - 2;
__global__ void with_barrier(float* out) {
  __shared__ float row[64];
  row[thread()] = 1.0f;
  __syncthreads();
  out[thread()] = row[63 - thread()];
}

// The second round overwrites what others may still read.
template <bool SECOND_BARRIER>
__global__ void two_rounds(float* out) {
  __shared__ float row[64];
  for (int round = 0; round < 2; ++round) {
    row[thread()] = static_cast<float>(round);
    __syncthreads();
    out[thread()] = row[63 - thread()];
    if (SECOND_BARRIER) __syncthreads();
  }
}

__global__ void same_cell(float* out) { out[7] = 1.0f; }
__global__ void neighbours(float* out) {
  if (thread() > 0) out[thread()] = out[thread() - 1];
}
__global__ void own_cell(float* out) {
  out[thread()] = 1.0f;
  out[thread()] += 1.0f;
}
__global__ void all_read(float* out) {
  const float first = out[0];
  __syncthreads();
  out[thread()] = first;
}
// Thread 40 writes what all others have read, with no barrier between.
__global__ void write_after_reads(float* out) {
  __shared__ float cell;
  if (thread() == 3) cell = 1.0f;
  __syncthreads();
  if (thread() != 40) out[thread()] = cell;
  if (thread() == 40) cell = 2.0f;
}

__global__ void dynamic_no_barrier(float* out) {
  float* row = dynamic_shared<float>();
  row[thread()] = 1.0f;
  out[thread()] = row[63 - thread()];
}

// Within one warp only __syncwarp orders, and only the lanes of its mask.
template <int WHICH>
__global__ void within_a_warp(float* out) {
  __shared__ float row[32];
  row[thread()] = 1.0f;
  if (WHICH == 1) __shfl_sync(0xffffffffu, 1.0f, 0);
  if (WHICH == 2) __ballot_sync(0xffffffffu, 1);
  if (WHICH == 3) __syncwarp();
  out[thread()] = row[31 - thread()];
}
template <bool OUTSIDE>
__global__ void part_of_a_warp(float* out) {
  __shared__ float row[32];
  row[thread()] = 1.0f;
  if (thread() < 16) __syncwarp(0x0000ffffu);
  if (thread() >= 16) __syncwarp(0xffff0000u);
  out[thread()] = row[OUTSIDE ? 31 - thread() : thread() / 16 * 16 + (thread() + 1) % 16];
}
// The same the other way round: readers first, then a writer that only some of them are ordered before.
template <int WRITER>
__global__ void write_after_part(float* out) {
  __shared__ float cell;
  if (thread() == 0) cell = 1.0f;
  __syncwarp();
  const float seen = thread() == 3 || thread() == 20 ? cell : 0.0f;
  if (thread() < 16) __syncwarp(0x0000ffffu);
  if (thread() >= 16) __syncwarp(0xffff0000u);
  __syncwarp(WRITER < 0 ? 0xffffffffu : 1u << thread());
  if (thread() == (WRITER < 0 ? 9 : WRITER)) cell = 2.0f;
  out[thread()] = seen;
}
// Order passes on: lane 0 to lane 8 by one mask, lane 8 to lane 16 by another.
template <bool SECOND>
__global__ void handed_on(float* out) {
  __shared__ float cell;
  if (thread() == 0) cell = 1.0f;
  if (thread() == 0 || thread() == 8) __syncwarp(1u << 0 | 1u << 8);
  if (SECOND && (thread() == 8 || thread() == 16)) __syncwarp(1u << 8 | 1u << 16);
  if (thread() == 16) out[0] = cell;
}
// Read, __syncwarp, read, write: the second reads have nothing between them and the write.
template <bool SECOND>
__global__ void read_again(float* out) {
  __shared__ float cell;
  if (thread() == 0) cell = 1.0f;
  __syncwarp();
  out[thread()] = cell;
  __syncwarp();
  out[thread()] += cell;
  if (SECOND) __syncwarp();
  if (thread() == 7) cell = 2.0f;
}
// __syncwarp does not order two warps.
__global__ void across_warps(float* out) {
  __shared__ float row[64];
  row[thread()] = 1.0f;
  __syncwarp();
  out[thread()] = row[63 - thread()];
}

__global__ void only_atomics(float* out) { atomicAdd(out, 1.0f); }
__global__ void atomic_and_read(float* out) {
  atomicAdd(out, 1.0f);
  if (thread() == 5) out[1] = out[0];
}
__global__ void atomic_barrier_read(float* out) {
  atomicAdd(out, 1.0f);
  __syncthreads();
  if (thread() == 5) out[1] = out[0];
}
__global__ void atomic_and_write(float* out) {
  if (thread() == 5)
    out[0] = 1.0f;
  else
    atomicAdd(out, 1.0f);
}

// Thread 0 prepares a counter, and all count on it.
template <bool BARRIER>
__global__ void clear_and_count(float* out) {
  if (thread() == 0) out[0] = 0.0f;
  if (BARRIER) __syncthreads();
  atomicAdd(out, 1.0f);
}

// What three threads do with one cell, the first of them twice.
enum Touch { NOTHING, READ, WRITE, ATOMIC };
struct Touches {
  Touch first, second, other, third;
};
__device__ void do_it(Touch touch, float* cell) {
  if (touch == READ) cell[1 + thread()] = *cell;
  if (touch == WRITE) *cell = 1.0f;
  if (touch == ATOMIC) atomicAdd(cell, 1.0f);
}
template <bool BARRIERS>
__global__ void three_threads(float* out, Touches touches, int other, int third) {
  const auto barrier = [] {
    if (BARRIERS) __syncthreads();
  };
  if (thread() == 3) do_it(touches.first, out);
  if (thread() == 3) do_it(touches.second, out);
  barrier();
  if (thread() == other) do_it(touches.other, out);
  barrier();
  if (thread() == third) do_it(touches.third, out);
}
bool race_between(Touch one, Touch two) { return one != NOTHING && two != NOTHING && !(one == two && one != WRITE); }
bool race_among(const Touches& touches) {
  return race_between(touches.first, touches.other) || race_between(touches.second, touches.other) ||
         race_between(touches.first, touches.third) || race_between(touches.second, touches.third) ||
         race_between(touches.other, touches.third);
}

// Lane 0 writes; the lanes of the mask then wait for each other before all of them count.
__global__ void clear_and_count_in_a_warp(float* out, unsigned mask) {
  if (thread() == 0) out[0] = 0.0f;
  if (mask >> thread() & 1) __syncwarp(mask);
  atomicAdd(out, 1.0f);
}

// Bytes beside each other in one word are cells of their own.
__global__ void bytes(float* out) {
  __shared__ unsigned char row[64];
  row[thread()] = 1;
  out[thread()] = row[thread()];
}
template <bool BARRIER>
__global__ void bytes_then_word(float* out) {
  alignas(4) __shared__ unsigned char row[64];
  row[thread()] = 1;
  if (BARRIER) __syncthreads();
  if (thread() == 0) out[0] = *reinterpret_cast<const float*>(row + 60);
}
template <bool BARRIER>
__global__ void word_then_byte(float*) {
  float* row = dynamic_shared<float>();
  if (thread() < 16) row[thread()] = 0.0f;
  if (BARRIER) __syncthreads();
  if (thread() == 40) reinterpret_cast<unsigned char*>(row)[21] = 1;
}
template <bool BARRIER>
__global__ void wide(float* out) {
  __shared__ float4 row[16];
  if (thread() < 16) row[thread()] = make_float4(1, 2, 3, 4);
  if (BARRIER) __syncthreads();
  out[thread()] = reinterpret_cast<const float*>(row)[63 - thread()];
}

}  // namespace

TEST_CASE("a missing barrier, on shared arrays, dynamic shared memory and buffers") {
  check_race(no_barrier, "shared array 'row'");
  check_no_race(with_barrier);
  check_race(dynamic_no_barrier, "dynamic shared memory");
  check_race(two_rounds<false>, "shared array 'row'");
  check_no_race(two_rounds<true>);
  check_race(same_cell, "buffer 'out', index 7");
  check_race(neighbours, "buffer 'out'");
  check_no_race(own_cell);
  check_no_race(all_read);
  check_race(write_after_reads, "shared array 'cell'");
}

TEST_CASE("both threads, both lines, kernel and element") {
  CHECK(report_of(no_barrier) ==
        "race on shared array 'row', index 32 (elements of 4 bytes): this thread writes it, and no barrier orders that "
        "with thread 31, which reads it at " +
            line(NO_BARRIER_READ) + "\n  in kernel (anonymous namespace)::no_barrier, block 0, thread 32, at " +
            line(NO_BARRIER_WRITE));
  CHECK(healthy());
}

TEST_CASE("__syncwarp orders the lanes of its mask, shuffles and votes nothing") {
  check_race(within_a_warp<0>, "shared array 'row'", 32);
  check_race(within_a_warp<1>, "shared array 'row'", 32);
  check_race(within_a_warp<2>, "shared array 'row'", 32);
  check_no_race(within_a_warp<3>, 32);
  check_race(part_of_a_warp<true>, "shared array 'row'", 32);
  check_no_race(part_of_a_warp<false>, 32);
  check_race(write_after_part<9>, "shared array 'cell'", 32);   // lane 20 has read
  check_race(write_after_part<25>, "shared array 'cell'", 32);  // lane 3 has read
  check_no_race(write_after_part<-1>, 32);
  check_no_race(handed_on<true>, 32);
  check_race(handed_on<false>, "shared array 'cell'", 32);
  check_no_race(read_again<true>, 32);
  check_race(read_again<false>, "shared array 'cell'", 32);
  check_race(across_warps, "shared array 'row'", 64);
}

TEST_CASE("atomics do not race with each other, and do with everything else") {
  check_no_race(only_atomics);
  check_race(atomic_and_read, "buffer 'out', index 0");
  check_no_race(atomic_barrier_read);
  check_race(atomic_and_write, "buffer 'out', index 0");
}

TEST_CASE("a counter that one thread clears and all count on, without a barrier between") {
  check_race(clear_and_count<false>, "buffer 'out', index 0");
  check_no_race(clear_and_count<true>);
  const Buffer<float> out("out", std::vector<float>(1));
  const auto report = [&](unsigned mask) {
    return message_of<KernelFault>(
        [&] { launch(clear_and_count_in_a_warp, dim3(1), dim3(32), 0, nullptr, out.data(), mask); });
  };
  in_each_order([&] {
    CHECK(report(0xffffffffu) == "<nothing was thrown>");
    CHECK(contains(report(0xffffffffu & ~(1u << 20)), "race on buffer 'out', index 0"));  // lane 20 did not wait
    CHECK(contains(report(0xfffffffeu), "race on buffer 'out', index 0"));                // lane 0 did not
  });
}

TEST_CASE("plain and atomic accesses of one thread and of others: all 256 cases, within a warp and across warps") {
  const Buffer<float> out("out", std::vector<float>(1 + 128));
  int64_t wrong = 0, races = 0;
  struct Threads {
    int other, third;
  };
  for (const Threads threads : {Threads{5, 7}, {40, 7}, {5, 40}, {40, 41}, {40, 100}})
    for (int number = 0; number < 256; ++number) {
      const Touches touches{Touch(number % 4), Touch(number / 4 % 4), Touch(number / 16 % 4), Touch(number / 64)};
      const auto expect = [&](auto kernel, const std::string& expected) {
        const std::string report = message_of<KernelFault>(
            [&] { launch(kernel, dim3(1), dim3(128), 0, nullptr, out.data(), touches, threads.other, threads.third); });
        if (report.starts_with(expected)) return;
        ++wrong;
        MESSAGE(touches.first, " ", touches.second, " ", touches.other, " ", touches.third, ", threads ", threads.other,
                " ", threads.third, ": ", report);
      };
      const bool race = race_among(touches);
      races += race;
      in_each_order([&] { expect(three_threads<false>, race ? "race on buffer 'out', index 0 " : "<nothing was"); });
      expect(three_threads<true>, "<nothing was");
    }
  CHECK(wrong == 0);
  CHECK(races > 0);
}

TEST_CASE("cells of one byte, and accesses of several widths") {
  check_no_race(bytes);
  check_race(bytes_then_word<false>, "shared array 'row'");
  check_no_race(bytes_then_word<true>);
  check_race(word_then_byte<false>, "dynamic shared memory");
  check_no_race(word_then_byte<true>);
  check_race(wide<false>, "shared array 'row'");
  check_no_race(wide<true>);
}

TEST_CASE("threads of different blocks are not compared, nor are launches") {
  const Buffer<float> out("out", std::vector<float>(64));
  for (int i = 0; i < 2; ++i) launch(same_cell, dim3(8), dim3(1), 0, nullptr, out.data());
  CHECK(out.download()[7] == exactly(1.0f));
  for (int i = 0; i < 2; ++i) launch(own_cell, dim3(1), dim3(64), 0, nullptr, out.data());
  CHECK(out.download() == exactly(std::vector<float>(64, 2.0f)));
}

TEST_CASE("the check can be switched off") {
  const WithChecks off({.uninitialised = false, .races = false});
  const Buffer<float> out("out", 64);
  launch(no_barrier, dim3(1), dim3(64), 0, nullptr, out.data());
  const std::vector<float> values = out.download();
  CHECK(std::count(values.begin(), values.end(), 1.0f) == exactly(32));  // the others ran before their cell was written
}
