// Rung 04's variant on bf16 tensors, and the bf16 of the CPU device beside CUDA's. The reference starts from what the
// bf16 input holds.
#include <algorithm>
#include <bit>

#include "common/harness/reference.hpp"
#include "steps/04_softmax_fixed/vectorized.cuh"
#include "tests/expect.hpp"
#include "tests/signed_overflow.hpp"
#include "tests/softmax_matrix.hpp"

using namespace ladder;
using bf16 = __nv_bfloat16;

namespace {

constexpr float INF = std::numeric_limits<float>::infinity(), NOT_A_NUMBER = std::numeric_limits<float>::quiet_NaN();

// Half a unit in the last place of a bf16 is at most 2^-8 of it; on top comes what fp32 may be off.
constexpr Tolerance BF16_TOLERANCE{.absolute = 0, .relative = 1.0 / 256 + 3e-6};

std::vector<bf16> rounded(const std::vector<float>& values) {
  std::vector<bf16> result;
  for (float value : values) result.push_back(__float2bfloat16(value));
  return result;
}
std::vector<float> widened(const std::vector<bf16>& values) {
  std::vector<float> result;
  for (bf16 value : values) result.push_back(__bfloat162float(value));
  return result;
}

Matrix<bf16> matrix(const Buffer<bf16>& buffer, int64_t rows, int64_t columns, int64_t stride, int64_t first = 0) {
  return {buffer.data() + first, {rows, columns}, {stride, 1}, buffer.size() - first};
}

// How the rows of a matrix lie: so many elements between them, and before the first one.
struct Layout {
  int64_t gap = 0, first = 0;
};

// NaN between the rows of the input, and before the first one.
void check(const std::vector<float>& x, int64_t rows, int64_t columns, Layout in, Layout out) {
  CAPTURE(rows);
  CAPTURE(columns);
  CAPTURE(in.gap);
  CAPTURE(in.first);
  CAPTURE(out.gap);
  CAPTURE(out.first);
  const int64_t in_stride = columns + in.gap, out_stride = columns + out.gap, cells = out.first + rows * out_stride;
  std::vector<float> strided(static_cast<std::size_t>(in.first + rows * in_stride), NOT_A_NUMBER);
  for (int64_t row = 0; row < rows; ++row)
    std::copy_n(x.begin() + row * columns, columns, strided.begin() + in.first + row * in_stride);
  const Buffer<bf16> input("input", rounded(strided)), output("output", cells);
  step04::softmax_vectorized(matrix(input, rows, columns, in_stride, in.first),
                             matrix(output, rows, columns, out_stride, out.first));
  const std::vector<bf16> result = output.download();
  std::vector<float> written;
  int64_t between_the_rows = 0;
  for (int64_t cell = 0; cell < cells; ++cell) {
    if (cell >= out.first && (cell - out.first) % out_stride < columns)
      written.push_back(__bfloat162float(result[static_cast<std::size_t>(cell)]));
    else if (__bfloat16_as_ushort(result[static_cast<std::size_t>(cell)]) != 0xffff)
      ++between_the_rows;
  }
  CHECK(between_the_rows == exactly(0));
  const std::vector<double> expected = reference_softmax(widened(rounded(x)), rows, columns);
  const Comparison difference = compare(written, expected, {rows, columns}, BF16_TOLERANCE);
  CHECK_MESSAGE(difference.matches(), difference.describe());
  CHECK(output.guards_intact());
}
void check(const std::vector<float>& x, int64_t rows, int64_t columns) { check(x, rows, columns, {}, {}); }

void check_normal(int64_t rows, int64_t columns, Layout in, Layout out) {
  check(normal(rows * columns, static_cast<uint64_t>(columns)), rows, columns, in, out);
}
void check_normal(int64_t rows, int64_t columns, int64_t gap = 0, int64_t first = 0) {
  check_normal(rows, columns, {gap, first}, {gap, first});
}

}  // namespace

TEST_CASE("bf16 is the upper half of a float, rounded to the nearest, ties to even") {
  const auto bits = [](float value) { return int{__bfloat16_as_ushort(__float2bfloat16(value))}; };
  CHECK(bits(1.0f) == exactly(0x3f80));
  CHECK(bits(-2.5f) == exactly(0xc020));
  CHECK(bits(-0.0f) == exactly(0x8000));
  CHECK(bits(1.0f + 0x1p-8f) == exactly(0x3f80));             // halfway: to the even neighbour below
  CHECK(bits(1.0f + 0x1.8p-7f) == exactly(0x3f82));           // halfway: to the even neighbour above
  CHECK(bits(1.0f + 0x1p-8f + 0x1p-20f) == exactly(0x3f81));  // beyond halfway
  CHECK(bits(0x1.fffffep127f) == exactly(0x7f80));            // the largest float is nearer to infinity
  CHECK(bits(-INF) == exactly(0xff80));
  CHECK(bits(0x1p-149f) == exactly(0));
  CHECK(bits(0x1.8p-133f) == exactly(2));  // a tie between subnormal numbers
  CHECK(bits(NOT_A_NUMBER) == exactly(0x7fff));
  CHECK(bits(std::bit_cast<float>(0xff800001u)) == exactly(0x7fff));  // a NaN whose upper half alone would be -inf
  check_same(widened({__ushort_as_bfloat16(0x3f81), __ushort_as_bfloat16(0xff80), __ushort_as_bfloat16(1)}),
             {1.0f + 0x1p-7f, -INF, 0x1p-133f});
}

TEST_CASE("bf16: every width up to 1100: whole accesses where 8 divides it, else one column each") {
  for (int64_t columns = 1; columns <= 1100; ++columns) check_normal(columns % 8 == 0 ? 5 : 2, columns);
}

TEST_CASE("bf16: rows off 16-byte alignment by their stride or by their first element") {
  for (int64_t columns : {64, 1000, 2000}) {
    check_normal(3, columns, 8);
    check_normal(3, columns, 4);
    check_normal(3, columns, 8, 1);
    check_normal(1, columns, 3, 8);
  }
}

TEST_CASE("bf16: input and output each with a layout of its own, for whole accesses and for single columns") {
  for (int64_t rows : {1, 3})
    for (int64_t columns : {8, 64, 1000, 1001})
      for (const Layout in : {Layout{0, 0}, Layout{8, 8}, Layout{3, 0}, Layout{8, 4}})
        for (const Layout out : {Layout{0, 0}, Layout{16, 0}, Layout{4, 0}, Layout{0, 1}})
          check_normal(rows, columns, in, out);
}

TEST_CASE("bf16: one row of every width up to 70: 8 must divide it, a 4 will not do") {
  for (int64_t columns = 1; columns <= 70; ++columns) check_normal(1, columns);
}

TEST_CASE("bf16: a NaN, an infinity or a -inf in any column reaches the others as it should") {
  for (int64_t columns : {8, 9, 24, 300})
    for (int64_t place = 0; place < std::min<int64_t>(columns, 24); ++place)
      for (const float special : {NOT_A_NUMBER, INF, -INF}) {
        std::vector<float> x = normal(2 * columns, 3);
        x[static_cast<std::size_t>(place)] = special;
        check(x, 2, columns);
      }
}

TEST_CASE("bf16: rows as low as a number goes: nothing finite stands for the start of the maximum, or for padding") {
  const float lowest = __bfloat162float(__ushort_as_bfloat16(0xff7f));
  for (int64_t columns : {1, 5, 8, 40, 1000, 1001})
    for (const float low : {-1e6f, -1e30f, lowest})
      check(std::vector<float>(static_cast<std::size_t>(2 * columns), low), 2, columns);
}

TEST_CASE("the only row's stride means nothing: no offset of a row that is not there overflows") {
  const auto check_one_row = []<class T>(T zero, auto as_float) {
    const Buffer<T> input("input", std::vector<T>(8, zero)), output("output", 8);
    const int64_t stride = std::numeric_limits<int64_t>::max(), overflows = signed_overflows;
    step04::softmax_vectorized({input.data(), {1, 8}, {stride, 1}, 8}, {output.data(), {1, 8}, {stride - 1, 1}, 8});
    CHECK(signed_overflows == exactly(overflows));
    for (T value : output.download()) CHECK(as_float(value) == exactly(0.125f));
  };
  check_one_row(0.0f, [](float value) { return value; });
  check_one_row(__float2bfloat16(0.0f), [](bf16 value) { return __bfloat162float(value); });
  CHECK(counts_signed_overflows() == device_checks());  // else the above would pass whatever happened
}

TEST_CASE("bf16: wide rows, around every power of two") {
  for (int64_t power = 2048; power <= 32768; power *= 2)
    for (int64_t columns : {power - 8, power - 1, power, power + 8})
      if (columns <= step04::MAX_BLOCK_SIZE) check_normal(2, columns);
}

TEST_CASE("bf16: rows of 1 to 9: a warp takes two narrow ones, and a block four") {
  for (int64_t rows = 1; rows <= 9; ++rows)
    for (int64_t columns : {8, 200, 256, 264}) check_normal(rows, columns);
}

TEST_CASE("bf16: -inf, NaN and numbers far from 0 keep to their rows") {
  std::vector<float> x = normal(6 * 40, 1);
  std::fill_n(x.begin() + 40, 40, -INF);
  x[2 * 40 + 17] = NOT_A_NUMBER;
  x[3 * 40 + 5] = INF;
  for (int i = 0; i < 40; ++i) x[static_cast<std::size_t>(4 * 40 + i)] = i == 3 ? -10000.0f : -10048.0f;
  for (int i = 1; i < 40; ++i) x[static_cast<std::size_t>(5 * 40 + i)] = -INF;
  check(x, 6, 40);
}

TEST_CASE("BC-043: the sum of a bf16 row is formed in fp32: 512 equal ones give 1/512, not 1/256") {
  for (const int64_t first : {0, 1}) {  // by whole accesses, and by one column each
    const Buffer<bf16> input("input", rounded(std::vector<float>(513, 0.0f))), output("output", 513);
    step04::softmax_vectorized(matrix(input, 1, 512, 512, first), matrix(output, 1, 512, 512, first));
    std::vector<float> row = widened(output.download());
    row.erase(first == 0 ? row.end() - 1 : row.begin());
    check_same(row, std::vector<float>(512, 0.001953125f));
  }
}

TEST_CASE("bf16: in place, and 4 bytes an element") {
  for (int64_t columns : {1000, 1001}) {
    const std::vector<bf16> x = rounded(normal(3 * columns, 2));
    const Buffer<bf16> data("data", x);
    const Launches launches =
        count_launches([&] { step04::softmax_vectorized(data.view(3, columns), data.view(3, columns)); });
    const Comparison difference =
        compare(widened(data.download()), reference_softmax(widened(x), 3, columns), {3, columns}, BF16_TOLERANCE);
    CHECK_MESSAGE(difference.matches(), difference.describe());
    CHECK(launches.kernels == exactly(1));
    if (device_checks()) CHECK(launches.bytes() == exactly(4 * 3 * columns));
  }
}

TEST_CASE("bf16: refusals") {
  const Buffer<bf16> data("data", 100);
  CHECK_REFUSED(step04::softmax_vectorized(data.view(2, 8), data.view(2, 9)),
                "softmax_vectorized: output.sizes[1] is 9, must be 8, as of input");
  CHECK_REFUSED(step04::softmax_vectorized(matrix(data, 2, 8, 7), matrix(data, 2, 8, 8, 50)),
                "softmax_vectorized: input.strides[0] is 7, must be at least 8, the number of columns");
  CHECK_REFUSED(step04::softmax_vectorized(matrix(data, 2, 8, 8), matrix(data, 2, 8, 8, 1)),
                "softmax_vectorized: output.data is inside input, must be apart from it, or the same view");
  const Matrix<bf16> wide{data.data(), {1, 40000}, {40000, 1}, 40000};
  CHECK_REFUSED(step04::softmax_vectorized(wide, wide), "softmax_vectorized: n_cols is 40000, must be at most 32768");
  step04::softmax_vectorized(data.view(0, 8), data.view(0, 8));
  for (bf16 value : data.download()) CHECK(__bfloat16_as_ushort(value) == exactly(0xffff));
}
