// Sizes of blocks and grids, at both ends of 64 bits.
#include <doctest/doctest.h>

#include <limits>

#include "common/kernel/gpu.cuh"
#include "tests/expect.hpp"

using namespace ladder;

static constexpr int64_t LARGEST = std::numeric_limits<int64_t>::max(), LOWEST = std::numeric_limits<int64_t>::min();

TEST_CASE("BC-004: the block count is exact where n + block - 1 overflows 32 or 64 bits") {
  CHECK(cdiv(2'147'483'393, 256) == exactly(8'388'608));
  CHECK(cdiv(std::numeric_limits<int>::max(), 256) == exactly(8'388'608));
  CHECK(cdiv((int64_t{1} << 31) + 5, 256) == exactly(8'388'609));
  CHECK(cdiv(LARGEST, 1) == exactly(LARGEST));
  CHECK(cdiv(LARGEST, 2) == exactly(int64_t{1} << 62));
  CHECK(cdiv(LARGEST, LARGEST) == exactly(1));
  CHECK(cdiv(LARGEST - 1, LARGEST) == exactly(1));
  CHECK(cdiv(0, 256) == exactly(0));
  CHECK(cdiv(1, 256) == exactly(1));
  CHECK(cdiv(256, 256) == exactly(1));
  CHECK(cdiv(257, 256) == exactly(2));
  static_assert(cdiv(1000, 256) == 4);
}

TEST_CASE("cdiv is the least number of blocks that cover n") {
  CHECK_PROPERTY([] {
    const auto n = *rc::gen::inRange<int64_t>(0, int64_t{1} << 40), block = *rc::gen::inRange<int64_t>(1, 5000);
    const int64_t blocks = cdiv(n, block);
    RC_ASSERT(blocks == exactly(n / block + (n % block != 0)));
    RC_ASSERT(blocks * block >= n);
    RC_ASSERT((blocks - 1) * block < n || blocks == 0);
  });
}

TEST_CASE("BC-027: next_power_of_2, from nothing to the largest") {
  for (int64_t n : {LOWEST, int64_t{-1}, int64_t{0}, int64_t{1}}) CHECK(next_power_of_2(n) == exactly(1));
  CHECK(next_power_of_2(2) == exactly(2));
  CHECK(next_power_of_2(3) == exactly(4));
  CHECK(next_power_of_2(1023) == exactly(1024));
  CHECK(next_power_of_2(1024) == exactly(1024));
  CHECK(next_power_of_2(1025) == exactly(2048));
  CHECK(next_power_of_2(2000) == exactly(2048));
  CHECK(next_power_of_2((int64_t{1} << 31) + 1) == exactly(int64_t{1} << 32));
  CHECK(next_power_of_2(int64_t{1} << 62) == exactly(int64_t{1} << 62));
  CHECK(next_power_of_2((int64_t{1} << 61) + 1) == exactly(int64_t{1} << 62));
  CHECK_REFUSED(next_power_of_2((int64_t{1} << 62) + 1),
                "next_power_of_2: n is 4611686018427387905, must be at most 2^62");
  CHECK_REFUSED(next_power_of_2(LARGEST), "next_power_of_2: n is 9223372036854775807, must be at most 2^62");
}

TEST_CASE("BC-004: a grid holds 1 to 2^31 - 1 blocks") {
  CHECK(grid_of("f", 1).x == 1);
  CHECK(grid_of("f", 2'147'483'647).x == 2'147'483'647u);
  CHECK(grid_of("f", 5).y == 1);
  CHECK(grid_of("f", 5).z == 1);
  CHECK_REFUSED(grid_of("f", 0), "f: the number of blocks is 0, must be at least 1");
  CHECK_REFUSED(grid_of("f", -1), "f: the number of blocks is -1, must be at least 1");
  CHECK_REFUSED(grid_of("f", int64_t{1} << 31), "f: the number of blocks is 2147483648, must be at most 2147483647");
  CHECK_REFUSED(grid_of("f", (int64_t{1} << 32) + 1),
                "f: the number of blocks is 4294967297, must be at most 2147483647");
}

TEST_CASE("every power of two up to the largest reaches the body, as itself, once") {
  for (int64_t power = 1; power <= 1024; power *= 2) {
    int64_t sum = 0;
    dispatch_block_size<1024>("f", power, [&](auto block_size) {
      static_assert(decltype(block_size)::value <= 1024);
      sum += block_size;
    });
    CHECK(sum == exactly(power));
  }
  int calls = 0;
  dispatch_block_size<1>("f", 1, [&](auto) { ++calls; });
  CHECK(calls == 1);
}

TEST_CASE("a size that is known when compiling reaches the body alone: no other kernel is compiled") {
  const int64_t BLOCK_SIZE = 64;
  int64_t sum = 0;
  dispatch_block_size<1024>(
      "f", [&] { return BLOCK_SIZE; },
      [&](auto block_size) {
        static_assert(block_size() == 64);
        sum += block_size;
      });
  CHECK(sum == exactly(64));
  int64_t size = 128;  // this one is not
  dispatch_block_size<1024>(
      "f", [&] { return size; }, [&](auto block_size) { sum += block_size; });
  CHECK(sum == exactly(192));
  size = 100;
  CHECK_REFUSED(dispatch_block_size<1024>(
                    "f", [&] { return size; }, [&](auto) { sum = 0; }),
                "f: BLOCK_SIZE is 100, must be a power of two");
  CHECK(sum == exactly(192));
}

TEST_CASE("anything else is refused, and the body is not called") {
  int calls = 0;
  const auto dispatch = [&](int64_t size) { dispatch_block_size<1024>("softmax", size, [&](auto) { ++calls; }); };
  for (int64_t size : {int64_t{3}, int64_t{0}, int64_t{-1}, int64_t{-1024}, int64_t{1000}, int64_t{1025}, LARGEST,
                       LOWEST, (int64_t{1} << 32) + 1024})
    CHECK_REFUSED(dispatch(size), "softmax: BLOCK_SIZE is " + std::to_string(size) + ", must be a power of two");
  for (int64_t size : {int64_t{2048}, int64_t{1} << 32, int64_t{1} << 62})
    CHECK_REFUSED(dispatch(size), "softmax: BLOCK_SIZE is " + std::to_string(size) + ", must be at most 1024");
  CHECK(calls == 0);
  CHECK_REFUSED(dispatch_block_size<1>("f", 2, [&](auto) { ++calls; }), "f: BLOCK_SIZE is 2, must be at most 1");
}
