// Says where and by how much two tensors differ, so that no NaN, no unwritten cell and no empty tensor passes unseen.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ladder {
/// An element matches when |actual - expected| <= absolute + relative * |expected|.
struct Tolerance {
  double absolute = 0;  ///< In the unit of the elements.
  double relative = 0;  ///< As a part of |expected|.
};

/// What a comparison found. An element is named by its row-major index; -1 stands for none.
struct Comparison {
  std::vector<int64_t> sizes;    ///< The shape of both tensors.
  int64_t compared = 0;          ///< Elements of it.
  int64_t mismatched = 0;        ///< The unwritten ones included.
  int64_t unwritten = 0;         ///< Cells that still hold the poison of a fresh Buffer, whatever was expected there.
  int64_t first_unwritten = -1;  ///< The first of them.
  double max_abs_diff = 0;       ///< Over the written cells; infinite where a NaN or an infinity faces another value.
  double max_rel_diff = 0;       ///< |actual - expected| / |expected|, likewise.
  int64_t worst_index = -1;      ///< The written cell that differs most; a mismatch comes before any match.
  double worst_actual = 0;       ///< What stands there.
  double worst_expected = 0;     ///< What should.

  /// True also for two empty tensors: `compared` is 0 then, and describe() says so.
  bool matches() const { return mismatched == 0; }
  /// "3 of 20 differ; worst at (1, 4): 0.25, expected 0.5, |difference| 0.25; 2 of them never written, first at (0, 3)"
  std::string describe() const;
};

/// Compares element by element. Two NaNs match, and so do equal infinities; an expected value too large for a float
/// counts as infinite. Throws std::length_error unless both have as many elements as `sizes`.
Comparison compare(std::span<const float> actual, std::span<const double> expected, std::vector<int64_t> sizes,
                   Tolerance tolerance);
/// Compares bit by bit: 0 and -0 differ. Two NaNs still match, since devices make different ones.
Comparison compare_bits(std::span<const float> actual, std::span<const float> expected, std::vector<int64_t> sizes);

/// The sum of a right row of a softmax is off 1 by no more than this.
inline constexpr double ROW_SUM_TOLERANCE = 1e-6;
/// The largest |sum - 1| of the rows of a (rows, columns) softmax, in double: infinite for a NaN, 0 without elements.
double max_row_sum_error(std::span<const float> actual, int64_t rows, int64_t columns);

/// True when a 0 would be refused at 99 of 100 of the elements that should not be 0, and there are such: then neither
/// zeros throughout nor a zeroed tail can match. At 2000 columns a softmax averages 5e-4; 1e-3 would accept both.
bool rejects_zeros(std::span<const double> expected, Tolerance tolerance);

/// For the test of the tests (tests/shift.hpp), which sets `on`: all that a comparison expects is then three tolerances
/// off, or the next number where the tolerance is 0; a NaN and an infinity are 0. A test that still passes is blind.
struct ReferenceShift {
  bool on = false;       ///< References are shifted from here on.
  int64_t compared = 0;  ///< Values so far, whether shifted or not.
};
/// The program's own.
extern ReferenceShift reference_shift;
/// What a comparison expects in the place of `expected`: itself, unless references are shifted.
double shifted(double expected, Tolerance tolerance);

/// Throws std::length_error unless `sizes` are at least 0 and multiply to `elements`. `name` says whose elements.
void require_elements(const char* name, std::size_t elements, const std::vector<int64_t>& sizes);
}  // namespace ladder
