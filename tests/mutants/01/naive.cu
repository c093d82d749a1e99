// Tests of a vector add that people used, each with the report or the article that it comes
// from. All of them pass over some broken kernel; none is wrong, and none is enough.
#include "steps/01_vector_add/vector_add.cuh"
#include "steps/01_vector_add/vectorized.cuh"
#include "tests/mutants/naive.hpp"

using namespace ladder;

namespace {

template <class Add>
bool adds(Add add, int64_t n) {
  const std::vector<float> x = normal(n, 0), y = normal(n, 1);
  const Buffer<float> x_buffer("x", x), y_buffer("y", y);
  Buffer<float> out("out", n);
  out.fill(0);  // as torch.zeros_like
  add(x_buffer.view(n), y_buffer.view(n), out.view(n), nullptr);
  return allclose(out.download(), reference_add(x, y));
}

}  // namespace

// Of the sizes that BC-002 lists, the round one: a multiple of the block, and of four.
TEST_CASE("BC-002: 1024 elements, a multiple of the block") {
  CHECK(adds(step01::vector_add, 1024));
}
TEST_CASE("BC-002: 1024 elements, a multiple of the vector") {
  CHECK(adds(step01::vector_add_vectorized, 1024));
}
