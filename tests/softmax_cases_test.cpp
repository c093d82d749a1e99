// What rungs 03 and 04 have in common: all that must hold up to the widest row that the launcher under test gets right.
// Wider rows are left to the tests of each rung. Expected values are literal, or from the reference in double.
#include <cmath>

#include "tests/expect.hpp"
#include "tests/softmax_matrix.hpp"

namespace {

using namespace ladder;

constexpr float INF = std::numeric_limits<float>::infinity(), NOT_A_NUMBER = std::numeric_limits<float>::quiet_NaN();

// The output for a contiguous (rows, columns) input, out of place.
std::vector<float> softmax(const std::vector<float>& x, int64_t rows, int64_t columns) {
  const Buffer<float> input("input", x), output("output", rows * columns);
  SOFTMAX.launch(input.view(rows, columns), output.view(rows, columns), nullptr);
  CHECK(output.guards_intact());
  return output.download();
}

void check(const std::vector<float>& x, int64_t rows, int64_t columns, const std::vector<double>& expected,
           Tolerance tolerance = SOFTMAX_TOLERANCE) {
  CAPTURE(rows);
  CAPTURE(columns);
  const Comparison difference = compare(softmax(x, rows, columns), expected, {rows, columns}, tolerance);
  CHECK_MESSAGE(difference.matches(), difference.describe());
}

// A row of equal values: each comes out as 1 / columns.
void check_equal(int64_t rows, int64_t columns, float value) {
  const auto cells = static_cast<std::size_t>(rows * columns);
  check(std::vector<float>(cells, value), rows, columns,
        std::vector<double>(cells, 1.0 / static_cast<double>(columns)));
}

std::vector<int64_t> not_wider(std::vector<int64_t> widths) {
  std::erase_if(widths, [](int64_t columns) { return columns > SOFTMAX.widest; });
  return widths;
}

}  // namespace

TEST_CASE("BC-027: no rows or no columns: nothing is launched, and the next call is right") {
  const Buffer<float> output("output", 5);
  for (const Shape shape : {Shape{0, 5}, Shape{4, 0}, Shape{0, 0}}) {
    const int64_t rows = shape.rows, columns = shape.columns;
    const Launches none = count_launches([&] {
      SOFTMAX.launch(contiguous<const float>(nullptr, rows, columns), contiguous<float>(nullptr, rows, columns),
                     nullptr);
      SOFTMAX.launch(output.view(rows, columns), output.view(rows, columns), nullptr);
    });
    CHECK(none.kernels == exactly(0));
  }
  CHECK(untouched(output));
  check_same(softmax({-3.0f}, 1, 1), std::vector<float>{1.0f});
}

TEST_CASE("BC-030: every width in two rows of zeros, where a last warp is partly filled") {
  for (int64_t columns = 2; columns <= std::min<int64_t>(1100, SOFTMAX.widest); ++columns)
    check_equal(2, columns, 0.0f);
}

TEST_CASE("BC-031: threads without a column do not make NaN of exp(-inf - -inf)") {
  for (int64_t columns : {1, 2, 3, 5, 17, 31, 32, 33}) check_equal(1, columns, -3.0f);
}

TEST_CASE("BC-032: rows that start off 16-byte alignment") {
  for (const auto& [rows, columns] : {Shape{3, 3}, Shape{3, 5}, Shape{2, 1023}, Shape{2, 1025}}) {
    if (columns > SOFTMAX.widest) continue;
    std::vector<float> x;
    for (int64_t i = 0; i < rows * columns; ++i) x.push_back(static_cast<float>(i % columns));
    check(x, rows, columns, reference_softmax(x, rows, columns), {.absolute = 1e-38, .relative = 2e-6});
  }
}

TEST_CASE("BC-033: a row of nothing but -inf is NaN, and its neighbours are not") {
  std::vector<float> x(15, 0.0f);
  std::fill_n(x.begin() + 5, 5, -INF);
  std::vector<double> expected(15, 0.2);
  std::fill_n(expected.begin() + 5, 5, NOT_A_NUMBER);
  check(x, 3, 5, expected);
}

TEST_CASE("BC-034: one finite value among -inf takes all, wherever it stands") {
  check({-INF, 0, -INF}, 1, 3, {0, 1, 0});
  const int64_t columns = SOFTMAX.widest;
  for (int64_t place : {int64_t{0}, columns / 2, columns - 1}) {
    std::vector<float> x(static_cast<std::size_t>(columns), -INF);
    std::vector<double> expected(x.size(), 0.0);
    x[static_cast<std::size_t>(place)] = 10;
    expected[static_cast<std::size_t>(place)] = 1;
    check(x, 1, columns, expected);
  }
}

TEST_CASE("BC-035: +inf makes its row NaN, and no other") {
  const double nan = NOT_A_NUMBER, third = 1.0 / 3;
  check({0, INF, 0, 0, 0, 0}, 2, 3, {nan, nan, nan, third, third, third});
  check({INF, INF}, 1, 2, {nan, nan});
  check({INF, -INF}, 1, 2, {nan, nan});
}

TEST_CASE("BC-036: NaN makes its row NaN, its -inf too, and no other") {
  const double nan = NOT_A_NUMBER;
  check({1, NOT_A_NUMBER, 2, -INF, 0, 0, 0, 0}, 2, 4, {nan, nan, nan, nan, 0.25, 0.25, 0.25, 0.25});
  check({NOT_A_NUMBER}, 1, 1, {nan});
  for (int64_t columns : not_wider({33, 1000, 2000}))
    for (int64_t place : {int64_t{0}, columns - 1}) {
      std::vector<float> x = normal(columns, 1);
      x[static_cast<std::size_t>(place)] = NOT_A_NUMBER;
      check(x, 1, columns, std::vector<double>(x.size(), nan));
    }
}

TEST_CASE("rows as low as a float goes, a NaN or an infinity in any column, one column that takes all") {
  CHECK(failing_extremes(SOFTMAX) == "");
}

TEST_CASE("one row of every width up to 70") {
  for (int64_t columns = 1; columns <= 70; ++columns) {
    const std::vector<float> x = normal(columns, static_cast<uint64_t>(columns));
    check(x, 1, columns, reference_softmax(x, 1, columns));
  }
}

TEST_CASE("BC-037: a maximum far below 0") {
  check({-10000, -10000}, 1, 2, {0.5, 0.5});
  check({-10200, -10201, -200, -201}, 2, 2, {0.7310585786, 0.2689414214, 0.7310585786, 0.2689414214});
}

TEST_CASE("BC-038: values whose exp is infinite") {
  check({88.72284f}, 1, 1, {1});
  check({1000, 1000, -1000, 3e38f, 3e38f, 0}, 2, 3, {0.5, 0.5, 0, 0.5, 0.5, 0});
  check({3e38f, -3e38f}, 1, 2, {1, 0});  // x - max overflows to -inf, and exp of that is 0
}

TEST_CASE("BC-039: the masked tail does not win over a row that is negative throughout") {
  check_equal(1, 5, -50.0f);
  for (int64_t columns : not_wider({1023, 1025})) check_equal(1, columns, -90.0f);
}

TEST_CASE("BC-040: row strides of their own, and gaps that nobody reads or writes") {
  std::vector<float> x(4 * 8, NOT_A_NUMBER), row;
  for (int64_t i = 0; i < 20; ++i) x[static_cast<std::size_t>(i / 5 * 8 + i % 5)] = static_cast<float>(i % 5);
  const Buffer<float> input("input", x);
  Buffer<float> output("output", 3 * 7 + 5);
  output.fill(-777.0f);
  SOFTMAX.launch({input.data(), {4, 5}, {8, 1}, 32}, {output.data(), {4, 5}, {7, 1}, 26}, nullptr);
  std::vector<double> expected(26, -777.0);
  const std::vector<double> each{0.0116562310, 0.0316849208, 0.0861285444, 0.2341216573, 0.6364086466};
  for (int64_t i = 0; i < 4; ++i) std::copy(each.begin(), each.end(), expected.begin() + i * 7);
  const Comparison difference = compare(output.download(), expected, {26}, SOFTMAX_TOLERANCE);
  CHECK_MESSAGE(difference.matches(), difference.describe());
}

TEST_CASE("a row 2^32 elements on is not taken for one close by" * doctest::skip(!device_checks())) {
  // The memory is not there, and the view says that it is: a kernel that finds the right place is stopped by the
  // device. One whose offset has wrapped round to 8, where there is memory, is not. What the view claims lies above the
  // other buffer, which it must not overlap.
  const int64_t stride = (int64_t{1} << 32) + 8;
  const Buffer<float> one("one", normal(16, 1)), two("two", normal(16, 1));
  const Buffer<float>&low = one.data() < two.data() ? one : two, &high = one.data() < two.data() ? two : one;
  const Matrix<float> near = low.view(2, 5), far{high.data(), {2, 5}, {stride, 1}, stride + 5};
  const auto fault = [](auto in, auto out) {
    return message_of<KernelFault>([&] { SOFTMAX.launch(in, out, nullptr); });
  };
  CHECK(fault(far, near).starts_with("out-of-bounds read"));
  CHECK(fault(near, far).starts_with("out-of-bounds write"));
}

static std::string refusal() { return std::string(SOFTMAX.name) + ": "; }

TEST_CASE("BC-041: a column stride other than 1 is refused, and nothing is written") {
  const Buffer<float> input("input", normal(20, 1)), output("output", 20);
  const Matrix<const float> transposed{input.data(), {5, 4}, {1, 5}, 20};
  CHECK_REFUSED(SOFTMAX.launch(transposed, output.view(5, 4), nullptr), refusal() + "input.strides[1] is 5, must be 1");
  CHECK_REFUSED(SOFTMAX.launch(input.view(5, 4), {output.data(), {5, 4}, {1, 5}, 20}, nullptr),
                refusal() + "output.strides[1] is 5, must be 1");
  CHECK(untouched(output));
}

TEST_CASE("every other broken contract is refused in one line, and nothing is written") {
  const Buffer<float> input("input", normal(20, 1)), output("output", 20);
  const auto run = [&](Matrix<const float> x, Matrix<float> out) { SOFTMAX.launch(x, out, nullptr); };
  const auto x = input.view(4, 5);
  const auto out = output.view(4, 5);
  CHECK_REFUSED(run(x, output.view(4, 4)), refusal() + "output.sizes[1] is 4, must be 5, as of input");
  CHECK_REFUSED(run(x, output.view(3, 5)), refusal() + "output.sizes[0] is 3, must be 4, as of input");
  CHECK_REFUSED(run(input.view(-1, 5), out), refusal() + "input.sizes[0] is -1, must be at least 0");
  CHECK_REFUSED(run({nullptr, {4, 5}, {5, 1}, 20}, out),
                refusal() + "input.data is null, must be a pointer to 20 elements");
  CHECK_REFUSED(run({input.data(), {4, 5}, {6, 1}, 20}, out),
                refusal() + "input.extent is 20, must be at least 23, which its sizes and strides reach");
  CHECK_REFUSED(run({input.data(), {4, 5}, {4, 1}, 20}, out),
                refusal() + "input.strides[0] is 4, must be at least 5, the number of columns");
  CHECK_REFUSED(run(x, {output.data(), {4, 5}, {0, 1}, 20}),
                refusal() + "output.strides[0] is 0, must be at least 5, the number of columns");
  CHECK(untouched(output));
  Buffer<float> both("both", normal(24, 1));
  const std::vector<float> before = both.download();
  CHECK_REFUSED(run(both.view(4, 5), {both.data() + 4, {4, 5}, {5, 1}, 20}),
                refusal() + "output.data is inside input, must be apart from it, or the same view");
  CHECK_REFUSED(run(both.view(4, 5), {both.data(), {4, 5}, {6, 1}, 24}),
                refusal() + "output.data is inside input, must be apart from it, or the same view");
  check_same(both.download(), before);
  run({input.data(), {1, 5}, {0, 1}, 20}, {output.data(), {1, 5}, {0, 1}, 20});  // one row: its stride means nothing
  CHECK_FALSE(untouched(output));
}

TEST_CASE("BC-042: in place gives the same bits") {
  for (int64_t columns : not_wider({1, 5, 33, 1000, 1024, 1537, 8191, 32768})) {
    CAPTURE(columns);
    std::vector<float> x;
    for (int64_t i = 0; i < 4 * columns; ++i) x.push_back(std::sin(static_cast<float>(i % columns)));
    const Buffer<float> both("both", x);
    SOFTMAX.launch(both.view(4, columns), both.view(4, columns), nullptr);
    const Comparison difference = compare_bits(both.download(), softmax(x, 4, columns), {4, columns});
    CHECK_MESSAGE(difference.matches(), difference.describe());
  }
}

TEST_CASE("BC-047: three columns at the end of memory, and many more threads") {
  // The input ends where its buffer does: the CPU device refuses a read past it, a GPU finds the guard's bytes there.
  check({0, 0, 0}, 1, 3, {1.0 / 3, 1.0 / 3, 1.0 / 3});
}

TEST_CASE("BC-048: each of four narrow rows is written") { check_equal(4, 8, 0.5f); }

TEST_CASE("BC-050: the same bits on every call, whatever the order of warps and blocks") {
  for (int64_t columns : not_wider({1000, 4096, 32768})) {
    const std::vector<float> x = normal(3 * columns, 5), first = softmax(x, 3, columns);
    for (int call = 0; call < 10; ++call) CHECK(compare_bits(softmax(x, 3, columns), first, {3, columns}).matches());
  }
}

TEST_CASE("BC-051: two streams at a time do not disturb each other") {
  const int64_t rows = 16, columns = std::min<int64_t>(4000, SOFTMAX.widest);
  struct Work {
    std::vector<float> x;
    Stream stream;
    Buffer<float> input{"input", x};
    std::vector<Buffer<float>> outputs{};
  };
  Work work[2]{{normal(rows * columns, 1), {}}, {normal(rows * columns, 2, 3.0, 2.0), {}}};
  for (int call = 0; call < 10; ++call)
    for (Work& w : work) {
      w.outputs.emplace_back("output", rows * columns);
      SOFTMAX.launch(w.input.view(rows, columns), w.outputs.back().view(rows, columns), w.stream.get());
    }
  device_synchronize();
  for (const Work& w : work) {
    const std::vector<double> expected = reference_softmax(w.x, rows, columns);
    for (const Buffer<float>& output : w.outputs) {
      const Comparison difference = compare(output.download(), expected, {rows, columns}, SOFTMAX_TOLERANCE);
      CHECK_MESSAGE(difference.matches(), difference.describe());
    }
  }
}

TEST_CASE("BC-052: results that only a denormal could hold") {
  check({0, -100, 0, -104}, 2, 2, {1, 3.78e-44, 1, 0}, {.absolute = 1e-43, .relative = 2e-6});
}

TEST_CASE("the rows sum to 1") {
  CHECK_PROPERTY([] {
    const auto rows = *rc::gen::inRange<int64_t>(1, 5), columns = *rc::gen::inRange<int64_t>(1, 1024);
    const auto seed = *rc::gen::arbitrary<uint64_t>();
    const auto deviation = *rc::gen::element(0.01, 1.0, 10.0, 1000.0);
    const std::vector<float> x = normal(rows * columns, seed, 0, deviation);
    RC_ASSERT(max_row_sum_error(softmax(x, rows, columns), rows, columns) <= ROW_SUM_TOLERANCE);
  });
}

TEST_CASE("a number added to the whole row changes no bit, when the addition is exact") {
  CHECK_PROPERTY([] {
    const auto eighths = *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(-200, 200)));
    const auto shift = *rc::gen::inRange(-1000, 1000);
    std::vector<float> x, shifted;
    for (int eighth : eighths) {
      x.push_back(static_cast<float>(eighth) / 8);
      shifted.push_back(x.back() + static_cast<float>(shift));
    }
    RC_ASSERT(
        compare_bits(softmax(shifted, 1, std::ssize(x)), softmax(x, 1, std::ssize(x)), {std::ssize(x)}).matches());
  });
}

TEST_CASE("columns in another order give the same values in that order") {
  CHECK_PROPERTY([] {
    const auto columns = *rc::gen::inRange<int64_t>(1, 1024);
    std::vector<int64_t> order(static_cast<std::size_t>(columns));
    for (int64_t i = 0; i < columns; ++i) order[static_cast<std::size_t>(i)] = i;
    const auto seed = *rc::gen::arbitrary<uint64_t>();
    const std::vector<float> keys = uniform(columns, seed), x = normal(columns, seed + 1);
    std::ranges::sort(order, {}, [&](int64_t i) { return keys[static_cast<std::size_t>(i)]; });
    const std::vector<float> straight = softmax(x, 1, columns);
    std::vector<float> permuted;
    std::vector<double> expected;
    for (int64_t i : order) {
      permuted.push_back(x[static_cast<std::size_t>(i)]);
      expected.push_back(straight[static_cast<std::size_t>(i)]);
    }
    RC_ASSERT(compare(softmax(permuted, 1, columns), expected, {columns}, SOFTMAX_TOLERANCE).matches());
  });
}
