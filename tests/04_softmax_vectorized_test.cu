// The 16-byte variant of rung 04 keeps the rung's contract, on both of its paths.
#include "steps/04_softmax_fixed/vectorized.cuh"
#include "tests/expect.hpp"
#include "tests/softmax_matrix.hpp"

using namespace ladder;

const SoftmaxUnderTest SOFTMAX{step04::softmax_vectorized, step04::MAX_BLOCK_SIZE, "softmax_vectorized"};

// The matrix has gaps of 3 and 5 between its rows, so that of several rows one is always off 16-byte alignment.
TEST_CASE("the softmax matrix, where the variant leaves the rows to softmax: no shape fails") {
  CHECK(listing(failing_shapes(SOFTMAX, {{2, 1000}, {3, 1024}, {4, 2000}, {2, 10000}, {5, 33}})) == "");
}

namespace {

// How the rows of a matrix lie: so many elements between them, and before the first one.
struct Layout {
  int64_t gap = 0, first = 0;
};

void check(int64_t rows, int64_t columns, Layout in, Layout out) {
  CAPTURE(rows);
  CAPTURE(columns);
  CAPTURE(in.gap);
  CAPTURE(in.first);
  CAPTURE(out.gap);
  CAPTURE(out.first);
  const int64_t in_stride = columns + in.gap, out_stride = columns + out.gap;
  const std::vector<float> x = normal(rows * columns, static_cast<uint64_t>(columns));
  std::vector<float> strided(static_cast<std::size_t>(in.first + rows * in_stride),
                             std::numeric_limits<float>::quiet_NaN());
  for (int64_t row = 0; row < rows; ++row)
    std::copy_n(x.begin() + row * columns, columns, strided.begin() + in.first + row * in_stride);
  const Buffer<float> input("input", strided), output("output", out.first + rows * out_stride);
  step04::softmax_vectorized({input.data() + in.first, {rows, columns}, {in_stride, 1}, input.size() - in.first},
                             {output.data() + out.first, {rows, columns}, {out_stride, 1}, output.size() - out.first});
  const std::vector<float> result = output.download();
  std::vector<float> written;
  int64_t between_the_rows = 0;
  for (int64_t cell = 0; cell < output.size(); ++cell) {
    const float value = result[static_cast<std::size_t>(cell)];
    if (cell >= out.first && (cell - out.first) % out_stride < columns)
      written.push_back(value);
    else if (std::bit_cast<uint32_t>(value) != 0xffffffffu)
      ++between_the_rows;
  }
  CHECK(between_the_rows == exactly(0));
  const std::vector<double> expected = reference_softmax(x, rows, columns);
  CHECK(rejects_zeros(expected, SOFTMAX_TOLERANCE));
  const Comparison difference = compare(written, expected, {rows, columns}, SOFTMAX_TOLERANCE);
  CHECK_MESSAGE(difference.matches(), difference.describe());
  CHECK(output.guards_intact());
}

// By 16-byte accesses: the output's rows lie further apart than the input's.
void check_aligned(int64_t rows, int64_t columns, int64_t gap) { check(rows, columns, {gap, 0}, {gap + 4, 4}); }

}  // namespace

TEST_CASE("every width that 16-byte accesses can take, up to 1100, in rows that do not fill the last block") {
  for (int64_t columns = 4; columns <= 1100; columns += 4) check_aligned(5, columns, 0);
}

TEST_CASE("wide rows, around every power of two, and gaps between rows") {
  for (int64_t power = 2048; power <= 32768; power *= 2)
    for (int64_t columns : {power - 4, power, power + 4})
      if (columns <= step04::MAX_BLOCK_SIZE) check_aligned(2, columns, 8);
  check_aligned(3, 2000, 4);
}

TEST_CASE("rows of 1 to 9: a block takes several narrow ones") {
  for (int64_t rows = 1; rows <= 9; ++rows) check_aligned(rows, 64, 4);
}

TEST_CASE("input and output each with a layout of its own, on and off 16-byte alignment") {
  for (int64_t rows : {1, 3})
    for (int64_t columns : {4, 64, 1000, 1001})
      for (const Layout in : {Layout{0, 0}, Layout{4, 4}, Layout{3, 0}, Layout{4, 2}})
        for (const Layout out : {Layout{0, 0}, Layout{8, 0}, Layout{2, 0}, Layout{0, 1}}) check(rows, columns, in, out);
}

TEST_CASE("a refusal names this launcher, also where it leaves the rows to softmax") {
  alignas(16) float cell = 0;  // the memory need not be there: nothing is launched
  for (int64_t columns : {4, 5}) {
    const int64_t rows = int64_t{1} << (columns == 4 ? 32 : 31);  // 16-byte accesses: two such rows a block
    const Matrix<float> view{&cell, {rows, columns}, {columns, 1}, rows * columns};
    CHECK_REFUSED(step04::softmax_vectorized(view, view),
                  "softmax_vectorized: the number of blocks is 2147483648, must be at most 2147483647");
  }
}

TEST_CASE("what is not aligned is left to softmax: pointer, stride or width") {
  const Buffer<float> memory("memory", normal(100, 1));
  CHECK(step04::rows_are_aligned(memory.view(4, 8)));
  CHECK_FALSE(step04::rows_are_aligned(Matrix<float>{memory.data() + 1, {4, 8}, {8, 1}, 99}));
  CHECK_FALSE(step04::rows_are_aligned(Matrix<float>{memory.data(), {4, 8}, {9, 1}, 100}));
  CHECK(step04::rows_are_aligned(Matrix<float>{memory.data(), {1, 8}, {9, 1}, 100}));  // one row has no next one
}
