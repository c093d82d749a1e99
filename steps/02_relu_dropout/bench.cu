// How fast rung 02 drops. The bytes of the first three are the same; the first calls Philox for each element, the next
// two for four. The last goes through memory twice.
#include "common/harness/bench.hpp"
#include "common/harness/work.hpp"
#include "steps/02_relu_dropout/draws.cuh"
#include "steps/02_relu_dropout/four_per_call.cuh"
#include "steps/02_relu_dropout/in_flight.cuh"
#include "steps/02_relu_dropout/relu_dropout.cuh"
#include "steps/02_relu_dropout/unfused.cuh"

namespace {

using namespace ladder;

constexpr float P = 0.5f;
constexpr uint64_t SEED = 20260907;

template <class Dropout>
Work work(int64_t n, double bytes_per_element, float (*draw)(uint64_t, int64_t), Dropout dropout) {
  Work work = relu_dropout_work(
      n, P, [draw](int64_t i) { return draw(SEED, i); }, dropout);
  work.bytes = bytes_per_element * static_cast<double>(n);
  return work;
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t n = int64_t{1} << (on_gpu() ? 28 : 16);
  bench::add("relu_dropout", [n] {
    return work(n, 8, step02::draw_one_per_call, [](auto x, auto out) { step02::relu_dropout(x, out, P, SEED); });
  });
  bench::add("relu_dropout_four_per_call", [n] {
    return work(n, 8, step02::draw_four_per_call,
                [](auto x, auto out) { step02::relu_dropout_four_per_call(x, out, P, SEED); });
  });
  bench::add("relu_dropout_in_flight", [n] {
    return work(n, 8, step02::draw_four_per_call,
                [](auto x, auto out) { step02::relu_dropout_in_flight(x, out, P, SEED); });
  });
  bench::add("relu_dropout_unfused", [n] {
    return work(n, 16, step02::draw_one_per_call,
                [](auto x, auto out) { step02::relu_dropout_unfused(x, out, P, SEED); });
  });
  return bench::run(argc, argv);
}
