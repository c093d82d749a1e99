// The softmax matrix: shapes, and for a launcher the list of those that it gets wrong, and how. Rungs 03 and 04 share
// it; each of their test programs names its own launcher.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "common/harness/buffer.hpp"
#include "common/harness/compare.hpp"
#include "common/harness/inputs.hpp"
#include "common/harness/reference.hpp"
#include "common/kernel/stream.hpp"
#include "common/kernel/view.hpp"

struct SoftmaxUnderTest {
  void (*launch)(ladder::Matrix<const float> input, ladder::Matrix<float> output, cudaStream_t stream);
  int64_t widest;                // the widest row that it gets right
  const char* name = "softmax";  // as its refusals begin
};
extern const SoftmaxUnderTest SOFTMAX;  // defined by each test program

// x - max rounds to half an ulp of at most 16, and exp passes that on: 4.8e-7 of a result, and the sum and the division
// come on top.
inline constexpr ladder::Tolerance SOFTMAX_TOLERANCE{.absolute = 0, .relative = 2e-6};

struct Shape {
  int64_t rows, columns;
  bool operator==(const Shape&) const = default;
};

// Every width around a warp, a block and a power of two; every number of rows around a warp.
inline std::vector<Shape> softmax_shapes() {
  std::vector<Shape> shapes{{4, 5}, {4, 1537}, {4, 2000}, {7, 3000}, {2, 10000}};
  for (int64_t columns = 1; columns <= 1100; ++columns) shapes.push_back({2, columns});
  for (int64_t power = 2048; power <= 16384; power *= 2)
    for (int64_t columns : {power - 1, power, power + 1}) shapes.push_back({3, columns});
  for (int64_t columns : {32767, 32768}) shapes.push_back({3, columns});
  for (int64_t rows : {1, 2, 31, 32, 33})
    for (int64_t columns : {1, 5, 33, 1000, 1023, 1024, 1025, 2000}) shapes.push_back({rows, columns});
  return shapes;
}

struct Failure {
  Shape shape;
  int64_t unwritten_from;  // row 0 is written up to this column, which is shape.columns when all of it is
  std::string also;        // anything but: each row is written up to there, as the softmax of those columns alone
  bool operator==(const Failure&) const = default;
};

// One failure a line: what a test compares and prints.
inline std::string listing(const std::vector<Failure>& failures) {
  std::string text;
  for (const Failure& failure : failures)
    text += "(" + std::to_string(failure.shape.rows) + ", " + std::to_string(failure.shape.columns) +
            ") written up to " + std::to_string(failure.unwritten_from) + (failure.also.empty() ? "" : "; ") +
            failure.also + "\n";
  return text;
}

// Runs one shape, with gaps of NaN between the rows of the input and of poison between those of the output.
inline Failure run_shape(const SoftmaxUnderTest& softmax, Shape shape) {
  using namespace ladder;
  const auto [rows, columns] = shape;
  const int64_t input_stride = columns + 3, output_stride = columns + 5;
  const std::vector<float> x = normal(rows * columns, static_cast<uint64_t>(columns));
  std::vector<float> strided(static_cast<std::size_t>(rows * input_stride), std::numeric_limits<float>::quiet_NaN());
  for (int64_t row = 0; row < rows; ++row)
    std::copy_n(x.begin() + row * columns, columns, strided.begin() + row * input_stride);
  const Buffer<float> input("input", strided), output("output", rows * output_stride);
  softmax.launch({input.data(), {rows, columns}, {input_stride, 1}, input.size()},
                 {output.data(), {rows, columns}, {output_stride, 1}, output.size()}, nullptr);
  const std::vector<float> result = output.download();

  const auto unwritten = [](float value) { return std::bit_cast<uint32_t>(value) == 0xffffffffu; };
  const int64_t written = std::find_if(result.begin(), result.begin() + columns, unwritten) - result.begin();
  Failure failure{shape, written, ""};
  std::vector<float> x_part, result_part;
  for (int64_t row = 0; row < rows; ++row) {
    const auto start = result.begin() + row * output_stride, end = start + output_stride;
    if (const auto stray = std::find_if_not(start + written, end, unwritten); stray != end && failure.also.empty())
      failure.also = "but (" + std::to_string(row) + ", " + std::to_string(stray - start) + ") too";
    x_part.insert(x_part.end(), x.begin() + row * columns, x.begin() + row * columns + written);
    result_part.insert(result_part.end(), start, start + written);
  }
  const std::vector<double> expected = reference_softmax(x_part, rows, written);
  const Comparison difference = compare(result_part, expected, {rows, written}, SOFTMAX_TOLERANCE);
  if (!difference.matches()) failure.also += difference.describe();
  if (written > 0 && !rejects_zeros(expected, SOFTMAX_TOLERANCE)) failure.also += "the tolerance accepts zeros";
  if (!(max_row_sum_error(result_part, rows, written) <= ROW_SUM_TOLERANCE)) failure.also += "the rows do not sum to 1";
  if (!input.guards_intact() || !output.guards_intact()) failure.also += "a guard was written";
  return failure;
}

// Runs a contiguous matrix and compares it with the reference; an empty text when all is well. `tolerance` may be {}:
// to the bit.
inline std::string difference_of(const SoftmaxUnderTest& softmax, const std::vector<float>& x, int64_t rows,
                                 int64_t columns, ladder::Tolerance tolerance = SOFTMAX_TOLERANCE) {
  using namespace ladder;
  const Buffer<float> input("input", x), output("output", rows * columns);
  softmax.launch(input.view(rows, columns), output.view(rows, columns), nullptr);
  const Comparison difference =
      compare(output.download(), reference_softmax(x, rows, columns), {rows, columns}, tolerance);
  return difference.matches()
             ? ""
             : "(" + std::to_string(rows) + ", " + std::to_string(columns) + ") " + difference.describe() + "\n";
}

// Rows of what no finite number may stand in for: as low as a float goes, with a NaN or an infinity in any column, and
// with one column that takes all.
inline std::string failing_extremes(const SoftmaxUnderTest& softmax) {
  constexpr float INF = std::numeric_limits<float>::infinity(), LOWEST = std::numeric_limits<float>::lowest();
  std::string failures;
  for (int64_t columns : {1, 3, 4, 5, 8, 12, 33, 64, 1000, 1001, 1024}) {
    const auto n = static_cast<std::size_t>(columns);
    for (const float low : {-1e6f, -1e12f, -1e30f, LOWEST})
      failures += difference_of(softmax, std::vector<float>(2 * n, low), 2, columns);
    for (std::size_t place = 0; place < std::min<std::size_t>(n, 12); ++place) {
      for (const float special : {std::numeric_limits<float>::quiet_NaN(), INF, -INF}) {
        std::vector<float> x = ladder::normal(2 * columns, 1);
        x[place] = special;
        failures += difference_of(softmax, x, 2, columns);
      }
      std::vector<float> x(2 * n, -1000.0f);
      x[place] = 5;
      x[n + place] = -3;
      failures += difference_of(softmax, x, 2, columns, {});
    }
  }
  return failures;
}

/// The shapes that `softmax` gets wrong. A launcher that throws fails the test that calls this.
inline std::vector<Failure> failing_shapes(const SoftmaxUnderTest& softmax, const std::vector<Shape>& shapes) {
  std::vector<Failure> failures;
  for (const Shape& shape : shapes) {
    Failure failure = run_shape(softmax, shape);
    if (failure != Failure{shape, shape.columns, ""}) failures.push_back(std::move(failure));
  }
  return failures;
}
