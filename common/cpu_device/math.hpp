// CUDA's math functions that <cmath> does not have. Where CUDA's result is exactly defined (bits, integers, rounding to
// nearest), it is the same here; a fast function such as __expf is as exact as the host's library.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

// CUDA has these names without `std`.
using std::isinf;
using std::isnan;

template <class T>
constexpr T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
constexpr T max(T a, T b) {
  return a < b ? b : a;
}

inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }

// glibc declares a function named __expf, so that the word has to become another before the compiler sees it.
namespace ladder::cpu_device {
inline float fast_exp(float x) { return std::exp(x); }
}  // namespace ladder::cpu_device
#define __expf(x) (::ladder::cpu_device::fast_exp(x))

inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(uint64_t{a} * b >> 32); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __ffs(int x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1; }

// No function, so that a report names the line of the kernel.
#define __ldg(address) (*(address))
