// How fast rung 01 adds: one element per thread, and four by 16-byte accesses. Both move the same bytes.
#include "common/harness/bench.hpp"
#include "common/harness/reference.hpp"
#include "steps/01_vector_add/vector_add.cuh"
#include "steps/01_vector_add/vectorized.cuh"

namespace {

using namespace ladder;

struct Problem {
  int64_t n;
  Buffer<float> x, y, out;
  explicit Problem(int64_t n_)
      : n(n_), x(bench::normal_buffer("x", n, 1)), y(bench::normal_buffer("y", n, 2, 2.0)), out("out", n) {}
};

template <class Add>
bench::Work work(int64_t n, Add add) {
  const auto p = std::make_shared<Problem>(n);
  const auto expected = [p](int64_t first, int64_t count) {
    std::vector<double> sums = reference_add(bench::part(p->x, first, count), bench::part(p->y, first, count));
    for (double& sum : sums) sum = static_cast<float>(sum);  // rounded once: equal to the bit
    return sums;
  };
  return {.run = [p, add] { add(p->x.view(p->n), p->y.view(p->n), p->out.view(p->n)); },
          .wrong = [p, expected] { return bench::wrong(p->out, 4096, {}, expected); },
          .bytes = 12.0 * static_cast<double>(n),
          .problem = "add n=" + std::to_string(n)};
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t n = int64_t{1} << (bench::on_gpu() ? 28 : 16);
  bench::add("vector_add", [n] { return work(n, [](auto x, auto y, auto out) { step01::vector_add(x, y, out); }); });
  bench::add("vector_add_vectorized",
             [n] { return work(n, [](auto x, auto y, auto out) { step01::vector_add_vectorized(x, y, out); }); });
  return bench::run(argc, argv);
}
