// Shuffles and votes against tables that the test makes from CUDA's definition (CUDA C++ Programming Guide, "Warp
// Shuffle Functions"; PTX, "shfl.sync"), not from the device's code.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "tests/cpu_device/expect_fault.hpp"

namespace {

enum Kind { INDEX, UP, DOWN, XOR };

// The lane that `lane` receives from. PTX: the sub-warp of `width` lanes runs from first to last; a source outside the
// allowed side gives the lane its own value. The operand counts modulo 32.
int source_lane(Kind kind, int lane, int operand, int width) {
  const int first = lane / width * width, last = first + width - 1;
  const int distance = ((operand % 32) + 32) % 32;
  switch (kind) {
    case INDEX:
      return first + distance % width;
    case UP:
      return lane - distance >= first ? lane - distance : lane;
    case DOWN:
      return lane + distance <= last ? lane + distance : lane;
    case XOR:
      return (lane ^ distance) <= last ? lane ^ distance : lane;
  }
  return -1;
}

template <class T>
__global__ void shuffle_all(const T* values, T* out, Kind kind, int operand, int width) {
  const unsigned thread = threadIdx.x;
  const T value = values[thread];
  T received = value;
  if (kind == INDEX) received = __shfl_sync(0xffffffffu, value, operand, width);
  if (kind == UP) received = __shfl_up_sync(0xffffffffu, value, static_cast<unsigned>(operand), width);
  if (kind == DOWN) received = __shfl_down_sync(0xffffffffu, value, static_cast<unsigned>(operand), width);
  if (kind == XOR) received = __shfl_xor_sync(0xffffffffu, value, operand, width);
  out[thread] = received;
}

template <class T>
void check_shuffles() {
  std::vector<T> values;
  for (int i = 0; i < 64; ++i) values.push_back(static_cast<T>(i * 1.25 + 3) * static_cast<T>(i % 2 ? 1 : 1'000'003));
  const Buffer<T> input("input", values), out("out", 64);
  for (Kind kind : {INDEX, UP, DOWN, XOR})
    for (int width : {1, 2, 4, 8, 16, 32})
      for (int operand : {0, 1, 2, 3, 5, 7, 8, 15, 16, 17, 30, 31, 32, 33, 40, 63, -1, -2, -31, -32, -33}) {
        if (operand < 0 && (kind == UP || kind == DOWN)) continue;  // their delta is unsigned
        launch(shuffle_all<T>, dim3(1), dim3(64), 0, nullptr, input.data(), out.data(), kind, operand, width);
        const std::vector<T> received = out.download();
        int wrong = 0;
        for (int i = 0; i < 64; ++i)
          wrong += received[static_cast<std::size_t>(i)] !=
                   values[static_cast<std::size_t>(i / 32 * 32 + source_lane(kind, i % 32, operand, width))];
        CAPTURE(kind);
        CAPTURE(width);
        CAPTURE(operand);
        CHECK(wrong == exactly(0));
      }
}

}  // namespace

TEST_CASE("all four shuffles, every width, sources in and out of the segment: int") { check_shuffles<int>(); }
TEST_CASE("all four shuffles: unsigned") { check_shuffles<unsigned>(); }
TEST_CASE("all four shuffles: float") { check_shuffles<float>(); }
TEST_CASE("all four shuffles: double") { check_shuffles<double>(); }
TEST_CASE("all four shuffles: long long") { check_shuffles<long long>(); }

namespace {

__global__ void literal_answers(int* down, int* minus_one, int* thirty_three, int* segment, int* exchanged,
                                int* broadcast) {
  const int i = static_cast<int>(threadIdx.x), lane = i % warpSize;
  down[i] = __shfl_down_sync(0xffffffffu, i, 16);
  minus_one[i] = __shfl_sync(0xffffffffu, lane, -1);
  thirty_three[i] = __shfl_sync(0xffffffffu, lane, 33, 32);
  segment[i] = __shfl_sync(0xffffffffu, lane, lane + 4, 8);
  exchanged[i] = __shfl_xor_sync(0xffffffffu, lane, 8, 8);
  int value = 0;
  if (lane == 0) value = 1234;
  broadcast[i] = __shfl_sync(0xffffffffu, value, 0);
}

}  // namespace

TEST_CASE("BC-092, BC-093, BC-094, BC-096: answers written down by hand") {
  const Buffer<int> down("down", 256), minus_one("minus_one", 256), thirty_three("thirty_three", 256),
      segment("segment", 256), exchanged("exchanged", 256), broadcast("broadcast", 256);
  launch(literal_answers, dim3(1), dim3(256), 0, nullptr, down.data(), minus_one.data(), thirty_three.data(),
         segment.data(), exchanged.data(), broadcast.data());
  for (int i = 0; i < 256; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const int lane = i % 32;
    REQUIRE(down.download()[at] == exactly(lane < 16 ? i + 16 : i));
    REQUIRE(minus_one.download()[at] == exactly(31));
    REQUIRE(thirty_three.download()[at] == exactly(1));
    REQUIRE(segment.download()[at] == exactly((lane & ~7) + (lane + 4) % 8));
    REQUIRE(exchanged.download()[at] == exactly(lane & 8 ? lane - 8 : lane));
    REQUIRE(broadcast.download()[at] == exactly(1234));
  }
}

namespace {

// Two halves of a warp, in two branches, each with its own mask.
__global__ void halves(int* out) {
  const int lane = static_cast<int>(threadIdx.x);
  if (lane < 16) {
    __syncwarp(0x0000ffffu);
    out[lane] = __shfl_xor_sync(0x0000ffffu, lane, 1);
  } else {
    out[lane] =
        __shfl_down_sync(0xffff0000u, lane * 10, 1) + static_cast<int>(__ballot_sync(0xffff0000u, lane > 20) >> 16);
  }
}

__global__ void whole_block(int* sums, unsigned* ballots) {  // the last warp may be partial
  int value = static_cast<int>(threadIdx.x);
  ballots[threadIdx.x] = __ballot_sync(0xffffffffu, 1);
  sums[threadIdx.x] = __shfl_sync(0xffffffffu, value, 0);
}

__global__ void lanes_return(unsigned* ballots, int* votes) {
  const unsigned lane = threadIdx.x;
  if (lane >= 20) return;
  ballots[lane] = __ballot_sync(0xffffffffu, lane % 2 == 0);
  votes[lane] = __all_sync(0xffffffffu, 1) + 2 * __any_sync(0xffffffffu, lane == 19) + 4 * __any_sync(0xffffffffu, 0);
}

__global__ void reads_lane_25(float* out, int lanes, unsigned mask) {
  const int lane = static_cast<int>(threadIdx.x);
  if (lane >= lanes) return;
  __syncwarp(mask);
  out[lane] = __shfl_sync(mask, 1.0f, 25);
}
constexpr int LANE_25 = __LINE__ - 2;

// The maximum of each warp, as warp_reduce forms it: every lane must be there.
__global__ void maximum(float* out) {
  float value = -200.0f - static_cast<float>(threadIdx.x);
  for (int distance = 16; distance > 0; distance /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, distance));
  out[threadIdx.x] = value;
}
constexpr int MAXIMUM = __LINE__ - 3;

__global__ void shuffle_of_width(int* out, Kind kind, int operand, int width) {
  int received = 0;
  if (kind == INDEX) received = __shfl_sync(0xffffffffu, 1, operand, width);
  if (kind == UP) received = __shfl_up_sync(0xffffffffu, 1, static_cast<unsigned>(operand), width);
  if (kind == DOWN) received = __shfl_down_sync(0xffffffffu, 1, static_cast<unsigned>(operand), width);
  if (kind == XOR) received = __shfl_xor_sync(0xffffffffu, 1, operand, width);
  out[threadIdx.x] = received;
}

std::string at(int line) { return ", at tests/cpu_device/warp_test.cu:" + std::to_string(line); }

__global__ void votes(unsigned* out, unsigned mask) {
  const unsigned lane = threadIdx.x;
  if ((mask >> lane & 1) == 0) return;
  const unsigned ballot = __ballot_sync(mask, lane % 3 == 0);
  const int any = __any_sync(mask, lane == 4), all = __all_sync(mask, lane != 4), no = __any_sync(mask, 0);
  out[lane] = ballot ^ (static_cast<unsigned>(any + 2 * all + 4 * no) << 29);
}

__global__ void ordered_by_syncwarp(int* out) {
  __shared__ int s[64];
  const int i = static_cast<int>(threadIdx.x);
  s[i] = i;
  __syncwarp();
  const int neighbour = s[i ^ 1];
  __syncwarp();
  s[i] = -neighbour;
  __syncwarp();
  out[i] = s[i ^ 3];
}

}  // namespace

TEST_CASE("two masks at once, in two branches") {
  const Buffer<int> out("out", 32);
  launch(halves, dim3(1), dim3(32), 0, nullptr, out.data());
  const std::vector<int> values = out.download();
  for (int lane = 0; lane < 32; ++lane) {
    const int expected = lane < 16 ? lane ^ 1 : (lane == 31 ? 310 : lane * 10 + 10) + 0xffe0;
    CHECK(values[static_cast<std::size_t>(lane)] == exactly(expected));
  }
}

TEST_CASE("BC-100: a warp has 32 lanes; the last one of a block may have fewer") {
  for (unsigned threads : {1u, 31u, 32u, 33u, 40u, 64u, 1000u}) {
    const Buffer<int> sums("sums", threads);
    const Buffer<unsigned> ballots("ballots", threads);
    launch(whole_block, dim3(1), dim3(threads), 0, nullptr, sums.data(), ballots.data());
    for (unsigned i = 0; i < threads; ++i) {
      const unsigned lanes = std::min(32u, threads - i / 32 * 32);
      REQUIRE(ballots.download()[i] == exactly(lanes == 32 ? 0xffffffffu : (1u << lanes) - 1));
      REQUIRE(sums.download()[i] == exactly(static_cast<int>(i / 32 * 32)));
    }
  }
  CHECK(warpSize == 32);
}

TEST_CASE("lanes that have returned: nobody waits for them, and they have no vote") {
  const Buffer<unsigned> ballots("ballots", 32);
  const Buffer<int> result("votes", 32);
  launch(lanes_return, dim3(1), dim3(32), 0, nullptr, ballots.data(), result.data());
  for (std::size_t lane = 0; lane < 20; ++lane) {
    CHECK(ballots.download()[lane] == exactly(0x00055555u));
    CHECK(result.download()[lane] == exactly(3));
  }
}

TEST_CASE("a value that a lane never gave is a report, for each reason why it is not there") {
  const Buffer<float> out("out", 64);
  const auto run = [&](unsigned threads, int lanes, unsigned mask) {
    launch(reads_lane_25, dim3(1), dim3(threads), 0, nullptr, out.data(), lanes, mask);
  };
  const std::string what = "__shfl_sync: lane 0 receives from lane 25, which takes no part: ";
  const std::string where = "\n  in kernel (anonymous namespace)::reads_lane_25, block 0, thread 0" + at(LANE_25);
  CHECK_FAULT(run(32, 20, 0xffffffffu), what + "it has returned from the kernel" + where);
  CHECK_FAULT(run(20, 32, 0xffffffffu), what + "the block has no such lane" + where);
  CHECK_FAULT(run(32, 16, 0x0000ffffu), what + "it is not in the mask 0x0000ffff" + where);
  run(26, 26, 0xffffffffu);  // lane 25 is there, and lanes that are not give nothing that another receives
  CHECK(out.download()[0] == exactly(1.0f));
}

TEST_CASE("a maximum over a warp of one lane: the NaN that fmaxf would have dropped is a report") {
  const Buffer<float> out("out", 64);
  CHECK_FAULT(launch(maximum, dim3(1), dim3(33), 0, nullptr, out.data()),
              "__shfl_xor_sync: lane 0 receives from lane 16, which takes no part: the block has no such lane\n  in "
              "kernel (anonymous namespace)::maximum, block 0, thread 32" +
                  at(MAXIMUM));
  launch(maximum, dim3(1), dim3(64), 0, nullptr, out.data());
  CHECK(out.download()[63] == exactly(-232.0f));
}

TEST_CASE("a shuffle's width is a power of two up to 32; another is a report, and reads nothing") {
  const Buffer<int> out("out", 32);
  const char* const names[] = {"__shfl_sync", "__shfl_up_sync", "__shfl_down_sync", "__shfl_xor_sync"};
  for (Kind kind : {INDEX, UP, DOWN, XOR})
    for (int width : {0, -1, 3, 5, 6, 31, 33, 64, 1 << 30, -32})
      for (int operand : {0, 1, 31, 40, 1000}) {
        CAPTURE(kind);
        CAPTURE(width);
        const std::string report = message_of<KernelFault>(
            [&] { launch(shuffle_of_width, dim3(1), dim3(32), 0, nullptr, out.data(), kind, operand, width); });
        CHECK(contains(report, std::string(names[kind]) + ": width is " + std::to_string(width) +
                                   ", must be a power of two from 1 to 32\n  in kernel (anonymous "
                                   "namespace)::shuffle_of_width, block 0, thread 0"));
      }
  CHECK(healthy());
}

TEST_CASE("votes of a part of the warp") {
  for (unsigned mask : {0xffffffffu, 0x0000ffffu, 0xffff0000u, 0x00000010u, 0x80000001u, 0x55555555u, 0xaaaaaaaau}) {
    CAPTURE(mask);
    const Buffer<unsigned> out("out", 32);
    launch(votes, dim3(1), dim3(32), 0, nullptr, out.data(), mask);
    unsigned ballot = 0;
    for (unsigned lane = 0; lane < 32; lane += 3) ballot |= 1u << lane;
    const unsigned four = mask >> 4 & 1;  // lane 4 takes part
    const unsigned expected = (ballot & mask) ^ ((four ? 1u : 2u) << 29);
    for (unsigned lane = 0; lane < 32; ++lane)
      if (mask >> lane & 1) CHECK(out.download()[lane] == exactly(expected));
  }
}

TEST_CASE("__syncwarp orders a warp's shared memory") {
  const Buffer<int> out("out", 64);
  launch(ordered_by_syncwarp, dim3(1), dim3(64), 0, nullptr, out.data());
  const std::vector<int> values = out.download();
  for (int i = 0; i < 64; ++i) CHECK(values[static_cast<std::size_t>(i)] == exactly(-(i ^ 2)));
}
