// CUDA's math functions that the C++ library does not have. Where CUDA's result is exactly defined (bits, integers,
// rounding to nearest), it is the same here; a fast function such as __expf is as exact as the host's library.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

// CUDA has these names without `std`.
using std::isinf;
using std::isnan;

/// The smaller of the two.
template <class T>
constexpr T min(T a, T b) {
  return b < a ? b : a;
}
/// The larger of the two.
template <class T>
constexpr T max(T a, T b) {
  return a < b ? b : a;
}

/// 1 / sqrt(x). A GPU's own may be 2 units in the last place off.
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
/// a / b. A GPU's own is less exact.
inline float __fdividef(float a, float b) { return a / b; }
/// a * b + c, rounded once, to the nearest.
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }

// glibc declares a function named __expf, so that the word has to become another before the compiler sees it.
namespace ladder::cpu_device {
/// What `__expf` stands for here: exp(x), as exact as the host's library.
inline float fast_exp(float x) { return std::exp(x); }
}  // namespace ladder::cpu_device
/// exp(x). On a GPU it is fast and less exact: 2 units in the last place, and more for a large |x|.
#define __expf(x) (::ladder::cpu_device::fast_exp(x))

/// The upper 32 bits of the product.
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(uint64_t{a} * b >> 32); }
/// The bits of a float.
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
/// The float of these bits.
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
/// The bits of a float, as a signed integer.
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
/// The float of these bits, given as a signed integer.
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
/// How many bits are 1.
inline int __popc(unsigned x) { return std::popcount(x); }
/// How many bits are 0 above the highest 1; 32 for 0.
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
/// The place of the lowest 1, counted from 1; 0 for 0.
inline int __ffs(int x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1; }

/// A load. On a GPU it goes through the read-only cache. (No function, so that a report names the line of the kernel.)
#define __ldg(address) (*(address))
