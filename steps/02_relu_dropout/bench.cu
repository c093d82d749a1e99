// How fast rung 02 drops. The bytes of the first two are the same; one calls Philox for each element, the other for
// four. The third goes through memory twice.
#include "common/harness/bench.hpp"
#include "common/harness/reference.hpp"
#include "steps/02_relu_dropout/four_per_call.cuh"
#include "steps/02_relu_dropout/in_flight.cuh"
#include "steps/02_relu_dropout/relu_dropout.cuh"
#include "steps/02_relu_dropout/unfused.cuh"

namespace {

using namespace ladder;

constexpr float P = 0.5f;
constexpr uint64_t SEED = 20260907;

// The random numbers that are expected come from philox.cuh itself: whether those are right is for the tests of the
// rung to say, with the published answers. Here it is whether each element got its own.
float one_per_call(int64_t i) { return step02::uniform_from(step02::random_words(SEED, static_cast<uint64_t>(i)).x); }
float four_per_call(int64_t i) {
  const uint4 words = step02::random_words(SEED, static_cast<uint64_t>(i / 4));
  const uint32_t of_four[] = {words.x, words.y, words.z, words.w};
  return step02::uniform_from(of_four[i % 4]);
}

template <class Dropout>
bench::Work work(int64_t n, double bytes_per_element, float (*random)(int64_t), Dropout dropout) {
  struct Problem {
    Buffer<float> x, out;
  };
  const auto p = std::make_shared<Problem>(Problem{bench::normal_buffer("x", n, 1), Buffer<float>("out", n)});
  const auto expected = [p, random](int64_t first, int64_t count) {
    std::vector<float> uniforms;
    for (int64_t i = first; i < first + count; ++i) uniforms.push_back(random(i));
    return reference_relu_dropout(bench::part(p->x, first, count), uniforms, P);
  };
  return {.run = [p, n, dropout] { dropout(p->x.view(n), p->out.view(n)); },
          .wrong = [p, expected] { return bench::wrong(p->out, 4096, {}, expected); },
          .bytes = bytes_per_element * static_cast<double>(n),
          .problem = "relu_dropout n=" + std::to_string(n) + " p=0.5"};
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t n = int64_t{1} << (bench::on_gpu() ? 28 : 16);
  bench::add("relu_dropout",
             [n] { return work(n, 8, one_per_call, [](auto x, auto out) { step02::relu_dropout(x, out, P, SEED); }); });
  bench::add("relu_dropout_four_per_call", [n] {
    return work(n, 8, four_per_call, [](auto x, auto out) { step02::relu_dropout_four_per_call(x, out, P, SEED); });
  });
  bench::add("relu_dropout_in_flight", [n] {
    return work(n, 8, four_per_call, [](auto x, auto out) { step02::relu_dropout_in_flight(x, out, P, SEED); });
  });
  bench::add("relu_dropout_unfused", [n] {
    return work(n, 16, one_per_call, [](auto x, auto out) { step02::relu_dropout_unfused(x, out, P, SEED); });
  });
  return bench::run(argc, argv);
}
