// How fast rung 03 is at 1024 columns, the widest row that it gets right. Past it there is nothing to time: the check
// before the clock would refuse what it computes.
#include "common/harness/bench.hpp"
#include "common/harness/reference.hpp"
#include "steps/03_softmax_buggy/softmax.cuh"

namespace {

using namespace ladder;

bench::Work work(int64_t rows, int64_t columns) {
  struct Problem {
    Buffer<float> input, output;
  };
  const int64_t n = rows * columns;
  const auto p = std::make_shared<Problem>(Problem{bench::normal_buffer("input", n, 1), Buffer<float>("output", n)});
  const auto expected = [p, columns](int64_t first, int64_t count) {
    return reference_softmax(bench::part(p->input, first, count), count / columns, columns);
  };
  return {.run = [p, rows, columns] { step03::softmax(p->input.view(rows, columns), p->output.view(rows, columns)); },
          .wrong = [p, columns, expected] { return bench::wrong(p->output, columns, {.relative = 2e-6}, expected); },
          .bytes = 8.0 * static_cast<double>(n),
          .problem = "softmax columns=" + std::to_string(columns)};
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t columns = 1024, elements = int64_t{1} << (bench::on_gpu() ? 28 : 16);
  bench::add("softmax_buggy/columns:1024", [=] { return work(elements / columns, columns); });
  return bench::run(argc, argv);
}
