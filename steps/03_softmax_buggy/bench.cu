// How fast rung 03 is at 1024 columns, the widest row that it gets right. Past it there is nothing to time: the check
// before the clock would refuse what it computes.
#include "common/harness/bench.hpp"
#include "common/harness/work.hpp"
#include "steps/03_softmax_buggy/softmax.cuh"

int main(int argc, char** argv) {
  using namespace ladder;
  const int64_t columns = 1024, elements = int64_t{1} << (on_gpu() ? 28 : 16);
  bench::add("softmax_buggy/columns:1024", [=] {
    return softmax_work(elements / columns, columns, [](auto input, auto output) { step03::softmax(input, output); });
  });
  return bench::run(argc, argv);
}
