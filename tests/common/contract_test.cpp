// A launcher's checks: every hostile view is refused in one line that names argument, value and limit, and no legal
// one.
#include "common/kernel/contract.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "tests/expect.hpp"

using namespace ladder;

static constexpr int64_t LARGEST = std::numeric_limits<int64_t>::max(), LOWEST = std::numeric_limits<int64_t>::min();

static float memory[4096];

static Matrix<float> matrix(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride,
                            int64_t extent = 4096, float* data = memory) {
  return {data, {rows, columns}, {row_stride, column_stride}, extent};
}

TEST_CASE("a refusal names function, argument, value and limit, and is a std::invalid_argument") {
  CHECK_REFUSED(refuse("softmax", "p", "2", "at most 1"), "softmax: p is 2, must be at most 1");
  CHECK_THROWS_AS(refuse("softmax", "p", "2", "at most 1"), std::invalid_argument);
}

TEST_CASE("a range includes both ends") {
  for (int64_t value : {-3, 0, 5}) CHECK_NOTHROW(require_range("f", "n", value, -3, 5));
  CHECK_NOTHROW(require_range("f", "n", LOWEST, LOWEST, LARGEST));
  CHECK_NOTHROW(require_range("f", "n", LARGEST, LOWEST, LARGEST));
  CHECK_REFUSED(require_range("f", "n", -4, -3, 5), "f: n is -4, must be at least -3");
  CHECK_REFUSED(require_range("f", "n", 6, -3, 5), "f: n is 6, must be at most 5");
  CHECK_REFUSED(require_range("f", "n", LOWEST, 0, 5), "f: n is -9223372036854775808, must be at least 0");
  CHECK_REFUSED(require_range("f", "n", LARGEST, 0, 5), "f: n is 9223372036854775807, must be at most 5");
}

TEST_CASE("legal views pass: gaps, transposed, broadcast, one element, the whole extent") {
  for (const Matrix<float>& view :
       {contiguous(memory, 64, 64), matrix(4, 5, 8, 1, 29), matrix(5, 4, 1, 5, 20), matrix(7, 4, 0, 1, 4),
        matrix(1, 1, LARGEST, LARGEST, 1), matrix(1, 1, 0, 0, 1), matrix(64, 64, 64, 1, 4096)})
    CHECK_NOTHROW(require_view("f", "x", view));
}

TEST_CASE("BC-001, BC-027: an empty view needs no memory") {
  for (const Matrix<float>& view : {Matrix<float>{}, matrix(0, 5, 5, 1, 0, nullptr), matrix(5, 0, 0, 1, 0, nullptr),
                                    matrix(LARGEST, 0, LARGEST, LARGEST, 0, nullptr)})
    CHECK_NOTHROW(require_view("f", "x", view));
}

TEST_CASE("negative sizes and strides are refused, also where another axis is empty") {
  CHECK_REFUSED(require_view("f", "x", matrix(-1, 5, 5, 1)), "f: x.sizes[0] is -1, must be at least 0");
  CHECK_REFUSED(require_view("f", "x", matrix(5, -1, 5, 1)), "f: x.sizes[1] is -1, must be at least 0");
  CHECK_REFUSED(require_view("f", "x", matrix(-1, -1, 1, 1)), "f: x.sizes[0] is -1, must be at least 0");
  CHECK_REFUSED(require_view("f", "x", matrix(0, -7, 1, 1)), "f: x.sizes[1] is -7, must be at least 0");
  CHECK_REFUSED(require_view("f", "x", matrix(LOWEST, 5, 5, 1)),
                "f: x.sizes[0] is -9223372036854775808, must be at least 0");
  CHECK_REFUSED(require_view("f", "x", matrix(5, 5, -5, 1)), "f: x.strides[0] is -5, must be at least 0");
  CHECK_REFUSED(require_view("f", "x", matrix(5, 5, 5, -1)), "f: x.strides[1] is -1, must be at least 0");
  CHECK_REFUSED(require_view("f", "x", matrix(5, 5, LOWEST, 1)),
                "f: x.strides[0] is -9223372036854775808, must be at least 0");
  CHECK_REFUSED(require_view("f", "x", contiguous(memory, -4)), "f: x.sizes[0] is -4, must be at least 0");
}

TEST_CASE("BC-009: a view that reaches past its extent is refused, by one element or by all of the address space") {
  const auto refused = [](const Matrix<float>& view, const std::string& extent, const std::string& span) {
    CHECK_REFUSED(require_view("add", "y", view),
                  "add: y.extent is " + extent + ", must be at least " + span + ", which its sizes and strides reach");
  };
  CHECK_REFUSED(require_view("add", "y", (Vector<float>{memory, {4}, {2}, 5})),
                "add: y.extent is 5, must be at least 7, which its sizes and strides reach");
  refused(matrix(4, 5, 8, 1, 28), "28", "29");
  refused(matrix(1, 1, 1, 1, 0), "0", "1");
  refused(matrix(1, 1, 1, 1, -1), "-1", "1");
  refused(matrix(4, 5, 8, 1, LOWEST), "-9223372036854775808", "29");
  refused(matrix(LARGEST, 2, 2, 1), "4096", "9223372036854775807");
  refused(matrix(2, 2, LARGEST, LARGEST), "4096", "9223372036854775807");
  refused(matrix((int64_t{1} << 32) + 1, 1, int64_t{1} << 32, 1), "4096", "9223372036854775807");  // 2^64 wraps to 0
}

TEST_CASE("BC-077: a view whose bytes no 64-bit number counts is refused, whatever extent it claims") {
  const auto refused = [](const auto& view) {
    CHECK_REFUSED(require_view("f", "x", view),
                  "f: the span of x is " + std::to_string(view.span()) + ", must be at most 2305843009213693951");
  };
  refused(Vector<float>{memory, {int64_t{1} << 62}, {1}, LARGEST});
  refused(Vector<float>{memory, {int64_t{1} << 61}, {1}, LARGEST});
  refused(contiguous(memory, int64_t{1} << 40, int64_t{1} << 40));  // the stride itself overflows
  refused(contiguous(memory, 2, int64_t{1} << 40, int64_t{1} << 40));
  CHECK_NOTHROW(require_view("f", "x", Vector<float>{memory, {(int64_t{1} << 61) - 1}, {1}, LARGEST}));
}

TEST_CASE("null and misaligned pointers are refused") {
  CHECK_REFUSED(require_view("f", "x", matrix(4, 5, 8, 1, 29, nullptr)),
                "f: x.data is null, must be a pointer to 29 elements");
  for (std::uintptr_t offset : {1u, 2u, 3u}) {
    auto* const data = reinterpret_cast<float*>(reinterpret_cast<std::uintptr_t>(memory) + offset);
    CHECK_REFUSED(
        require_view("f", "x", matrix(4, 5, 5, 1, 20, data)),
        "f: x.data is " + std::to_string(offset) + " bytes off its alignment, must be at a multiple of 4 bytes");
  }
  CHECK_NOTHROW(require_view("f", "x", matrix(4, 5, 5, 1, 20, memory + 1)));
}

TEST_CASE("shapes must agree on every axis") {
  const auto x = contiguous(memory, 3, 4);
  CHECK_NOTHROW(require_same_sizes("f", "y", matrix(3, 4, 100, 1), "x", x));
  CHECK_REFUSED(require_same_sizes("f", "y", contiguous(memory, 5, 4), "x", x),
                "f: y.sizes[0] is 5, must be 3, as of x");
  CHECK_REFUSED(require_same_sizes("f", "y", contiguous(memory, 3, 0), "x", x),
                "f: y.sizes[1] is 0, must be 4, as of x");
  CHECK_REFUSED(require_same_sizes("f", "y", contiguous(memory, 4, 3), "x", x),
                "f: y.sizes[0] is 4, must be 3, as of x");
}

TEST_CASE("BC-041, BC-066: the last stride must be 1, unless that axis has one element or none") {
  CHECK_NOTHROW(require_unit_last_stride("f", "x", matrix(4, 5, 5, 1)));
  for (int64_t columns : {0, 1})
    for (int64_t stride : {int64_t{0}, int64_t{2}, LARGEST})
      CHECK_NOTHROW(require_unit_last_stride("f", "x", matrix(4, columns, 5, stride)));
  CHECK_REFUSED(require_unit_last_stride("f", "x", matrix(5, 4, 1, 5)), "f: x.strides[1] is 5, must be 1");
  CHECK_REFUSED(require_unit_last_stride("f", "x", matrix(5, 2, 1, 0)), "f: x.strides[1] is 0, must be 1");
  CHECK_REFUSED(require_unit_last_stride("f", "x", (Vector<float>{memory, {2}, {2}, 9})),
                "f: x.strides[0] is 2, must be 1");
}

TEST_CASE("BC-040, BC-072: an output may have gaps, but no two elements in one cell") {
  for (const Matrix<float>& view :
       {contiguous(memory, 4, 5), matrix(4, 5, 7, 1), matrix(5, 4, 1, 5), matrix(1, 5, 0, 1), matrix(4, 1, 1, 0),
        matrix(1, 1, 0, 0), matrix(0, 5, 0, 0), matrix(5, 0, 0, 0), matrix(4, 5, 10, 2), matrix(3, 4, 1, 3)})
    CHECK_NOTHROW(require_distinct_cells("f", "out", view));
  CHECK_REFUSED(require_distinct_cells("f", "out", matrix(4, 5, 4, 1)),
                "f: out.strides[0] is 4, must be at least 5, or its elements would share cells");
  CHECK_REFUSED(require_distinct_cells("f", "out", matrix(4, 5, 0, 1)),
                "f: out.strides[0] is 0, must be at least 1, or its elements would share cells");
  CHECK_REFUSED(require_distinct_cells("f", "out", matrix(4, 5, 5, 0)),
                "f: out.strides[1] is 0, must be at least 1, or its elements would share cells");
  CHECK_REFUSED(require_distinct_cells("f", "out", matrix(2, 2, 1, 1)),
                "f: out.strides[1] is 1, must be at least 2, or its elements would share cells");
  CHECK_REFUSED(require_distinct_cells("f", "out", matrix(5, 4, 1, 4)),
                "f: out.strides[1] is 4, must be at least 5, or its elements would share cells");
  const Heads<float> interleaved{memory, {2, 3, 4, 5}, {60, 5, 15, 1}, 120};  // (batch, sequence, head, dimension)
  CHECK_NOTHROW(require_distinct_cells("f", "out", interleaved));
  const Heads<float> broadcast{memory, {2, 3, 4, 5}, {20, 0, 5, 1}, 120};
  CHECK_REFUSED(require_distinct_cells("f", "out", broadcast),
                "f: out.strides[1] is 0, must be at least 1, or its elements would share cells");
}

TEST_CASE("no output with a shared cell passes") {
  CHECK_PROPERTY([] {
    const auto draw = [](int64_t highest) { return *rc::gen::inRange<int64_t>(0, highest + 1); };
    const View<float, 3> view{memory, {draw(4), draw(4), draw(4)}, {draw(12), draw(12), draw(12)}, 4096};
    std::vector<int> owners(128);
    for (int64_t i = 0; i < view.sizes[0]; ++i)
      for (int64_t j = 0; j < view.sizes[1]; ++j)
        for (int64_t k = 0; k < view.sizes[2]; ++k)
          ++owners[static_cast<std::size_t>(i * view.strides[0] + j * view.strides[1] + k * view.strides[2])];
    const bool shared = std::ranges::any_of(owners, [](int count) { return count > 1; });
    const bool refused =
        message_of<InvalidArgument>([&] { require_distinct_cells("f", "out", view); }).starts_with("f: ");
    RC_ASSERT(refused || !shared);
  });
}

TEST_CASE("the same cells: one pointer, one shape, one set of strides where they mean something") {
  const auto x = contiguous(memory, 4, 5);
  CHECK(same_cells(x, Matrix<const float>(x)));
  CHECK(same_cells(matrix(1, 5, 99, 1), matrix(1, 5, 5, 1)));
  CHECK_FALSE(same_cells(contiguous(memory + 1, 4, 5), x));
  CHECK_FALSE(same_cells(contiguous(memory, 5, 4), x));
  CHECK_FALSE(same_cells(matrix(4, 5, 6, 1), x));
  CHECK_FALSE(same_cells(matrix(3, 5, 5, 1), x));
}

TEST_CASE("spans overlap when they have a byte in common") {
  const auto first = contiguous(memory, 10);
  CHECK(spans_overlap(first, first));
  CHECK(spans_overlap(first, contiguous(memory + 9, 10)));
  CHECK(spans_overlap(contiguous(memory + 9, 10), first));
  CHECK(spans_overlap(first, contiguous(memory + 4, 1)));
  CHECK_FALSE(spans_overlap(first, contiguous(memory + 10, 10)));
  CHECK_FALSE(spans_overlap(contiguous(memory + 10, 10), first));
  CHECK_FALSE(spans_overlap(first, contiguous(memory + 4, 0)));
  CHECK_FALSE(spans_overlap(contiguous(memory + 4, 0), first));
  const auto bytes = contiguous(reinterpret_cast<unsigned char*>(memory), 40);
  CHECK(spans_overlap(contiguous(memory + 9, 1), bytes));
  CHECK_FALSE(spans_overlap(contiguous(memory + 10, 1), bytes));
}

TEST_CASE("BC-010: an output may be its input exactly, or lie apart; nothing in between") {
  const auto x = contiguous(memory, 100);
  const auto check = [&](const Vector<float>& out) { require_no_partial_overlap("add", "out", out, "x", x); };
  CHECK_NOTHROW(check(x));
  CHECK_NOTHROW(check(contiguous(memory + 100, 100)));
  CHECK_NOTHROW(check(contiguous(memory + 1, 0)));
  const std::string refusal = "add: out.data is inside x, must be apart from it, or the same view";
  CHECK_REFUSED(check(contiguous(memory + 1, 100)), refusal);
  CHECK_REFUSED(check(contiguous(memory + 99, 100)), refusal);
  CHECK_REFUSED(check(contiguous(memory, 99)), refusal);
  CHECK_REFUSED(check((Vector<float>{memory, {100}, {2}, 4096})), refusal);
  CHECK_REFUSED(require_no_partial_overlap("add", "out", x, "x", contiguous(memory + 1, 100)), refusal);
  CHECK_NOTHROW(require_no_partial_overlap("f", "out", Vector<float>{}, "x", Vector<float>{}));
}

TEST_CASE("an output that may not share memory with an input lies apart from it, or is empty") {
  const auto x = contiguous(memory, 100);
  const auto check = [&](const Vector<float>& out) { require_no_overlap("attention", "out", out, "q", x); };
  CHECK_NOTHROW(check(contiguous(memory + 100, 100)));
  CHECK_NOTHROW(check(contiguous(memory + 1, 0)));
  const std::string refusal = "attention: out.data is inside q, must be apart from it";
  CHECK_REFUSED(check(x), refusal);
  CHECK_REFUSED(check(contiguous(memory + 99, 100)), refusal);
}
