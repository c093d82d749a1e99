// Counts signed overflow in kernels and launchers: the offset of a row that does not exist, formed and never used,
// harms nothing that the device could see, and is undefined all the same.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

/// How often a signed sum, difference, product or negation has overflowed in code that is compiled for it. It stays 0
/// on a GPU and in an unchecked build.
inline std::atomic<int64_t> signed_overflows{0};

/// True when the code that this is compiled with is counted.
inline bool counts_signed_overflows() {
  const int64_t before = signed_overflows;
  [[maybe_unused]] volatile int64_t largest = std::numeric_limits<int64_t>::max();
#ifdef LADDER_COUNTS_OVERFLOWS
  largest = largest + 1;
#endif
  return signed_overflows > before;
}
