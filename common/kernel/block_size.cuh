// Sizes of blocks and grids, in 64 bits: a tensor's element count outgrows an int long before it outgrows a GPU.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "common/kernel/contract.hpp"
#include "common/kernel/device.cuh"

namespace ladder {

/// The number of blocks of `block` elements that cover `n` elements: n / block, rounded up.
/// Needs n >= 0 and block >= 1. It never forms n + block - 1, which would overflow near the top of the range.
__host__ __device__ constexpr int64_t cdiv(int64_t n, int64_t block) { return n / block + (n % block != 0); }

/// The smallest power of two that is at least n: 1 for n <= 1 (Triton's function of this name gives 0 for 0, an empty
/// block), 2048 for 2000. Throws InvalidArgument above 2^62, the largest power of two in an int64_t.
constexpr int64_t next_power_of_2(int64_t n) {
  constexpr int64_t LARGEST = int64_t{1} << 62;
  if (n > LARGEST) throw InvalidArgument("next_power_of_2: n is " + std::to_string(n) + ", must be at most 2^62");
  int64_t power = 1;
  while (power < n) power *= 2;
  return power;
}

/// A one-dimensional grid of `blocks`. Throws InvalidArgument when there are none, or more than the 2^31 - 1 that
/// grid.x takes.
inline dim3 grid_of(const char* function, int64_t blocks) {
  require_range(function, "the number of blocks", blocks, 1, 2147483647);
  return dim3(static_cast<unsigned>(blocks));
}

/// Turns a run-time power of two into a template argument: calls `body(std::integral_constant<int, BLOCK_SIZE>{})`.
/// Every power of two from 1 to LARGEST is compiled, so that a kernel's loops and arrays have constant sizes.
/// Anything else throws InvalidArgument: "<function>: BLOCK_SIZE is <value>, must be <limit>".
template <int LARGEST, class Body>
void dispatch_block_size(const char* function, int64_t BLOCK_SIZE, Body&& body) {
  static_assert(LARGEST >= 1 && (LARGEST & (LARGEST - 1)) == 0, "LARGEST must be a power of two");
  if (BLOCK_SIZE == LARGEST) return body(std::integral_constant<int, LARGEST>{});
  const bool power_of_2 = BLOCK_SIZE >= 1 && (BLOCK_SIZE & (BLOCK_SIZE - 1)) == 0;
  if (!power_of_2) refuse(function, "BLOCK_SIZE", std::to_string(BLOCK_SIZE), "a power of two");
  if (BLOCK_SIZE > LARGEST)
    refuse(function, "BLOCK_SIZE", std::to_string(BLOCK_SIZE), "at most " + std::to_string(LARGEST));
  if constexpr (LARGEST > 1) dispatch_block_size<LARGEST / 2>(function, BLOCK_SIZE, body);
}

/// The same for a size that `block_size()` gives. A lambda without captures needs nothing that only a run could tell:
/// it is called when compiling, and one kernel is compiled for it, not one for each power of two.
template <int LARGEST, class Size, class Body>
requires std::is_invocable_v<Size>
void dispatch_block_size(const char* function, Size block_size, Body&& body) {
  if constexpr (std::is_empty_v<Size>) {
    constexpr int64_t BLOCK_SIZE = block_size();
    static_assert(BLOCK_SIZE >= 1 && (BLOCK_SIZE & (BLOCK_SIZE - 1)) == 0, "BLOCK_SIZE must be a power of two");
    static_assert(BLOCK_SIZE <= LARGEST, "BLOCK_SIZE must be at most LARGEST");
    body(std::integral_constant<int, static_cast<int>(BLOCK_SIZE)>{});
  } else {
    dispatch_block_size<LARGEST>(function, block_size(), body);
  }
}

}  // namespace ladder
