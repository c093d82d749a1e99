#include "common/harness/compare.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <tuple>

namespace ladder {
static constexpr uint32_t POISON = 0xffffffffu;
static constexpr double FLOAT_OVERFLOW = 0x1.ffffffp127;  // the least magnitude that rounds to an infinite float
static double nan_to_infinity(double value) { return std::isnan(value) ? INFINITY : value; }
static bool same_number(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }
static bool same_bits(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : a == b && std::signbit(a) == std::signbit(b);
}

static bool close(double actual, double expected, Tolerance tolerance) {
  if (!std::isfinite(actual) || !std::isfinite(expected)) return same_number(actual, expected);
  return std::abs(actual - expected) <= tolerance.absolute + tolerance.relative * std::abs(expected);
}

ReferenceShift reference_shift;

template <class Number>
static Number shifted(Number expected, Number distance) {
  ++reference_shift.compared;
  if (!reference_shift.on) return expected;
  if (!std::isfinite(expected)) return 0;
  return std::max(expected + 3 * distance, std::nextafter(expected, std::numeric_limits<Number>::infinity()));
}
double shifted(double expected, Tolerance tolerance) {
  return shifted(expected, tolerance.absolute + tolerance.relative * std::abs(expected));
}

template <class Expected, class Shift, class Matches>
static Comparison compare_cells(std::span<const float> actual, std::span<const Expected> expected,
                                std::vector<int64_t> sizes, Shift shift, Matches matches) {
  require_elements("compare: actual", actual.size(), sizes);
  require_elements("compare: expected", expected.size(), sizes);
  Comparison result;
  result.sizes = std::move(sizes);
  result.compared = std::ssize(actual);
  std::pair worst{false, -1.0};  // is a mismatch, differs by
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (std::bit_cast<uint32_t>(actual[i]) == POISON) {
      if (result.unwritten++ == 0) result.first_unwritten = static_cast<int64_t>(i);
      continue;
    }
    const double a = actual[i], exact = shift(expected[i]);
    const double e = std::abs(exact) < FLOAT_OVERFLOW ? exact : exact * INFINITY;
    const double difference = same_number(a, e) ? 0 : nan_to_infinity(std::abs(a - e));
    const double relative = same_number(a, e) ? 0 : nan_to_infinity(difference / std::abs(e));
    result.max_abs_diff = std::max(result.max_abs_diff, difference);
    result.max_rel_diff = std::max(result.max_rel_diff, relative);
    const std::pair found{!matches(a, e), difference};
    result.mismatched += found.first;
    if (found <= worst) continue;
    worst = found;
    std::tie(result.worst_index, result.worst_actual, result.worst_expected) = std::tuple(i, a, e);
  }
  result.mismatched += result.unwritten;
  return result;
}

static std::string multi_index(int64_t index, const std::vector<int64_t>& sizes) {
  std::string text = ")";
  for (std::size_t axis = sizes.size(); axis-- > 0; index /= sizes[axis])
    text = (axis > 0 ? ", " : "") + std::to_string(index % sizes[axis]) + text;
  return "(" + text;
}

std::string Comparison::describe() const {
  if (compared == 0) return "nothing to compare: 0 elements";
  std::ostringstream text;
  text.precision(matches() ? 3 : 9);  // 9 digits tell any two floats apart
  if (matches())
    text << "all " << compared << " match; max |difference| " << max_abs_diff << ", relative " << max_rel_diff;
  else
    text << mismatched << " of " << compared << " differ";
  if (mismatched > unwritten)
    text << "; worst at " << multi_index(worst_index, sizes) << ": " << worst_actual << ", expected " << worst_expected
         << ", |difference| " << nan_to_infinity(std::abs(worst_actual - worst_expected));
  if (unwritten > 0)
    text << "; " << unwritten << " of them never written, first at " << multi_index(first_unwritten, sizes);
  return text.str();
}

Comparison compare(std::span<const float> actual, std::span<const double> expected, std::vector<int64_t> sizes,
                   Tolerance tolerance) {
  return compare_cells(
      actual, expected, std::move(sizes), [&](double e) { return shifted(e, tolerance); },
      [&](double a, double e) { return close(a, e, tolerance); });
}
Comparison compare_bits(std::span<const float> actual, std::span<const float> expected, std::vector<int64_t> sizes) {
  return compare_cells(
      actual, expected, std::move(sizes), [](float e) { return shifted(e, 0.0f); }, same_bits);
}

double max_row_sum_error(std::span<const float> actual, int64_t rows, int64_t columns) {
  require_elements("max_row_sum_error: actual", actual.size(), {rows, columns});
  const double one = shifted(1.0, {.absolute = ROW_SUM_TOLERANCE});
  double largest = 0;
  for (auto row = actual.begin(); row != actual.end(); row += columns)
    largest = std::max(largest, nan_to_infinity(std::abs(std::accumulate(row, row + columns, 0.0) - one)));
  return largest;
}

bool rejects_zeros(std::span<const double> expected, Tolerance tolerance) {
  const auto nonzero = std::ssize(expected) - std::ranges::count(expected, 0.0);
  const auto accepting = std::ranges::count_if(expected, [&](double e) { return e != 0 && close(0, e, tolerance); });
  return nonzero > 0 && accepting * 100 <= nonzero;
}

void require_elements(const char* name, std::size_t elements, const std::vector<int64_t>& sizes) {
  double product = 1;  // exact as far as memory reaches, and cannot wrap
  std::string shape;
  for (int64_t size : sizes) {
    product *= size < 0 ? NAN : static_cast<double>(size);
    shape += (shape.empty() ? "" : " x ") + std::to_string(size);
  }
  if (product != static_cast<double>(elements))
    throw std::length_error(name + (" has " + std::to_string(elements)) + " elements, must have " + shape);
}
}  // namespace ladder
