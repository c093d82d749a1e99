// Loads and stores of several neighbouring elements at once, as fp32: a thread computes in fp32 whatever lies in
// memory.
#pragma once

#include "common/kernel/bfloat16.cuh"
#include "common/kernel/gpu.cuh"

namespace ladder {

constexpr int ACCESS_BYTES = 16;  ///< The most bytes that one instruction moves for a thread.

/// The number of elements in one access of 16 bytes: 4 of float, 8 of __nv_bfloat16.
template <class T>
constexpr int WHOLE_ACCESS = ACCESS_BYTES / static_cast<int>(sizeof(T));

/// Loads one fp32 element.
__device__ inline void load(const float* from, float (&to)[1]) { to[0] = *from; }
/// Loads four fp32 elements by one access; `from` must lie at a multiple of 16 bytes.
__device__ inline void load(const float* from, float (&to)[4]) {
  const float4 access = *reinterpret_cast<const float4*>(from);
  to[0] = access.x;
  to[1] = access.y;
  to[2] = access.z;
  to[3] = access.w;
}
/// Loads one bf16 element. It is the upper half of the fp32 of the same value, so that nothing is rounded.
__device__ inline void load(const __nv_bfloat16* from, float (&to)[1]) { to[0] = __bfloat162float(*from); }
/// Loads eight bf16 elements by one access, likewise exact; `from` must lie at a multiple of 16 bytes.
__device__ inline void load(const __nv_bfloat16* from, float (&to)[8]) {
  const uint4 access = *reinterpret_cast<const uint4*>(from);
  const unsigned words[4] = {access.x, access.y, access.z, access.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {  // two elements a word, the first one in its lower half
    to[2 * i] = __uint_as_float(words[i] << 16);
    to[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
  }
}

/// Stores one fp32 element.
__device__ inline void store(float* to, const float (&from)[1]) { *to = from[0]; }
/// Stores four fp32 elements by one access; `to` must lie at a multiple of 16 bytes.
__device__ inline void store(float* to, const float (&from)[4]) {
  *reinterpret_cast<float4*>(to) = make_float4(from[0], from[1], from[2], from[3]);
}
/// Stores one bf16 element, rounded to the nearest, ties to even.
__device__ inline void store(__nv_bfloat16* to, const float (&from)[1]) { *to = __float2bfloat16(from[0]); }
/// Stores eight bf16 elements by one access, rounded likewise; `to` must lie at a multiple of 16 bytes.
__device__ inline void store(__nv_bfloat16* to, const float (&from)[8]) {
  unsigned words[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const __nv_bfloat162 pair = __floats2bfloat162_rn(from[2 * i], from[2 * i + 1]);
    words[i] = __bfloat16_as_ushort(pair.x) | static_cast<unsigned>(__bfloat16_as_ushort(pair.y)) << 16;
  }
  *reinterpret_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
}

}  // namespace ladder
