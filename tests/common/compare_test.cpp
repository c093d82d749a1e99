// The comparison: what matches, what it counts, what it says; and that it cannot be fooled by NaN, poison or zeros.
#include "common/harness/compare.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

#include "common/harness/inputs.hpp"
#include "common/harness/reference.hpp"
#include "tests/expect.hpp"

using namespace ladder;

static constexpr double INF = std::numeric_limits<double>::infinity();
static constexpr float INF_FLOAT = std::numeric_limits<float>::infinity();
static constexpr float QUIET_NAN = std::numeric_limits<float>::quiet_NaN();
static const float POISON = std::bit_cast<float>(0xffffffffu);

static Comparison compare_one(float actual, double expected, Tolerance tolerance = {}) {
  return compare(std::vector{actual}, std::vector{expected}, {1}, tolerance);
}

TEST_CASE("equal tensors match, and what was compared is counted") {
  const Comparison same = compare(std::vector{1.0f, -2.0f, 0.5f}, std::vector{1.0, -2.0, 0.5}, {3}, {});
  CHECK(same.matches());
  CHECK(same.compared == 3);
  CHECK(same.mismatched == 0);
  CHECK(same.max_abs_diff == 0);
  CHECK(same.max_rel_diff == 0);
  CHECK(same.describe() == "all 3 match; max |difference| 0, relative 0");
}

TEST_CASE("the tolerance is absolute + relative * |expected|, its end included") {
  CHECK(compare_one(1.25f, 1, {0.25, 0}).matches());
  CHECK_FALSE(compare_one(1.25f, 1, {0.2499, 0}).matches());
  CHECK(compare_one(-5, -4, {0, 0.25}).matches());
  CHECK_FALSE(compare_one(-4, -5, {0, 0.1999}).matches());
  CHECK(compare_one(-4, -5, {0, 0.2}).matches());
  CHECK(compare_one(6, 4, {1, 0.25}).matches());
  CHECK_FALSE(compare_one(6.001f, 4, {1, 0.25}).matches());
  CHECK(compare_one(0, 0).matches());
  CHECK(compare_one(-0.0f, 0).matches());
}

TEST_CASE("a NaN matches only a NaN, and its difference is infinite") {
  CHECK(compare_one(QUIET_NAN, QUIET_NAN).matches());
  for (const Comparison& comparison : {compare_one(QUIET_NAN, 1, {1e30, 1e30}), compare_one(1, NAN, {1e30, 1e30}),
                                       compare_one(QUIET_NAN, INF, {1e30, 1e30})}) {
    CHECK_FALSE(comparison.matches());
    CHECK(comparison.unwritten == 0);
    CHECK(comparison.max_abs_diff == INF);
    CHECK(comparison.max_rel_diff == INF);
  }
  // A NaN among numbers must not be lost to a comparison that it makes false, wherever it lies.
  for (std::size_t position : {0u, 1u, 2u}) {
    std::vector<float> actual{1, 2, 3};
    actual[position] = QUIET_NAN;
    const Comparison comparison = compare(actual, std::vector{1.5, 2.5, 3.5}, {3}, {1, 0});
    CHECK(comparison.mismatched == 1);
    CHECK(comparison.max_abs_diff == INF);
    CHECK(comparison.worst_index == static_cast<int64_t>(position));
    CHECK(comparison.describe().find("nan, expected") != std::string::npos);
    CHECK(comparison.describe().find("|difference| inf") != std::string::npos);
  }
  CHECK_FALSE(compare_one(1.5f, 1, {NAN, 0}).matches());
}

TEST_CASE("an infinity matches only itself, whatever the tolerance") {
  CHECK(compare_one(INF_FLOAT, INF).matches());
  CHECK(compare_one(-INF_FLOAT, -INF, {1, 1}).matches());
  for (const Comparison& comparison : {compare_one(INF_FLOAT, -INF, {1, 1}), compare_one(INF_FLOAT, 1, {1, 1}),
                                       compare_one(3e38f, INF, {1, 1}), compare_one(-3e38f, -INF, {1, 1})}) {
    CHECK_FALSE(comparison.matches());
    CHECK(comparison.max_abs_diff == INF);
    CHECK(comparison.max_rel_diff == INF);
  }
}

TEST_CASE("BC-008: an expected value beyond float's range is an infinity") {
  CHECK(compare_one(INF_FLOAT, 6e38).matches());
  CHECK(compare_one(-INF_FLOAT, -6e38).matches());
  CHECK_FALSE(compare_one(std::numeric_limits<float>::max(), 6e38, {1e30, 0}).matches());
  // Halfway between the largest float and 2^128 rounds up, anything below rounds down.
  CHECK(compare_one(INF_FLOAT, 0x1.ffffffp127).matches());
  CHECK_FALSE(compare_one(INF_FLOAT, 0x1.fffffefffffffp127).matches());
}

TEST_CASE("poison is a mismatch of its own, also where a NaN is expected") {
  const std::vector<float> actual{1, POISON, 3, POISON, 5, 6};
  const Comparison comparison = compare(actual, std::vector<double>{1, 2, 3.5, NAN, 5, 6}, {2, 3}, {1, 0});
  CHECK_FALSE(comparison.matches());
  CHECK(comparison.mismatched == 2);
  CHECK(comparison.unwritten == 2);
  CHECK(comparison.first_unwritten == 1);
  CHECK(comparison.max_abs_diff == 0.5);  // over the written cells
  CHECK(comparison.worst_index == 2);
  CHECK(comparison.describe() == "2 of 6 differ; 2 of them never written, first at (0, 1)");
  const Comparison nothing = compare(std::vector(4, POISON), std::vector(4, 0.0), {4}, {1, 1});
  CHECK(nothing.unwritten == 4);
  CHECK(nothing.worst_index == -1);
  CHECK(compare_bits(std::vector{POISON}, std::vector{POISON}, {1}).unwritten == 1);
}

TEST_CASE("the description names the worst mismatch by its multi-index") {
  std::vector<float> actual(20, 0.5f);
  actual[9] = 0.25f;  // (1, 4)
  actual[17] = 0.375f;
  actual[3] = POISON;
  const Comparison comparison = compare(actual, std::vector(20, 0.5), {4, 5}, {0.01, 0});
  CHECK(comparison.worst_index == 9);
  CHECK(comparison.worst_actual == 0.25);
  CHECK(comparison.worst_expected == 0.5);
  CHECK(comparison.describe() ==
        "3 of 20 differ; worst at (1, 4): 0.25, expected 0.5, |difference| 0.25; 1 of them never written, first at (0, "
        "3)");
  std::vector<float> cube(24, 0.0f);
  cube[23] = 1;
  CHECK(compare(cube, std::vector(24, 0.0), {2, 3, 4}, {}).describe() ==
        "1 of 24 differ; worst at (1, 2, 3): 1, expected 0, |difference| 1");
}

TEST_CASE("the worst is a mismatch even where a matching element differs by more") {
  const Comparison comparison = compare(std::vector{1001.0f, 0.2f}, std::vector{1000.0, 0.1}, {2}, {0, 0.01});
  CHECK(comparison.mismatched == 1);
  CHECK(comparison.max_abs_diff == 1);
  CHECK(comparison.worst_index == 1);
  CHECK(comparison.max_rel_diff == doctest::Approx(1));
  CHECK(compare(std::vector{1001.0f, 0.1f}, std::vector{1000.0, 0.1}, {2}, {0, 0.01}).worst_index == 0);
}

TEST_CASE("the relative difference is infinite against an expected 0") {
  CHECK(compare_one(1e-30f, 0, {1, 0}).max_rel_diff == INF);
  CHECK(compare_one(0, 1e-30).max_rel_diff == 1);
}

TEST_CASE("comparing nothing is visible") {
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{0}, {4, 0}, {0, 5}}) {
    const Comparison empty = compare({}, {}, sizes, {});
    CHECK(empty.compared == 0);
    CHECK(empty.matches());
    CHECK(judged(empty.describe()) == "nothing to compare: 0 elements");
  }
}

TEST_CASE("tensors of another size than the shape are refused") {
  const std::vector<float> actual(6);
  const std::vector<double> expected(6), shorter(5);
  const auto message = [&](const std::vector<double>& other, std::vector<int64_t> sizes) {
    return message_of<std::length_error>([&] { compare(actual, other, sizes, {}); });
  };
  CHECK(message(shorter, {2, 3}) == "compare: expected has 5 elements, must have 2 x 3");
  CHECK(message(expected, {5}) == "compare: actual has 6 elements, must have 5");
  CHECK(message(expected, {-2, -3}) == "compare: actual has 6 elements, must have -2 x -3");
  CHECK(message(expected, {6, -1, 0}) == "compare: actual has 6 elements, must have 6 x -1 x 0");
  CHECK(message(expected, {0}) == "compare: actual has 6 elements, must have 0");
  // 2^32 * 2^32 + 6 would wrap to 6.
  CHECK(message(expected, {int64_t{1} << 32, int64_t{1} << 32}) ==
        "compare: actual has 6 elements, must have 4294967296 x 4294967296");
  CHECK_THROWS_AS(compare_bits(actual, std::vector<float>(5), {6}), std::length_error);
  CHECK(compare(actual, expected, {3, 2, 1}, {}).matches());
  CHECK(compare(std::vector{1.0f}, std::vector{1.0}, {}, {}).matches());
}

TEST_CASE("bits: 0 and -0 differ, NaNs of any pattern match, neighbours differ") {
  const float above = std::nextafter(1.0f, 2.0f);
  const std::vector<float> actual{0.0f, QUIET_NAN, 1.0f, INF_FLOAT, 1e-45f};
  CHECK(compare_bits(actual, actual, {5}).matches());
  CHECK(compare_bits(actual, std::vector{0.0f, std::bit_cast<float>(0x7fffffffu), 1.0f, INF_FLOAT, 1e-45f}, {5})
            .matches());
  CHECK(compare_bits(actual, std::vector{-0.0f, 1.0f, above, -INF_FLOAT, 0.0f}, {5}).mismatched == 5);
  CHECK(compare_bits(std::vector{-0.0f}, std::vector{0.0f}, {1}).describe() ==
        "1 of 1 differ; worst at (0): -0, expected 0, |difference| 0");
  CHECK(compare_bits(std::vector{above}, std::vector{1.0f}, {1}).describe() ==
        "1 of 1 differ; worst at (0): 1.00000012, expected 1, |difference| 1.1920929e-07");
}

TEST_CASE("row sums: the largest error of any row; a NaN is infinite") {
  CHECK(max_row_sum_error(std::vector{0.25f, 0.75f, 0.5f, 0.5f}, 2, 2) == 0);
  CHECK(max_row_sum_error(std::vector{0.25f, 0.75f, 0.5f, 0.25f, 0.5f, 0.625f}, 3, 2) == 0.25);
  CHECK(max_row_sum_error(std::vector{0.5f, 1.0f}, 1, 2) == 0.5);
  CHECK(max_row_sum_error(std::vector{1.0f, QUIET_NAN, 0.5f}, 3, 1) == INF);
  CHECK(max_row_sum_error(std::vector{QUIET_NAN, 1.0f}, 2, 1) == INF);
  CHECK(max_row_sum_error({}, 0, 5) == 0);
  CHECK(max_row_sum_error({}, 4, 0) == 0);
  // In float this sum would stop growing at 2^24 * 2^-25 = 0.5.
  CHECK(max_row_sum_error(std::vector<float>(std::size_t{1} << 25, 0x1p-25f), 1, 1 << 25) == 0);
  CHECK(message_of<std::length_error>([] { max_row_sum_error(std::vector{1.0f}, 1, 2); }) ==
        "max_row_sum_error: actual has 1 elements, must have 1 x 2");
}

TEST_CASE("a shifted reference is three tolerances off, or the next number, and never stays a NaN or an infinity") {
  const ReferenceShift before = reference_shift;
  reference_shift = {};
  CHECK(shifted(2, {.absolute = 0.5, .relative = 0.25}) == 2);
  reference_shift.on = true;
  CHECK(shifted(2, {.absolute = 0.5, .relative = 0.25}) == 5);
  CHECK(shifted(-2, {.absolute = 0.5, .relative = 0.25}) == 1);
  CHECK(shifted(2, {}) == std::nextafter(2.0, INF));
  CHECK(shifted(0, {.relative = 1}) > 0);
  for (double special : {double{NAN}, INF, -INF}) CHECK(shifted(special, {.absolute = 1}) == 0);
  CHECK(reference_shift.compared == 8);
  for (float value : {0.0f, 1.0f, QUIET_NAN, INF_FLOAT}) {
    CHECK_FALSE(compare_one(value, value).matches());
    CHECK_FALSE(compare_bits(std::vector{value}, std::vector{value}, {1}).matches());
  }
  CHECK(max_row_sum_error(std::vector{1.0f}, 1, 1) > ROW_SUM_TOLERANCE);
  reference_shift = before;
}

TEST_CASE("a tolerance must refuse zeros: 1e-3 accepts a zeroed softmax of 2000 columns") {
  const std::vector<float> x = normal(10 * 2000, 1);
  const std::vector<double> expected = reference_softmax(x, 10, 2000);
  CHECK_FALSE(rejects_zeros(expected, {1e-3, 0}));
  CHECK_FALSE(rejects_zeros(expected, {1e-3, 1e-5}));
  CHECK(rejects_zeros(expected, {0, 1e-5}));
  CHECK(rejects_zeros(expected, {1e-9, 1e-5}));
  CHECK_FALSE(rejects_zeros(expected, {0, 1}));

  // One peak in each row refuses a tensor of zeros, but not a zeroed tail.
  std::vector<double> peaked(2000, 5e-4);
  peaked[0] = 0.5;
  CHECK_FALSE(compare(std::vector<float>(2000), peaked, {2000}, {1e-3, 0}).matches());
  CHECK_FALSE(rejects_zeros(peaked, {1e-3, 0}));

  // Elements that should be 0 do not count; without any other there is nothing to refuse.
  CHECK(rejects_zeros(std::vector{0.0, 0.0, 1.0}, {1e-3, 0}));
  CHECK_FALSE(rejects_zeros(std::vector{0.0, -0.0}, {}));
  CHECK_FALSE(rejects_zeros({}, {}));
  CHECK(rejects_zeros(std::vector{double{NAN}}, {1, 1}));

  // 1 of 100 may accept a zero, 2 may not.
  std::vector<double> hundred(100, 1.0);
  hundred[42] = 1e-6;
  CHECK(rejects_zeros(hundred, {1e-3, 0}));
  hundred[7] = -1e-6;
  CHECK_FALSE(rejects_zeros(hundred, {1e-3, 0}));
}

TEST_CASE("BC-026: the fixed block of 1024 is found out at 1025 and 2000 columns") {
  for (int64_t columns : {1025, 2000}) {
    const std::vector<double> expected = reference_softmax(normal(2 * columns, 1), 2, columns);
    std::vector<float> actual(expected.begin(), expected.end());
    CHECK(compare(actual, expected, {2, columns}, {0, 1e-6}).matches());
    for (int64_t row : {0, 1})
      for (int64_t column = 1024; column < columns; ++column)
        actual[static_cast<std::size_t>(row * columns + column)] = POISON;
    const Comparison comparison = compare(actual, expected, {2, columns}, {0, 1e-6});
    CHECK(comparison.unwritten == 2 * (columns - 1024));
    CHECK(comparison.mismatched == comparison.unwritten);
    CHECK(comparison.first_unwritten == 1024);
    CHECK(comparison.describe().find("first at (0, 1024)") != std::string::npos);
  }
}

TEST_CASE("any change beyond the tolerance is found where it is") {
  CHECK_PROPERTY([] {
    const auto rows = *rc::gen::inRange<int64_t>(1, 8), columns = *rc::gen::inRange<int64_t>(1, 40);
    const auto seed = *rc::gen::arbitrary<uint64_t>();
    const auto changed = *rc::gen::inRange<int64_t>(0, rows * columns);
    std::vector<float> actual = uniform(rows * columns, seed, 1, 2);
    const std::vector<double> expected(actual.begin(), actual.end());
    RC_ASSERT(compare(actual, expected, {rows, columns}, {}).matches());
    actual[static_cast<std::size_t>(changed)] *= *rc::gen::element(-1.0f, 0.0f, 1.01f, QUIET_NAN, INF_FLOAT);
    const Comparison comparison = compare(actual, expected, {rows, columns}, {1e-4, 1e-3});
    RC_ASSERT(comparison.mismatched == 1);
    RC_ASSERT(comparison.worst_index == changed);
    const std::string index =
        "(" + std::to_string(changed / columns) + ", " + std::to_string(changed % columns) + "): ";
    RC_ASSERT(comparison.describe().find(index) != std::string::npos);
  });
}
