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

static void check_aligned(int64_t rows, int64_t columns, int64_t gap) {
  CAPTURE(rows);
  CAPTURE(columns);
  const int64_t stride = columns + gap;
  std::vector<float> x = normal(rows * stride, static_cast<uint64_t>(columns)), inner;
  for (int64_t row = 0; row < rows; ++row) {
    inner.insert(inner.end(), x.begin() + row * stride, x.begin() + row * stride + columns);
    std::fill_n(x.begin() + row * stride + columns, gap, std::numeric_limits<float>::quiet_NaN());
  }
  const Buffer<float> input("input", x), output("output", rows * stride);
  const Matrix<const float> in{input.data(), {rows, columns}, {stride, 1}, input.size()};
  const Matrix<float> out{output.data(), {rows, columns}, {stride, 1}, output.size()};
  REQUIRE(step04::rows_are_aligned(in));
  REQUIRE(step04::rows_are_aligned(out));
  step04::softmax_vectorized(in, out);
  const std::vector<float> result = output.download();
  std::vector<float> written;
  for (int64_t row = 0; row < rows; ++row) {
    written.insert(written.end(), result.begin() + row * stride, result.begin() + row * stride + columns);
    for (int64_t i = columns; i < stride; ++i)
      CHECK(std::bit_cast<uint32_t>(result[static_cast<std::size_t>(row * stride + i)]) == exactly(0xffffffffu));
  }
  const std::vector<double> expected = reference_softmax(inner, rows, columns);
  CHECK(rejects_zeros(expected, SOFTMAX_TOLERANCE));
  const Comparison difference = compare(written, expected, {rows, columns}, SOFTMAX_TOLERANCE);
  CHECK_MESSAGE(difference.matches(), difference.describe());
  CHECK(output.guards_intact());
}

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

TEST_CASE("what is not aligned is left to softmax: pointer, stride or width") {
  const Buffer<float> memory("memory", normal(100, 1));
  CHECK(step04::rows_are_aligned(memory.view(4, 8)));
  CHECK_FALSE(step04::rows_are_aligned(Matrix<float>{memory.data() + 1, {4, 8}, {8, 1}, 99}));
  CHECK_FALSE(step04::rows_are_aligned(Matrix<float>{memory.data(), {4, 8}, {9, 1}, 100}));
  CHECK(step04::rows_are_aligned(Matrix<float>{memory.data(), {1, 8}, {9, 1}, 100}));  // one row has no next one
}
