// Philox and the two mappings of rung 02 once more, written another way than in steps/, so that a slip in one of them
// shows: products by 16-bit halves, the round keys by multiplication, the words moved by index.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace by_hand {

inline uint32_t high_half(uint32_t a, uint32_t b) {
  const uint32_t a_high = a >> 16, a_low = a & 0xffff, b_high = b >> 16, b_low = b & 0xffff;
  const uint32_t middle = a_high * b_low + (a_low * b_low >> 16);  // at most (2^16 - 1)^2 + 2^16 - 2 < 2^32
  const uint32_t carry = (middle & 0xffff) + a_low * b_high;       // likewise
  return a_high * b_high + (middle >> 16) + (carry >> 16);
}

using Words = std::array<uint32_t, 4>;

inline Words philox(Words counter, std::array<uint32_t, 2> key) {
  constexpr uint32_t MULTIPLIERS[2]{3528531795u, 3449720151u}, BUMPS[2]{2654435769u, 3144134277u};
  for (uint32_t round = 0; round < 10; ++round) {
    Words next{};
    for (std::size_t from : {0, 2}) {  // the product of word 0 goes to words 2 and 3, that of word 2 to words 0 and 1
      const std::size_t to = 2 - from;
      const uint32_t round_key = key[to / 2] + round * BUMPS[to / 2];
      next[to] = high_half(MULTIPLIERS[from / 2], counter[from]) ^ counter[to + 1] ^ round_key;
      next[to + 1] = MULTIPLIERS[from / 2] * counter[from];
    }
    counter = next;
  }
  return counter;
}

inline Words philox(uint64_t seed, uint64_t counter) {
  return philox({static_cast<uint32_t>(counter), static_cast<uint32_t>(counter / 0x100000000), 0, 0},
                {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed / 0x100000000)});
}

// The two mappings, from the stream's element to its random word.
inline uint32_t word_per_call(uint64_t seed, uint64_t element) { return philox(seed, element)[0]; }
inline uint32_t word_of_four(uint64_t seed, uint64_t element) { return philox(seed, element / 4)[element % 4]; }

// What tl.rand makes of a word, by its definition: -v - 1 for a negative v, in 64 bits, and one rounding of the
// product.
inline float uniform(uint32_t word) {
  const int64_t v = word < 0x80000000u ? int64_t{word} : int64_t{word} - 0x100000000;
  const auto folded = static_cast<float>(v < 0 ? -v - 1 : v);
  return static_cast<float>(double{folded} * 0x1.fffffep-32);  // 4.6566127342e-10 as a float
}

inline std::vector<float> uniforms(uint32_t (*word)(uint64_t, uint64_t), uint64_t seed, uint64_t first, int64_t n) {
  std::vector<float> values(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = uniform(word(seed, first + i));
  return values;
}

}  // namespace by_hand
