// Views: strides of contiguous ones, what they span, and that a span which overflows is no small number.
#include "common/kernel/view.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <type_traits>

#include "tests/expect.hpp"

using namespace ladder;

static constexpr int64_t LARGEST = std::numeric_limits<int64_t>::max();

template <int RANK>
static View<float, RANK> view_of(std::array<int64_t, RANK> sizes, std::array<int64_t, RANK> strides) {
  return {nullptr, sizes, strides, 0};
}

TEST_CASE("a contiguous view runs along the last axis, and reaches no further than its elements") {
  float memory[120];
  const auto view = contiguous(memory, 2, 3, 4, 5);
  static_assert(std::is_same_v<decltype(view), const Heads<float>>);
  CHECK(view.data == memory);
  CHECK(view.sizes == std::array<int64_t, 4>{2, 3, 4, 5});
  CHECK(view.strides == std::array<int64_t, 4>{60, 20, 5, 1});
  CHECK(view.extent == exactly(120));
  CHECK(contiguous(memory, 7).strides == std::array<int64_t, 1>{1});
  CHECK(contiguous(memory, 7).extent == exactly(7));
}

TEST_CASE("a contiguous view with a size of 0 is empty, and its strides stay strides") {
  float memory[1];
  const auto view = contiguous(memory, 3, 0, 5);
  CHECK(view.empty());
  CHECK(view.extent == exactly(0));
  CHECK(view.strides == std::array<int64_t, 3>{5, 5, 1});
}

TEST_CASE("sizes of any integer type") {
  float memory[6];
  CHECK(contiguous(memory, std::size_t{2}, short{3}).sizes == std::array{exactly<int64_t>(2), exactly<int64_t>(3)});
}

TEST_CASE("a default view is empty") {
  CHECK(Matrix<float>{}.empty());
  CHECK(Matrix<float>{}.span() == exactly(0));
  CHECK(Matrix<float>{}.data == nullptr);
}

TEST_CASE("any view may be read, none that is read-only may be written") {
  float memory[6];
  const Matrix<float> view = contiguous(memory, 2, 3);
  const Matrix<const float> read = view;
  CHECK(read.data == view.data);
  CHECK(read.sizes == view.sizes);
  CHECK(read.strides == view.strides);
  CHECK(read.extent == view.extent);
  static_assert(!std::is_convertible_v<Matrix<const float>, Matrix<float>>);
}

TEST_CASE("the span reaches from the first element to the last") {
  CHECK(view_of<1>({4}, {2}).span() == exactly(7));
  CHECK(view_of<1>({1}, {1000}).span() == exactly(1));
  CHECK(view_of<1>({4}, {0}).span() == exactly(1));
  CHECK(view_of<2>({4, 5}, {8, 1}).span() == exactly(29));  // rows with gaps
  CHECK(view_of<2>({5, 4}, {1, 5}).span() == exactly(20));  // transposed
  CHECK(view_of<2>({4, 5}, {5, 0}).span() == exactly(16));  // broadcast columns
  CHECK(view_of<2>({0, 5}, {8, 1}).span() == exactly(0));
  CHECK(view_of<2>({5, 0}, {LARGEST, LARGEST}).span() == exactly(0));
}

TEST_CASE("BC-007, BC-077: a span that overflows 64 bits is INT64_MAX, not a small number") {
  CHECK(view_of<1>({LARGEST}, {1}).span() == exactly(LARGEST));
  CHECK(view_of<1>({LARGEST}, {2}).span() == exactly(LARGEST));
  CHECK(view_of<1>({2}, {LARGEST}).span() == exactly(LARGEST));      // LARGEST + 1
  CHECK(view_of<1>({2}, {LARGEST - 1}).span() == exactly(LARGEST));  // exactly
  CHECK(view_of<1>({2}, {LARGEST - 2}).span() == exactly(LARGEST - 1));
  CHECK(view_of<2>({2, 2}, {LARGEST, LARGEST}).span() == exactly(LARGEST));  // the sum overflows
  CHECK(view_of<2>({(int64_t{1} << 32) + 1, 1}, {int64_t{1} << 32, 1}).span() == exactly(LARGEST));  // 2^64 wraps to 0
  CHECK(view_of<2>({(int64_t{1} << 31) + 1, 3}, {4, 1}).span() == exactly((int64_t{1} << 33) + 3));
  CHECK(view_of<4>({1, 1, 16'777'216, 64}, {0, 0, 64, 1}).span() == exactly(int64_t{1} << 30));
}

TEST_CASE("span against a walk over every element") {
  CHECK_PROPERTY([] {
    const auto small = [](int64_t lowest) { return *rc::gen::inRange<int64_t>(lowest, 6); };
    const auto view = view_of<3>({small(0), small(0), small(0)}, {small(0), small(0), small(0)});
    int64_t furthest = -1;
    for (int64_t i = 0; i < view.sizes[0]; ++i)
      for (int64_t j = 0; j < view.sizes[1]; ++j)
        for (int64_t k = 0; k < view.sizes[2]; ++k)
          furthest = std::max(furthest, i * view.strides[0] + j * view.strides[1] + k * view.strides[2]);
    RC_ASSERT(view.span() == exactly(furthest + 1));
    RC_ASSERT(view.empty() == (furthest < 0));
  });
}
