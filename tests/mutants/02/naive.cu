// Tests of ReLU and dropout that people used, each with the report or the article that it comes
// from. All of them pass over some broken kernel; none is wrong, and none is enough.
#include "steps/02_relu_dropout/four_per_call.cuh"
#include "steps/02_relu_dropout/relu_dropout.cuh"
#include "tests/mutants/naive.hpp"

using namespace ladder;

namespace {

using Launcher = void (*)(Vector<const float>, Vector<float>, float, uint64_t, uint64_t,
                          cudaStream_t);

std::vector<float> run(Launcher launch, const std::vector<float>& x, float p, uint64_t seed,
                       uint64_t first = 0) {
  const auto n = static_cast<int64_t>(x.size());
  const Buffer<float> x_buffer("x", x);
  Buffer<float> out("out", n);
  launch(x_buffer.view(n), out.view(n), p, seed, first, nullptr);
  return out.download();
}

std::vector<float> ones(std::size_t n) { return std::vector<float>(n, 1.0f); }

double rate(const std::vector<float>& out) {
  return static_cast<double>(std::count(out.begin(), out.end(), 0.0f)) /
         static_cast<double>(out.size());
}

}  // namespace

// The article's author looked at five printed values first. This is what the eye checks.
TEST_CASE("the article: five values, each 0 or relu(x) / (1 - p)") {
  const std::vector<float> x{-1.5f, 0.25f, 1.0f, -0.5f, 2.0f},
      out = run(step02::relu_dropout, x, 0.5f, 0);
  for (std::size_t i = 0; i < x.size(); ++i)
    CHECK((out[i] == 0 || (x[i] > 0 && out[i] == 2 * x[i])));
}

// The article then counts: 100,000 elements, and a margin of 0.01.
TEST_CASE("the article: the rate at p = 0.1 is within 0.01") {
  CHECK(std::abs(rate(run(step02::relu_dropout, ones(100'000), 0.1f, 0)) - 0.1) < 0.01);
}
TEST_CASE("the article: the rate at p = 0.1 is within 0.01, four elements per call") {
  CHECK(std::abs(rate(run(step02::relu_dropout_four_per_call, ones(100'000), 0.1f, 0)) - 0.1) <
        0.01);
}

// The faults of BC-016 were reported as invisible at p = 0.5.
TEST_CASE("BC-016: at p = 0.5 half is dropped, and the rest doubled") {
  const std::vector<float> out = run(step02::relu_dropout, ones(100'000), 0.5f, 0);
  CHECK(std::abs(rate(out) - 0.5) < 0.01);
  CHECK(std::count(out.begin(), out.end(), 2.0f) ==
        100'000 - std::count(out.begin(), out.end(), 0.0f));
}

// The input of BC-018, whose report found one mask for all calls: the same seed, another seed,
// the next call.
TEST_CASE("BC-018: one seed one mask, two seeds two masks") {
  const auto mask = [](uint64_t seed) {
    return run(step02::relu_dropout, ones(65'536), 0.5f, seed);
  };
  CHECK(mask(1) == mask(1));
  CHECK(mask(1) != mask(2));
}
TEST_CASE("BC-018: the next call draws a new mask") {
  const auto mask = [](uint64_t first) {
    return run(step02::relu_dropout, ones(65'536), 0.5f, 0, first);
  };
  CHECK(mask(0) != mask(65'536));
}
