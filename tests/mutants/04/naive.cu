// Tests of softmax that people used, each with the report or the article that it comes from.
// All of them pass over some broken kernel; none is wrong, and none is enough.
#include "steps/04_softmax_fixed/softmax.cuh"
#include "tests/mutants/naive.hpp"

using namespace ladder;

namespace {

std::vector<float> softmax(const std::vector<float>& x, int64_t rows, int64_t columns) {
  const Buffer<float> input("input", x);
  Buffer<float> output("output", rows * columns);
  output.fill(0);  // as torch.zeros_like
  step04::softmax(input.view(rows, columns), output.view(rows, columns));
  return output.download();
}

bool matches(int64_t rows, int64_t columns) {
  const std::vector<float> x = normal(rows * columns, 0);
  return allclose(softmax(x, rows, columns), reference_softmax(x, rows, columns));
}

}  // namespace

// The article's small test: "Softmax matches reference".
TEST_CASE("the article: a matrix of (4, 5) matches") { CHECK(matches(4, 5)); }

// The input of BC-046, and as wide as a block: no thread is without a column.
TEST_CASE("BC-046: 1 x 1024 with x = column / 16 matches") {
  std::vector<float> x;
  for (int column = 0; column < 1024; ++column) x.push_back(static_cast<float>(column) / 16);
  CHECK(allclose(softmax(x, 1, 1024), reference_softmax(x, 1, 1024)));
}

// The shape on which the article's author found the fixed block, and so the shape that tests
// the repair.
TEST_CASE("the article: the 2000 columns that went wrong") { CHECK(matches(4, 2000)); }

// BC-051 judges by the usual check of a softmax, here of 2000 columns over an output that began
// as zeros.
TEST_CASE("BC-051: rows sum to 1, within 1e-4") {
  const std::vector<float> y = softmax(normal(4 * 2000, 0), 4, 2000);
  for (int row = 0; row < 4; ++row) {
    double sum = 0;
    for (int column = 0; column < 2000; ++column) sum += y[row * 2000 + column];
    CHECK(std::abs(sum - 1) < 1e-4);
  }
}
