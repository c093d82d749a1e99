// CUDA's words, for a C++ compiler: keywords, vector types, built-in variables. Names and meanings are CUDA's.
#pragma once

// A block runs on one OS thread, so the array that its threads share is a thread-local of that OS thread. A type with a
// constructor does not compile there under nvcc either.
/// A kernel. Here no more than a mark for the reader.
#define __global__
/// A function that kernels call. Likewise.
#define __device__
/// A function of the host. Likewise.
#define __host__
/// A function that the compiler must put in place.
#define __forceinline__ inline __attribute__((always_inline))
/// The most threads that a block of this kernel has. Likewise; the launch itself is checked.
#define __launch_bounds__(...)
/// Aligns a type or a variable to that many bytes, wherever it stands in the declaration.
#define __align__(bytes) __attribute__((aligned(bytes)))
/// An array that the threads of a block share.
#define __shared__ static thread_local
// __noinline__ is left alone: libstdc++ spells attributes with it.

/// An index in up to three dimensions.
struct uint3 {
  unsigned x;  ///< In the first dimension, the fastest: neighbouring threads differ in it.
  unsigned y;  ///< In the second.
  unsigned z;  ///< In the third.
};
/// A size in up to three dimensions: what is not given is 1.
struct dim3 {
  unsigned x;  ///< Along the first dimension.
  unsigned y;  ///< Along the second.
  unsigned z;  ///< Along the third.
  /// A number alone is a size in x.
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
/// Two floats that one access moves.
struct alignas(8) float2 {
  float x;  ///< The first, at the lower address.
  float y;  ///< The last.
};
/// Four floats that one access moves.
struct alignas(16) float4 {
  float x;  ///< The first, at the lowest address.
  float y;  ///< The second.
  float z;  ///< The third.
  float w;  ///< The last.
};
/// Two words of 32 bits.
struct uint2 {
  unsigned x;  ///< The first, at the lower address.
  unsigned y;  ///< The last.
};
/// Four words of 32 bits that one access moves.
struct alignas(16) uint4 {
  unsigned x;  ///< The first, at the lowest address.
  unsigned y;  ///< The second.
  unsigned z;  ///< The third.
  unsigned w;  ///< The last.
};
/// A float2 of these values.
inline float2 make_float2(float x, float y) { return {x, y}; }
/// A float4 of these values.
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
/// A uint2 of these values.
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
/// A uint4 of these values.
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

/// The running thread's place in its block.
inline constinit thread_local uint3 threadIdx{0, 0, 0};
/// The running block's place in the grid.
inline constinit thread_local uint3 blockIdx{0, 0, 0};
/// Threads of a block.
inline constinit thread_local dim3 blockDim{};
/// Blocks of the grid.
inline constinit thread_local dim3 gridDim{};
/// Threads of a warp.
inline constexpr int warpSize = 32;
