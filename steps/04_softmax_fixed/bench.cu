// How fast rung 04 is, over the widths of a row: always about 2^28 elements, so that the bytes stay the same while the
// rows grow and become fewer. The foil moves the bytes of five kernels.
#include "common/harness/bench.hpp"
#include "common/harness/reference.hpp"
#include "steps/04_softmax_fixed/softmax.cuh"
#include "steps/04_softmax_fixed/unfused.cuh"
#include "steps/04_softmax_fixed/vectorized.cuh"

namespace {

using namespace ladder;

struct Problem {
  int64_t rows, columns;
  Buffer<float> input, output, scratch;

  Problem(int64_t rows_, int64_t columns_, int64_t scratch_elements)
      : rows(rows_),
        columns(columns_),
        input(bench::normal_buffer("input", rows * columns, 1)),
        output("output", rows * columns),
        scratch("scratch", scratch_elements) {}
};

bench::Work work(const std::shared_ptr<Problem>& p, double bytes, std::function<void()> run) {
  const auto expected = [p](int64_t first, int64_t count) {
    return reference_softmax(bench::part(p->input, first, count), count / p->columns, p->columns);
  };
  return {.run = std::move(run),
          .wrong = [p, expected] { return bench::wrong(p->output, p->columns, {.relative = 2e-6}, expected); },
          .bytes = bytes,
          .problem = "softmax columns=" + std::to_string(p->columns)};
}

template <class Softmax>
void add(const std::string& name, int64_t rows, int64_t columns, Softmax softmax) {
  bench::add(name + "/columns:" + std::to_string(columns), [=] {
    const auto p = std::make_shared<Problem>(rows, columns, 0);
    return work(p, 8.0 * static_cast<double>(rows * columns),
                [p, softmax] { softmax(p->input.view(p->rows, p->columns), p->output.view(p->rows, p->columns)); });
  });
}

void add_unfused(int64_t rows, int64_t columns) {
  bench::add("softmax_unfused/columns:" + std::to_string(columns), [=] {
    const auto p = std::make_shared<Problem>(rows, columns, step04::unfused_scratch(rows, columns));
    // A row's maximum and sum are counted as one trip each way; the 32 lanes of a warp ask for one address.
    const double bytes = 4.0 * (8.0 * static_cast<double>(rows * columns) + 4.0 * static_cast<double>(rows));
    return work(p, bytes, [p] {
      step04::softmax_unfused(p->input.view(p->rows, p->columns), p->output.view(p->rows, p->columns),
                              p->scratch.view(p->scratch.size()));
    });
  });
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t elements = int64_t{1} << (bench::on_gpu() ? 28 : 16);
  for (int64_t columns : {256, 1000, 1024, 2000, 4096, 8192, 16384, 32768}) {
    const int64_t rows = elements / columns;
    add("softmax", rows, columns, [](auto input, auto output) { step04::softmax(input, output); });
    add("softmax_vectorized", rows, columns,
        [](auto input, auto output) { step04::softmax_vectorized(input, output); });
    if (columns == 1024 || columns == 2000 || columns == 8192) add_unfused(rows, columns);
  }
  return bench::run(argc, argv);
}
