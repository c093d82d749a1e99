// The random numbers of rung 02. One idea: a random number that is computed from its place, and remembered nowhere.
//
// A generator with a state would make element 1000 wait for elements 0 to 999. Philox is a function instead: it
// scrambles a counter with a key. The counter is the element's offset, the key is the seed, so that each thread
// computes its own numbers, in any order, and computes the same ones again whenever they are needed.
//
// Source: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011 (their library:
// Random123).
#pragma once

#include <cstdint>

#include "common/kernel/gpu.cuh"

namespace step02 {

/// Philox 4x32-10: four words of 32 bits, scrambled in 10 rounds. Two words of the counter are multiplied, and the high
/// half of each product, which depends on all bits of its factor, is mixed into the other two words. A round loses
/// nothing: it can be undone, so different counters give different results under the same key.
__host__ __device__ inline uint4 philox4x32_10(uint4 counter, uint2 key) {
  constexpr uint64_t MULTIPLIER_0 = 0xD2511F53, MULTIPLIER_1 = 0xCD9E8D57;  // odd; chosen by search for their avalanche
  constexpr uint32_t BUMP_0 = 0x9E3779B9, BUMP_1 = 0xBB67AE85;  // golden ratio and sqrt(3), fractions times 2^32
  for (int round = 0; round < 10; ++round) {
    const uint64_t product_0 = MULTIPLIER_0 * counter.x;  // 32 x 32 = 64 bits, one instruction of the GPU
    const uint64_t product_1 = MULTIPLIER_1 * counter.z;
    const auto high_0 = static_cast<uint32_t>(product_0 >> 32), low_0 = static_cast<uint32_t>(product_0);
    const auto high_1 = static_cast<uint32_t>(product_1 >> 32), low_1 = static_cast<uint32_t>(product_1);
    counter = make_uint4(high_1 ^ counter.y ^ key.x, low_1, high_0 ^ counter.w ^ key.y, low_0);
    key = make_uint2(key.x + BUMP_0, key.y + BUMP_1);  // another key for each round
  }
  return counter;
}

/// The four words of one call: the 64-bit counter in words 0 and 1 (2 and 3 stay 0), the 64-bit seed as the key.
__host__ __device__ inline uint4 random_words(uint64_t seed, uint64_t counter) {
  const auto low = [](uint64_t value) { return static_cast<uint32_t>(value); };
  return philox4x32_10(make_uint4(low(counter), low(counter >> 32), 0, 0), make_uint2(low(seed), low(seed >> 32)));
}

/// A uniform number in [0, 1) from a random word, with the bits that Triton's tl.rand gives for it: the word as a
/// signed integer, folded onto 0 .. 2^31 - 1, times a number just below 2^-31. With 2^-31 itself the largest would
/// become 1, as it rounds up to 2^31 on its way to float.
__host__ __device__ inline float uniform_from(uint32_t word) {
  const auto bits = static_cast<int32_t>(word);
  const int32_t folded = bits < 0 ? ~bits : bits;  // ~bits is -bits - 1, without the overflow at -2^31
  return static_cast<float>(folded) * 4.6566127342e-10f;
}

}  // namespace step02
