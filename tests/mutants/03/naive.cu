// Tests of softmax that people used, each with the report or the article that it comes from.
// All of them pass over some broken kernel; none is wrong, and none is enough.
#include "steps/03_softmax_buggy/softmax.cuh"
#include "tests/mutants/naive.hpp"

using namespace ladder;

namespace {

std::vector<float> softmax(const std::vector<float>& x, int64_t rows, int64_t columns) {
  const Buffer<float> input("input", x);
  Buffer<float> output("output", rows * columns);
  output.fill(0);  // as torch.zeros_like
  step03::softmax(input.view(rows, columns), output.view(rows, columns));
  return output.download();
}

bool matches(int64_t rows, int64_t columns) {
  const std::vector<float> x = normal(rows * columns, 0);
  return allclose(softmax(x, rows, columns), reference_softmax(x, rows, columns));
}

}  // namespace

// The article's small test: "Softmax matches reference".
TEST_CASE("the article: a matrix of (4, 5) matches") { CHECK(matches(4, 5)); }
