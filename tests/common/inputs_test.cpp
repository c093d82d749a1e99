// The generators: pinned values, since every figure of the project hangs on them, and their distributions.
#include "common/harness/inputs.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <stdexcept>

#include "tests/expect.hpp"

using namespace ladder;

TEST_CASE("uniform is k / 2^24, from the top 24 bits of std::mt19937_64, whose words the standard fixes") {
  // The standard's check: the 10000th word of the default seed is 9981545732273789042.
  CHECK(within(uniform(10'000, 5489).back(), double{9981545732273789042u >> 40} * 0x1p-24, 0));
  CHECK(uniform(3, 1) == std::vector<float>{0x1.122de8p-3f, 0x1.175c9p-3f, 0x1.ce0b44p-2f});
  for (float value : uniform(1000, 3)) CHECK(value * 0x1p24f == std::floor(value * 0x1p24f));
}

TEST_CASE("normal is Box-Muller on the words of std::mt19937_64") {
  const std::vector<float> expected{0x1.50170ap+0f, 0x1.841512p+0f, 0x1.402794p+0f, 0x1.5451aap-3f};
  const std::vector<float> values = normal(4, 1);
  for (std::size_t i = 0; i < expected.size(); ++i)  // another C library may round log, sin and cos differently
    CHECK(within(values[i], expected[i], 0x1p-23 * std::abs(expected[i])));
}

TEST_CASE("a shorter tensor is the start of a longer one; seeds differ") {
  for (int64_t n : {0, 1, 2, 3, 8, 9}) {
    CAPTURE(n);
    for (const auto& generate : {+[](int64_t count, uint64_t seed) { return normal(count, seed); },
                                 +[](int64_t count, uint64_t seed) { return uniform(count, seed); }}) {
      const std::vector<float> shorter = generate(n, 7), longer = generate(10, 7);
      CHECK(static_cast<int64_t>(shorter.size()) == n);
      check_same(shorter, {longer.begin(), longer.begin() + n});
      if (n > 0) CHECK(shorter != generate(n, 8));
    }
  }
}

static double moment(const std::vector<float>& values, int power, double about) {
  double sum = 0;
  for (float value : values) sum += std::pow(value - about, power);
  return sum / static_cast<double>(values.size());
}

// The standard errors of the moments of n normal values are sqrt(1, 2, 15, 96) / sqrt(n).
TEST_CASE("normal has the moments of a normal distribution, within 5 sigma") {
  constexpr int64_t N = 1'000'000;
  const double sigma = 1 / std::sqrt(double{N});
  for (uint64_t seed : {1u, 2u, 3u}) {
    const std::vector<float> values = normal(N, seed);
    CHECK(within(moment(values, 1, 0), 0, 5 * sigma));
    CHECK(within(moment(values, 2, 0), 1, 5 * std::sqrt(2) * sigma));
    CHECK(within(moment(values, 3, 0), 0, 5 * std::sqrt(15) * sigma));
    CHECK(within(moment(values, 4, 0), 3, 5 * std::sqrt(96) * sigma));
    // Box-Muller makes pairs: the two must be independent, and so must neighbouring pairs.
    double inside = 0, across = 0;
    for (std::size_t i = 0; i + 2 < values.size(); ++i) (i % 2 == 0 ? inside : across) += values[i] * values[i + 1];
    CHECK(within(inside, 0, 5 * std::sqrt(double{N} / 2)));
    CHECK(within(across, 0, 5 * std::sqrt(double{N} / 2)));
    // P(|x| > 3) = 0.0026998, P(x < -1) = 0.1586553.
    const auto count = [&](auto matches) { return static_cast<double>(std::ranges::count_if(values, matches)); };
    CHECK(within(count([](float x) { return std::abs(x) > 3; }), 2699.8, 5 * std::sqrt(2692.5)));
    CHECK(within(count([](float x) { return x < -1; }), 158655.3, 5 * std::sqrt(133483.8)));
  }
}

TEST_CASE("normal takes a mean and a deviation; the shift is that of the same values") {
  const std::vector<float> standard = normal(1000, 5), moved = normal(1000, 5, 10, 0.5);
  for (std::size_t i = 0; i < standard.size(); ++i) CHECK(within(moved[i], 10 + 0.5 * standard[i], 2e-6));
  CHECK(normal(4, 5, 3, 0) == std::vector<float>(4, 3));
}

TEST_CASE("uniform fills [low, high) evenly, within 5 sigma") {
  constexpr int64_t N = 1'000'000;
  for (const auto& [low, high] : {std::pair{0.0f, 1.0f}, {-3.0f, 5.0f}, {1.0f, 1.5f}}) {
    const std::vector<float> values = uniform(N, 11, low, high);
    const double width = high - low, sigma = width / std::sqrt(12.0 * N);
    CHECK(*std::ranges::min_element(values) >= low);
    CHECK(*std::ranges::max_element(values) < high);
    CHECK(within(moment(values, 1, 0), (low + width / 2), 5 * sigma));
    CHECK(within(moment(values, 2, low + width / 2), width * width / 12, 5 * width * width / std::sqrt(180.0 * N)));
    std::vector<int> tenths(10);
    for (float value : values) ++tenths[static_cast<std::size_t>((value - low) / width * 10)];
    for (int count : tenths) CHECK(within(count, 100'000, 5 * std::sqrt(90'000.0)));
  }
}

TEST_CASE("uniform never reaches high, also where rounding would") {
  const float low = 16777216.0f, high = 16777218.0f;  // neighbouring floats
  check_same(uniform(1000, 1, low, high), std::vector<float>(1000, low));
  const float limit = std::nextafter(1.0f, 2.0f);
  check_same(uniform(1000, 1, 1.0f, limit), std::vector<float>(1000, 1.0f));
  CHECK(std::ranges::all_of(uniform(1000, 1, -3e38f, 3e38f), [](float x) { return x >= -3e38f && x < 3e38f; }));
}

TEST_CASE("values have no symmetry that would hide a transposed index") {
  for (const std::vector<float>& values : {normal(4096, 1), uniform(4096, 1)})
    CHECK(std::set<float>(values.begin(), values.end()).size() > 4090);
}

TEST_CASE("a negative count is refused") {
  CHECK_THROWS_AS(normal(-1, 1), std::length_error);
  CHECK_THROWS_AS(uniform(-1, 1), std::length_error);
  CHECK_THROWS_AS(uniform(std::numeric_limits<int64_t>::min(), 1), std::length_error);
}
