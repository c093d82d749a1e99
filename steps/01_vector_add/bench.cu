// How fast rung 01 adds: one element per thread, and four by 16-byte accesses. Both move the same bytes.
#include "common/harness/bench.hpp"
#include "common/harness/work.hpp"
#include "steps/01_vector_add/vector_add.cuh"
#include "steps/01_vector_add/vectorized.cuh"

int main(int argc, char** argv) {
  using namespace ladder;
  const int64_t n = int64_t{1} << (on_gpu() ? 28 : 16);
  bench::add("vector_add",
             [n] { return add_work(n, [](auto x, auto y, auto out) { step01::vector_add(x, y, out); }); });
  bench::add("vector_add_vectorized",
             [n] { return add_work(n, [](auto x, auto y, auto out) { step01::vector_add_vectorized(x, y, out); }); });
  return bench::run(argc, argv);
}
