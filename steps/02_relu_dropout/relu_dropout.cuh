// Rung 02: out = dropout(relu(x)). Two ideas: two operations in one trip through memory, and a random number per
// element that depends on nothing but the seed and the element's offset.
#pragma once

#include <charconv>
#include <limits>

#include "common/kernel/gpu.cuh"
#include "steps/02_relu_dropout/philox.cuh"

namespace step02 {

/// max(x, 0). A comparison, not fmaxf, which passes over a NaN: fmaxf(NaN, 0) is 0, and the error would be hidden. -0
/// becomes +0.
__device__ inline float relu(float x) { return x <= 0.0f ? 0.0f : x; }

/// Keeps where random >= p. Since random is in [0, 1), p = 0 keeps all and p = 1 drops all. A dropped element is 0
/// whatever x was: chosen, not multiplied by 0, which would turn an infinity into NaN. Survivors are divided by the
/// probability of surviving, so that the expected sum stays.
__device__ inline float dropout(float x, float random, float p) { return random >= p ? x / (1.0f - p) : 0.0f; }

/// One thread per element, as in rung 01. x is read once, out written once; between them lies only arithmetic.
template <int BLOCK_SIZE>
__global__ void __launch_bounds__(BLOCK_SIZE)
    relu_dropout_kernel(const float* x,  // (n_elements)
                        float* out,      // (n_elements), may be x
                        int64_t n_elements, float p, uint64_t seed, uint64_t first_counter) {
  const int64_t block_start = int64_t{blockIdx.x} * BLOCK_SIZE;
  const int64_t offsets = block_start + threadIdx.x;
  const bool mask = offsets < n_elements;
  if (mask) {
    const float random = uniform_from(random_words(seed, first_counter + offsets).x);  // three words go unused
    out[offsets] = dropout(relu(x[offsets]), random, p);
  }
}

/// Throws ladder::InvalidArgument unless the arguments are what the launchers of this rung take: see relu_dropout().
inline void require_relu_dropout(const char* function, const ladder::Vector<const float>& x,
                                 const ladder::Vector<float>& out, float p, uint64_t first_counter) {
  using namespace ladder;
  require_view(function, "x", x);
  require_view(function, "out", out);
  require_same_sizes(function, "out", out, "x", x);
  require_unit_last_stride(function, "x", x);
  require_unit_last_stride(function, "out", out);
  require_no_partial_overlap(function, "out", out, "x", x);
  if (!(p >= 0.0f && p <= 1.0f)) {  // the negation also catches NaN
    char digits[32];                // as many as tell p from its neighbours: 1.0000001 must not read as 1
    refuse(function, "p", std::string(digits, std::to_chars(digits, digits + sizeof digits, p).ptr),
           "at least 0 and at most 1");
  }
  // Beyond the last counter they would start over, and with them the random numbers.
  const uint64_t last = std::numeric_limits<uint64_t>::max() - static_cast<uint64_t>(x.sizes[0]);
  if (first_counter > last)
    refuse(function, "first_counter", std::to_string(first_counter),
           "at most " + std::to_string(last) + ", 2^64 - 1 less the number of elements");
}

/// out[i] = 0 with probability p, else max(x[i], 0) / (1 - p), for any number of elements; 0 elements launch nothing.
/// Element i draws word 0 of Philox(seed, counter first_counter + i): what tl.rand(seed, first_counter + i) gives
/// for offsets of 32 bits. The same arguments give the same mask, whatever BLOCK_SIZE is. A call uses up n counters, so
/// the next one that wants new numbers under the same seed starts at first_counter + n. Both are (n) and contiguous;
/// out may be x; p is in [0, 1]. Throws ladder::InvalidArgument otherwise. Moves 8 n bytes: 4 n read, 4 n written.
template <int BLOCK_SIZE = 256>
void relu_dropout(ladder::Vector<const float> x, ladder::Vector<float> out, float p, uint64_t seed,
                  uint64_t first_counter = 0, cudaStream_t stream = nullptr) {
  require_relu_dropout("relu_dropout", x, out, p, first_counter);
  const int64_t n_elements = x.sizes[0];
  if (n_elements == 0) return;
  const dim3 grid = ladder::grid_of("relu_dropout", ladder::cdiv(n_elements, BLOCK_SIZE));
  ladder::launch(relu_dropout_kernel<BLOCK_SIZE>, grid, dim3(BLOCK_SIZE), 0, stream, x.data, out.data, n_elements, p,
                 seed, first_counter);
}

}  // namespace step02
