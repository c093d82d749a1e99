// What the CPU device costs, as a ratio to a plain loop on one thread. Loop and kernel are timed in turn, so that
// whatever else the machine does meets both. The figures are of a CPU that plays a GPU: they say nothing about a GPU.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <tuple>
#include <vector>

#include "common/harness/buffer.hpp"
#include "common/harness/compare.hpp"
#include "common/harness/inputs.hpp"
#include "common/harness/reference.hpp"
#include "tests/cpu_device/cost.hpp"

namespace {

using namespace ladder;

double seconds(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// A timing without a right result is void.
void require_right(benchmark::State& state, const Buffer<float>& output, const std::vector<double>& expected) {
  const Comparison difference =
      compare(output.download(), expected, {output.size()}, {.absolute = 0, .relative = 1e-5});
  if (!difference.matches()) state.SkipWithError(difference.describe().c_str());
}

void time_beside(benchmark::State& state, const std::function<void()>& loop, const std::function<void()>& kernel) {
  std::vector<double> ratios;
  loop(), kernel();  // warm
  for (auto _ : state) {
    const double of_loop = seconds(loop), of_kernel = seconds(kernel);
    ratios.push_back(of_kernel / of_loop);
    state.SetIterationTime(of_kernel);
  }
  if (ratios.empty()) return;
  state.counters["times_the_loop"] = median(ratios);
  state.counters["least"] = *std::min_element(ratios.begin(), ratios.end());
}

void softmax_loop(const float* input, float* output, int64_t rows) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* x = input + r * COST_SOFTMAX_COLUMNS;
    float* out = output + r * COST_SOFTMAX_COLUMNS;
    float row_max = -std::numeric_limits<float>::infinity(), denominator = 0;
    for (int64_t c = 0; c < COST_SOFTMAX_COLUMNS; ++c) row_max = std::fmax(row_max, x[c]);
    for (int64_t c = 0; c < COST_SOFTMAX_COLUMNS; ++c) denominator += std::exp(x[c] - row_max);
    for (int64_t c = 0; c < COST_SOFTMAX_COLUMNS; ++c) out[c] = std::exp(x[c] - row_max) / denominator;
  }
}

void softmax(benchmark::State& state, const CostKernels& kernels) {
  const int64_t rows = 1000;
  const std::vector<float> x = normal(rows * COST_SOFTMAX_COLUMNS, 1);
  const Buffer<float> input("input", x), output("output", input.size());
  std::vector<float> of_loop(x.size());
  time_beside(
      state, [&] { softmax_loop(x.data(), of_loop.data(), rows); },
      [&] { kernels.softmax(input.data(), output.data(), rows); });
  require_right(state, output, reference_softmax(x, rows, COST_SOFTMAX_COLUMNS));
}

void vector_add(benchmark::State& state, const CostKernels& kernels) {
  const int64_t n = int64_t{4} << 20;
  const std::vector<float> a = normal(n, 1), b = normal(n, 2);
  const Buffer<float> x("x", a), y("y", b), out("out", n);
  std::vector<float> of_loop(a.size());
  time_beside(
      state,
      [&] {
        for (std::size_t i = 0; i < a.size(); ++i) of_loop[i] = a[i] + b[i];
        benchmark::DoNotOptimize(of_loop.data());
      },
      [&] { kernels.vector_add(x.data(), y.data(), out.data(), n); });
  require_right(state, out, reference_add(a, b));
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  std::printf("On the %s\n", device_description().c_str());
  for (const auto& [name, body, kernels] : {std::tuple{"softmax_20_barriers/bare", &softmax, &BARE},
                                            std::tuple{"softmax_20_barriers/watched", &softmax, &WATCHED},
                                            std::tuple{"vector_add_4M/bare", &vector_add, &BARE},
                                            std::tuple{"vector_add_4M/watched", &vector_add, &WATCHED}})
    benchmark::RegisterBenchmark(name,
                                 [body = body, kernels = kernels](benchmark::State& state) { body(state, *kernels); })
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond)
        ->MinTime(1.0);
  benchmark::RunSpecifiedBenchmarks();
}
