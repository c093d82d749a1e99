// How what is random is tested: count, and know how far chance may carry the count. Shared by main.cu and the tests.
//
// A count of N independent events of probability p has a standard deviation, sigma, of sqrt(N p (1 - p)). Chance alone
// leaves the band of 5 sigma once in 1.7 million counts, if N p (1 - p) is large enough for the bell curve to hold.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

namespace step02 {

/// What count_drops saw.
struct Drops {
  int64_t candidates = 0;  ///< Elements that dropout could be seen to drop.
  int64_t dropped = 0;     ///< Those of them that it dropped.
  /// The part that was dropped. Needs a candidate.
  double rate() const { return static_cast<double>(dropped) / static_cast<double>(candidates); }
};

/// Counts among positive inputs only: where x <= 0, ReLU gives 0 by itself, and a zero there tells nothing of dropout.
inline Drops count_drops(std::span<const float> x, std::span<const float> out) {
  Drops drops;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!(x[i] > 0)) continue;
    ++drops.candidates;
    drops.dropped += out[i] == 0;
  }
  return drops;
}

/// The standard deviation of a rate that is measured on `count` events of probability p.
inline double rate_sigma(double p, int64_t count) { return std::sqrt(p * (1 - p) / static_cast<double>(count)); }

/// True when `count` events suffice to judge a rate by 5 sigma: the bell curve holds, or there is no chance at all.
inline bool enough_to_judge(double p, int64_t count) {
  return count > 0 && (p == 0 || p == 1 || static_cast<double>(count) * p * (1 - p) >= 25);
}

/// The correlation of two masks (0 = dropped) of rate p, element by element over the shorter of the two. For
/// independent masks it is 0 with a sigma of 1 / sqrt(number of pairs). A mask against itself, shifted by `lag`:
/// correlation(mask, mask.subspan(lag), p). Needs 0 < p < 1.
inline double correlation(std::span<const float> a, std::span<const float> b, double p) {
  const std::size_t pairs = std::min(a.size(), b.size());
  int64_t dropped_a = 0, dropped_b = 0, dropped_both = 0;
  for (std::size_t i = 0; i < pairs; ++i) {
    dropped_a += a[i] == 0;
    dropped_b += b[i] == 0;
    dropped_both += a[i] == 0 && b[i] == 0;
  }
  // The mean of (a - p)(b - p), multiplied out. p is known, so that no mean has to be estimated.
  const auto n = static_cast<double>(pairs);
  const auto sum = static_cast<double>(dropped_a + dropped_b);
  return (static_cast<double>(dropped_both) - p * sum + n * p * p) / (n * p * (1 - p));
}

}  // namespace step02
