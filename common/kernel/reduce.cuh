// Reductions over a warp and over a block. Each function says who holds the valid value afterwards.
#pragma once

#include <cmath>

#include "common/kernel/device.cuh"

namespace ladder {

constexpr int WARP_SIZE = 32;                ///< Threads of a warp, on every GPU so far.
constexpr unsigned FULL_WARP = 0xffffffffu;  ///< The mask of a shuffle in which all 32 lanes take part.

/// The maximum, as an operation to reduce by. fmaxf passes over a NaN; the sum that follows in a softmax does not, so a
/// NaN still reaches every element of its row.
struct Max {
  /// The larger of the two.
  __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
  /// What leaves the other operand as it is.
  __device__ static float identity() { return -INFINITY; }
};
/// The sum, likewise. A NaN stays one.
struct Sum {
  /// a + b, rounded once.
  __device__ float operator()(float a, float b) const { return a + b; }
  /// What leaves the other operand as it is.
  __device__ static float identity() { return 0.0f; }
};

/// Reduces the values of the 32 lanes of a warp, or of each LANES neighbours among them, a power of two. Every lane
/// holds its result, to the same bit: at each distance, the two lanes of a pair combine the same two values, and both
/// operations commute. All 32 lanes must be there and call it: a lane that the block does not have gives nothing to
/// receive.
template <int LANES = WARP_SIZE, class Operation>
__device__ float warp_reduce(float value, Operation operation) {
#pragma unroll
  for (int distance = LANES / 2; distance > 0; distance /= 2)
    value = operation(value, __shfl_xor_sync(FULL_WARP, value, distance));
  return value;
}

/// Reduces the values of all threads of a one-dimensional block of THREADS threads, a multiple of 32. Every thread
/// holds the result, to the same bit. All threads must call it, any number of times. Costs two barriers and (THREADS /
/// 32) * 4 bytes of shared memory. With THREADS up to 32 it costs neither, and reduces each THREADS neighbours of a
/// block of any number of warps.
template <int THREADS, class Operation>
__device__ float block_reduce(float value, Operation operation) {
  static_assert(THREADS <= WARP_SIZE ? WARP_SIZE % THREADS == 0 : THREADS % WARP_SIZE == 0 && THREADS <= 1024,
                "block_reduce needs whole warps, or an equal part of one");
  constexpr int WARPS = THREADS / WARP_SIZE, LANES = WARPS == 0 ? THREADS : WARP_SIZE;
  value = warp_reduce<LANES>(value, operation);
  if constexpr (WARPS > 1) {
    __shared__ float partial[WARPS];
    const int lane = threadIdx.x % WARP_SIZE;
    const int warp = threadIdx.x / WARP_SIZE;
    __syncthreads();  // the readers of an earlier call have left partial
    if (lane == 0) partial[warp] = value;
    __syncthreads();  // partial is complete
    // Every warp reduces the same partials in the same order, so that no third barrier is needed to hand out the
    // result.
    value = warp_reduce(lane < WARPS ? partial[lane] : Operation::identity(), operation);
  }
  return value;
}

}  // namespace ladder
