// What each element draws under the two mappings, computed on the host: for the checks before a time is taken.
//
// The numbers come from philox.cuh itself: whether those are right is for the tests of the rung to say, with the
// published answers. Here it is whether each element got its own.
#pragma once

#include "steps/02_relu_dropout/philox.cuh"

namespace step02 {

/// Element i draws word 0 of Philox(seed, counter i).
inline float draw_one_per_call(uint64_t seed, int64_t i) {
  return uniform_from(random_words(seed, static_cast<uint64_t>(i)).x);
}
/// Element i draws word i % 4 of Philox(seed, counter i / 4).
inline float draw_four_per_call(uint64_t seed, int64_t i) {
  const uint4 words = random_words(seed, static_cast<uint64_t>(i / 4));
  const uint32_t of_four[] = {words.x, words.y, words.z, words.w};
  return uniform_from(of_four[i % 4]);
}

}  // namespace step02
