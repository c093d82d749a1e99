// The references against values computed by hand, against brute force in long double, and against the policies.
#include "common/harness/reference.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "common/harness/compare.hpp"
#include "common/harness/inputs.hpp"
#include "tests/expect.hpp"

using namespace ladder;

static constexpr float INF = std::numeric_limits<float>::infinity();
static constexpr float QUIET_NAN = std::numeric_limits<float>::quiet_NaN();

static bool all_nan(std::span<const double> values) {
  for (double value : values)
    if (!std::isnan(value)) return false;
  return !values.empty();
}

static void check_close(std::span<const double> actual, std::vector<double> expected, double relative = 1e-12) {
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    const double right = shifted(expected[i], {.relative = relative});
    CHECK((actual[i] == right || std::abs(actual[i] - right) <= relative * std::abs(right)));
  }
}

// Values whose head j holds j at every key j: a mean of V rows is then a mean of key numbers.
static std::vector<float> key_numbers(int64_t k_len, int64_t head_dim) {
  std::vector<float> v;
  for (int64_t j = 0; j < k_len; ++j) v.insert(v.end(), static_cast<std::size_t>(head_dim), static_cast<float>(j));
  return v;
}

static std::vector<float> filled(int64_t n, float value = 0) {
  return std::vector<float>(static_cast<std::size_t>(n), value);
}

// One head of zeros for Q and K, key numbers for V, one item a row.
static std::vector<double> mean_of_visible_keys(int64_t q_len, int64_t k_len, bool causal) {
  return reference_attention(filled(q_len), filled(k_len), key_numbers(k_len, 1), 1, 1, q_len, k_len, 1, 1, causal);
}

TEST_CASE("add") {
  check_close(reference_add(std::vector{1.0f, -2.5f, 0.1f}, std::vector{2.0f, 0.5f, 0.2f}),
              {3, -2, double{0.1f} + double{0.2f}}, 0);
  CHECK(reference_add({}, {}).empty());
  CHECK(message_of<std::length_error>([] {
          reference_add(std::vector{1.0f}, std::vector{1.0f, 2.0f});
        }) == "reference_add: y has 2 elements, must have 1");
}

TEST_CASE("BC-008: add, rounded to float, is the float sum to the bit") {
  check_close(reference_add(std::vector{1.4e-45f}, std::vector{1.4e-45f}), {double{2.8e-45f}}, 0);
  CHECK(std::isnan(reference_add(std::vector{INF}, std::vector{-INF})[0]));
  CHECK_PROPERTY([](float x, float y) {
    const float sum = x + y;
    const auto reference = static_cast<float>(reference_add(std::vector{x}, std::vector{y})[0]);
    RC_ASSERT(sum == reference || (std::isnan(sum) && std::isnan(reference)));
  });
}

TEST_CASE("relu and dropout: keep where u >= p, scale by 1 / (1 - p)") {
  const std::vector<float> x{1, 2, -3, 4, 5}, u{0.25f, 0.5f, 0.75f, 0.4999f, 0.9f};
  check_close(reference_relu_dropout(x, u, 0.5f), {0, 4, 0, 0, 10}, 0);
  check_close(reference_relu_dropout(x, u, 0), {1, 2, 0, 4, 5}, 0);
  check_close(reference_relu_dropout(std::vector{1.0f}, std::vector{0.95f}, 0.9f), {1 / (1 - double{0.9f})});
  check_close(reference_relu_dropout(std::vector{1.0f}, std::vector{0.0f}, 0), {1}, 0);
}

TEST_CASE("BC-012: NaN passes through ReLU") {
  const std::vector<float> x{QUIET_NAN, -1, 0, 1, -INF, INF};
  const std::vector<double> y = reference_relu_dropout(x, filled(6, 0.5f), 0);
  CHECK(std::isnan(y[0]));
  check_close(std::span(y).subspan(1), {0, 0, 1, 0, double{INF}}, 0);
}

TEST_CASE("BC-013: a dropped element is 0, whatever it was") {
  for (double y : reference_relu_dropout(std::vector{INF, QUIET_NAN, -INF, 3e38f}, filled(4, 0.05f), 0.1f)) {
    CHECK(y == shifted(0, {}));
    CHECK_FALSE(std::signbit(y));
  }
}

TEST_CASE("BC-014: p = 1 drops all, without a 1 / 0") {
  for (float u : {0.0f, 0.5f, 1.0f})
    for (double y : reference_relu_dropout(std::vector{1.0f, -1.0f, 0.0f, INF, 3e38f, QUIET_NAN}, filled(6, u), 1))
      CHECK(y == shifted(0, {}));
}

TEST_CASE("BC-016: kept values are scaled by 1 / (1 - p), dropped ones are as many as they should be") {
  constexpr int64_t N = 1'048'576;
  for (const auto& [p, zeros, sigmas] : {std::tuple{0.1f, 104'858, 1'536}, {0.3f, 314'573, 2'346}}) {
    const std::vector<double> y = reference_relu_dropout(filled(N, 1), uniform(N, 4), p);
    const auto dropped = std::ranges::count(y, 0.0), kept = std::ranges::count(y, 1 / (1 - double{p}));
    CHECK(dropped + kept == N);
    CHECK(within(static_cast<double>(dropped), zeros, sigmas));
  }
}

TEST_CASE("softmax: values by hand") {
  check_close(reference_softmax(std::vector{0.0f, 0.0f, 0.0f, 0.0f}, 1, 4), {0.25, 0.25, 0.25, 0.25});
  check_close(reference_softmax(std::vector{1.0f, 2.0f, 3.0f}, 1, 3),
              {0.09003057317038046, 0.24472847105479767, 0.6652409557748219});
  check_close(reference_softmax(std::vector{0.0f, std::log(3.0f), 5.0f, 5.0f}, 2, 2), {0.25, 0.75, 0.5, 0.5}, 1e-7);
  check_close(reference_softmax(std::vector{7.0f, -9.0f}, 2, 1), {1, 1});
  CHECK(reference_softmax({}, 0, 5).empty());
  CHECK(reference_softmax({}, 4, 0).empty());
  CHECK(message_of<std::length_error>([] { reference_softmax(std::vector{1.0f}, 2, 2); }) ==
        "reference_softmax: x has 1 elements, must have 2 x 2");
}

TEST_CASE("BC-037, BC-038: the row maximum is subtracted, wherever the row lies") {
  const std::vector<double> split{0.7310585786300049, 0.2689414213699951};
  for (float base : {-10200.0f, -200.0f, 0.0f, 1000.0f, 1e6f})
    check_close(reference_softmax(std::vector{base, base - 1}, 1, 2), split);
  check_close(reference_softmax(std::vector{-10000.0f, -10000.0f}, 1, 2), {0.5, 0.5});
  check_close(reference_softmax(std::vector{88.72284f}, 1, 1), {1});
  check_close(reference_softmax(std::vector{1000.0f, 1000.0f, -1000.0f}, 1, 3), {0.5, 0.5, 0});
  check_close(reference_softmax(std::vector{3e38f, 3e38f, 0.0f}, 1, 3), {0.5, 0.5, 0});
}

TEST_CASE("BC-033, BC-035, BC-036: -inf throughout, +inf or NaN make their row NaN, and no other row") {
  for (const std::vector<float>& row : {std::vector{-INF, -INF, -INF, -INF},
                                        {0.0f, INF, 0.0f, 1.0f},
                                        {INF, INF, INF, INF},
                                        {1.0f, QUIET_NAN, 2.0f, -INF},
                                        {QUIET_NAN, 1.0f, 2.0f, 3.0f},
                                        {1.0f, 2.0f, 3.0f, QUIET_NAN},
                                        {INF, -INF, INF, 0.0f}}) {
    std::vector<float> x(12, 0.0f);
    std::copy(row.begin(), row.end(), x.begin() + 4);
    const std::vector<double> y = reference_softmax(x, 3, 4);
    const std::span<const double> rows(y);
    CHECK(all_nan(rows.subspan(4, 4)));
    check_close(rows.first(4), {0.25, 0.25, 0.25, 0.25});
    check_close(rows.last(4), {0.25, 0.25, 0.25, 0.25});
  }
}

TEST_CASE("BC-034: some -inf in a row are zeros") {
  check_close(reference_softmax(std::vector{-INF, 0.0f, -INF}, 1, 3), {0, 1, 0}, 0);
  for (std::size_t finite : {0u, 50'000u, 99'999u}) {
    std::vector<float> x(100'000, -INF);
    x[finite] = 10;
    std::vector<double> one_hot(100'000, 0.0);
    one_hot[finite] = 1;
    CHECK(reference_softmax(x, 1, 100'000) == one_hot);
  }
}

TEST_CASE("BC-046: softmax against long double") {
  std::vector<float> ramp(64);
  for (std::size_t i = 0; i < ramp.size(); ++i) ramp[i] = static_cast<float>(i);
  CHECK(within(reference_softmax(ramp, 1, 64)[63], 0.632120559, 1e-9));
  CHECK_PROPERTY([] {
    const auto rows = *rc::gen::inRange<int64_t>(1, 5), columns = *rc::gen::inRange<int64_t>(1, 300);
    const std::vector<float> x = normal(rows * columns, *rc::gen::arbitrary<uint64_t>(), 3, 10);
    const std::vector<double> y = reference_softmax(x, rows, columns);
    for (int64_t row = 0; row < rows; ++row) {
      long double sum = 0;
      for (int64_t c = 0; c < columns; ++c) sum += std::exp(static_cast<long double>(x.data()[row * columns + c]));
      for (int64_t c = 0; c < columns; ++c) {
        const auto expected =
            static_cast<double>(std::exp(static_cast<long double>(x.data()[row * columns + c])) / sum);
        RC_ASSERT(within(y.data()[row * columns + c], expected, 1e-13 * expected));
      }
    }
  });
}

TEST_CASE("attention: one head by hand") {
  // Scores of the query (1, 2) are 1 and 4 times the scale; weights of 0.5 * (1, 4) are 1 / (1 + e^1.5) and the rest.
  const std::vector<float> q{1, 2}, k{1, 0, 0, 2}, v{10, 20, 30, 50};
  const double second = 1 / (1 + std::exp(-1.5)), first = 1 - second;
  check_close(reference_attention(q, k, v, 1, 1, 1, 2, 2, 0.5, false),
              {10 * first + 30 * second, 20 * first + 50 * second});
}

TEST_CASE("attention against long double, with every index spelled out") {
  CHECK_PROPERTY([] {
    const auto size = [](int64_t highest) { return *rc::gen::inRange<int64_t>(1, highest + 1); };
    const int64_t batch = size(3), heads = size(3), q_len = size(6), k_len = size(9), head_dim = size(5);
    const bool causal = *rc::gen::arbitrary<bool>();
    const auto seed = *rc::gen::inRange<uint64_t>(0, 1000);
    const std::vector<float> q = normal(batch * heads * q_len * head_dim, seed);
    const std::vector<float> k = normal(batch * heads * k_len * head_dim, seed + 1);
    const std::vector<float> v = normal(batch * heads * k_len * head_dim, seed + 2, 1);
    const auto at = [&](const auto& tensor, int64_t b, int64_t h, int64_t length, int64_t s, int64_t d) {
      return static_cast<long double>(tensor.data()[((b * heads + h) * length + s) * head_dim + d]);
    };
    const double scale = 0.7;
    const std::vector<double> out = reference_attention(q, k, v, batch, heads, q_len, k_len, head_dim, scale, causal);
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t i = 0; i < q_len; ++i)
          for (int64_t d = 0; d < head_dim; ++d) {
            long double sum = 0, weighted = 0;
            for (int64_t j = 0; j < k_len; ++j) {
              if (causal && j > i + k_len - q_len) continue;
              long double score = 0;
              for (int64_t e = 0; e < head_dim; ++e) score += at(q, b, h, q_len, i, e) * at(k, b, h, k_len, j, e);
              sum += std::exp(scale * score);
              weighted += std::exp(scale * score) * at(v, b, h, k_len, j, d);
            }
            const auto expected = static_cast<double>(sum == 0 ? 0 : weighted / sum);
            RC_ASSERT(within(static_cast<double>(at(out, b, h, q_len, i, d)), expected, 1e-12));
          }
  });
}

TEST_CASE("BC-053, BC-056: without a mask each query averages all keys") {
  check_close(mean_of_visible_keys(1, 65, false), {32});
  check_close(mean_of_visible_keys(1, 65, true), {32});
  check_close(mean_of_visible_keys(3, 4, false), {1.5, 1.5, 1.5});
}

TEST_CASE("BC-054, BC-057, BC-058: causal is aligned bottom-right and includes the diagonal") {
  check_close(mean_of_visible_keys(2, 5, true), {1.5, 2});
  check_close(mean_of_visible_keys(2, 3, true), {0.5, 1});
  check_close(mean_of_visible_keys(3, 128, true), {62.5, 63, 63.5});
  check_close(mean_of_visible_keys(4, 4, true), {0, 0.5, 1, 1.5});
}

TEST_CASE("BC-055: queries before the first key see nothing and give 0") {
  check_close(reference_attention(filled(5), filled(2), std::vector{1.0f, 3.0f}, 1, 1, 5, 2, 1, 1, true),
              {0, 0, 0, 1, 2}, 0);
}

TEST_CASE("BC-061, BC-062: no keys give 0; no queries, batches, heads or items give nothing") {
  for (bool causal : {false, true}) {
    check_close(reference_attention(filled(6, 7), {}, {}, 1, 1, 3, 0, 2, 1, causal), std::vector<double>(6, 0.0), 0);
    CHECK(reference_attention({}, filled(6), filled(6), 1, 1, 0, 3, 2, 1, causal).empty());
    CHECK(reference_attention({}, {}, {}, 0, 2, 3, 4, 5, 1, causal).empty());
    CHECK(reference_attention({}, {}, {}, 2, 0, 3, 4, 5, 1, causal).empty());
    CHECK(reference_attention({}, {}, {}, 2, 2, 3, 4, 0, 1, causal).empty());
  }
}

TEST_CASE("BC-063, BC-065: all of a long or odd head dimension counts") {
  std::vector<float> q(128, 0.0f), k(256, 0.0f), v(256, 1.0f);
  q[64] = k[64] = 20;
  std::fill(v.begin() + 128, v.end(), 3.0f);
  check_close(reference_attention(q, k, v, 1, 1, 1, 2, 128, 1 / std::sqrt(128.0), false), std::vector<double>(128, 1.0),
              1e-6);
  for (const auto& [head_dim, expected] : {std::pair{40, 0.998211}, {33, 0.996810}}) {
    std::vector<float> ones = filled(head_dim, 1), keys = ones, values = ones;
    keys.resize(2 * ones.size(), 0.0f);
    values.resize(2 * ones.size(), 0.0f);
    const double scale = 1 / std::sqrt(static_cast<double>(head_dim));
    CHECK(reference_attention(ones, keys, values, 1, 1, 1, 2, head_dim, scale, false)[0] ==
          doctest::Approx(expected).epsilon(1e-6));
  }
}

TEST_CASE("BC-068, BC-070: the mask is no large number, and no product with the scale") {
  std::vector<float> q = filled(32, 100), k = filled(16, -100), v = filled(16, 1);
  k.resize(32, 0.0f);
  v.resize(32, 100.0f);
  const std::vector<double> out = reference_attention(q, k, v, 1, 1, 2, 2, 16, 0.25, true);
  CHECK(out[0] == 1);
  CHECK(out[16] == 100);
  check_close(reference_attention(filled(4, 1), filled(4, 1), key_numbers(4, 1), 1, 1, 4, 4, 1, 0, true),
              {0, 0.5, 1, 1.5});
}

TEST_CASE("attention: NaN reaches the queries that see it, and no others") {
  std::vector<float> k = filled(4);
  k[3] = QUIET_NAN;
  const std::vector<double> out = reference_attention(filled(4, 1), k, key_numbers(4, 1), 1, 1, 4, 4, 1, 1, true);
  check_close(std::span(out).first(3), {0, 0.5, 1});
  CHECK(std::isnan(out[3]));
}

TEST_CASE("attention: each tensor is checked against the shape") {
  const auto message = [](int64_t q, int64_t k, int64_t v) {
    return message_of<std::length_error>(
        [&] { reference_attention(filled(q), filled(k), filled(v), 1, 2, 3, 4, 5, 1, false); });
  };
  CHECK(message(29, 40, 40) == "reference_attention: q has 29 elements, must have 1 x 2 x 3 x 5");
  CHECK(message(30, 41, 40) == "reference_attention: k has 41 elements, must have 1 x 2 x 4 x 5");
  CHECK(message(30, 40, 0) == "reference_attention: v has 0 elements, must have 1 x 2 x 4 x 5");
}
