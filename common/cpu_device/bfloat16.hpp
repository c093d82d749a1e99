// CUDA's bf16: the upper half of a float. Names, rounding and NaNs are those of cuda_bf16.h.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

/// A bf16: sign, 8 bits of exponent, 7 of fraction.
struct __nv_bfloat16 {
  uint16_t bits;  ///< Those of the float of the same value, the upper half.
};
/// Two of them, side by side in 4 bytes.
struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x;  ///< The first, at the lower address.
  __nv_bfloat16 y;  ///< The second.
};

/// The bits of a bf16.
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) { return value.bits; }
/// The bf16 of these bits.
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return {bits}; }

/// The float of the same value: nothing is rounded.
inline float __bfloat162float(__nv_bfloat16 value) { return std::bit_cast<float>(uint32_t{value.bits} << 16); }

/// Rounds to the nearest bf16, ties to even; beyond the largest bf16 infinity; every NaN becomes the same one.
inline __nv_bfloat16 __float2bfloat16(float value) {
  if (std::isnan(value)) return {0x7fff};
  const uint32_t bits = std::bit_cast<uint32_t>(value), half_less_one = 0x7fffu + (bits >> 16 & 1u);
  return {static_cast<uint16_t>((bits + half_less_one) >> 16)};
}
/// Rounds two floats likewise.
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {__float2bfloat16(x), __float2bfloat16(y)}; }
