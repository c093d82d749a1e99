#include "common/harness/inputs.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

namespace ladder {
std::vector<float> normal(int64_t n, uint64_t seed, double mean, double deviation) {
  std::vector<float> values(static_cast<std::size_t>(n));
  std::mt19937_64 words(seed);
  // Box-Muller by hand: std::normal_distribution differs from one standard library to the next.
  for (std::size_t i = 0; i < values.size(); i += 2) {
    const double u = static_cast<double>((words() >> 11) + 1) * 0x1p-53;  // in (0, 1], for the logarithm
    const double angle = static_cast<double>(words() >> 11) * 0x1p-53 * 2 * std::numbers::pi;
    const double radius = deviation * std::sqrt(-2 * std::log(u));
    values[i] = static_cast<float>(mean + radius * std::cos(angle));
    if (i + 1 < values.size()) values[i + 1] = static_cast<float>(mean + radius * std::sin(angle));
  }
  return values;
}

std::vector<float> uniform(int64_t n, uint64_t seed, float low, float high) {
  std::vector<float> values(static_cast<std::size_t>(n));
  std::mt19937_64 words(seed);
  const double width = double{high} - low;
  const float largest = std::nextafter(high, low);  // rounding to float may not reach high
  for (float& value : values)
    value = std::min(largest, static_cast<float>(low + width * (static_cast<double>(words() >> 40) * 0x1p-24)));
  return values;
}
}  // namespace ladder
