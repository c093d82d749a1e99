// Tests of softmax that people used, each with the report or the article that it comes from. All of them pass over
// some broken kernel; none is wrong, and none is enough.
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

// The article's block holds exactly 1024 columns; a row of that width has no column to spare.
TEST_CASE("the article: a row as wide as the block, 1024 columns") { CHECK(matches(4, 1024)); }

// The shape on which the article's author found the fixed block, and so the shape that tests the repair.
TEST_CASE("the article: the 2000 columns that went wrong") { CHECK(matches(4, 2000)); }

// The usual check of a softmax, which rung 03 passes too. BC-046 was found by values, not by this.
TEST_CASE("the usual check: rows sum to 1") {
  const std::vector<float> y = softmax(normal(4 * 2000, 0), 4, 2000);
  for (int row = 0; row < 4; ++row) {
    double sum = 0;
    for (int col = 0; col < 2000; ++col) sum += y[row * 2000 + col];
    CHECK(std::abs(sum - 1) < 1e-4);
  }
}
