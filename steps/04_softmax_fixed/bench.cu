// How fast rung 04 is, over the widths of a row: always about 2^28 elements, so that the bytes stay the same while the
// rows grow and become fewer. The foil moves the bytes of five kernels.
#include "common/harness/bench.hpp"
#include "common/harness/work.hpp"
#include "steps/04_softmax_fixed/softmax.cuh"
#include "steps/04_softmax_fixed/unfused.cuh"
#include "steps/04_softmax_fixed/vectorized.cuh"

namespace {

using namespace ladder;

template <class Softmax>
void add(const std::string& name, int64_t rows, int64_t columns, Softmax softmax) {
  bench::add(name + "/columns:" + std::to_string(columns), [=] { return softmax_work(rows, columns, softmax); });
}

void add_unfused(int64_t rows, int64_t columns) {
  bench::add("softmax_unfused/columns:" + std::to_string(columns), [=] {
    const auto scratch = std::make_shared<Buffer<float>>("scratch", step04::unfused_scratch(rows, columns));
    Work work = softmax_work(rows, columns, [scratch](auto input, auto output) {
      step04::softmax_unfused(input, output, scratch->view(scratch->size()));
    });
    work.bytes = step04::unfused_bytes(rows, columns);
    return work;
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
