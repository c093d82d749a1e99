#include "common/harness/bench.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <exception>

#include "common/harness/device.hpp"
#include "common/harness/inputs.hpp"
#include "common/kernel/gpu.cuh"

namespace ladder::bench {
namespace {

constexpr int THREADS = 256;

struct Times {
  double p10, median, p90;  // seconds
};
Times summary(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const auto at = [&](std::size_t percent) { return seconds[(seconds.size() - 1) * percent / 100]; };
  return {at(10), at(50), at(90)};
}

int calls() { return on_gpu() ? 50 : 3; }

double median_seconds(const std::function<void()>& body) {
  body();  // the first call also loads the kernel
  std::vector<double> times;
  for (int call = 0; call < calls(); ++call) times.push_back(seconds(body));
  return summary(times).median;
}

// --- The ceilings ---

__global__ void __launch_bounds__(THREADS) copy_kernel(const float4* from, float4* to) {
  const int64_t i = int64_t{blockIdx.x} * THREADS + threadIdx.x;
  to[i] = from[i];
}

// Chains of multiply-adds that do not wait for each other, and no memory: what the fp32 units can do.
constexpr int CHAINS = 16, STEPS = 4096;
__global__ void __launch_bounds__(THREADS) multiply_add_kernel(float* out, float factor) {
  float chain[CHAINS];
#pragma unroll
  for (int c = 0; c < CHAINS; ++c) chain[c] = static_cast<float>(threadIdx.x + c);
  for (int step = 0; step < STEPS; ++step) {
#pragma unroll
    for (int c = 0; c < CHAINS; ++c) chain[c] = fmaf(chain[c], factor, 1.0f);
  }
  float sum = 0;
#pragma unroll
  for (int c = 0; c < CHAINS; ++c) sum += chain[c];
  out[int64_t{blockIdx.x} * THREADS + threadIdx.x] = sum;
}

struct Ceilings {
  double memcpy_bytes = 0, kernel_bytes = 0, operations = 0;  // a second
  double bytes() const { return std::max(memcpy_bytes, kernel_bytes); }
};

Ceilings measure_ceilings() {
  Ceilings ceilings;
  const int64_t n = int64_t{1} << 28, blocks = 4096;
  const Buffer<float> from = normal_buffer("from", n, 1), to("to", n);
  const double moved = 2.0 * sizeof(float) * static_cast<double>(n);
  const std::size_t bytes = static_cast<std::size_t>(n) * sizeof(float);
  ceilings.memcpy_bytes = moved / median_seconds([&] { copy_on_device(to.data(), from.data(), bytes); });
  ceilings.kernel_bytes = moved / median_seconds([&] {
                            launch(copy_kernel, grid_of("copy", n / 4 / THREADS), dim3(THREADS), 0, nullptr,
                                   reinterpret_cast<const float4*>(from.data()), reinterpret_cast<float4*>(to.data()));
                          });
  ceilings.operations =
      2.0 * CHAINS * STEPS * THREADS * static_cast<double>(blocks) / median_seconds([&] {
        launch(multiply_add_kernel, grid_of("multiply_add", blocks), dim3(THREADS), 0, nullptr, to.data(), 0.5f);
      });
  return ceilings;
}

Ceilings& ceilings() {
  static Ceilings measured;
  return measured;
}

// --- The check ---

constexpr int CELLS_PER_THREAD = 64;
__global__ void __launch_bounds__(THREADS)
    count_unwritten_kernel(const uint32_t* cells, int64_t n, unsigned* unwritten) {
  const int64_t block_start = int64_t{blockIdx.x} * THREADS * CELLS_PER_THREAD;
  unsigned found = 0;
  for (int item = 0; item < CELLS_PER_THREAD; ++item) {
    const int64_t i = block_start + item * THREADS + threadIdx.x;
    if (i < n && cells[i] == 0xffffffffu) ++found;
  }
  if (found > 0) atomicAdd(unwritten, found);
}

int64_t count_unwritten(const Buffer<float>& buffer) {
  const Buffer<unsigned> unwritten("unwritten", std::vector<unsigned>{0});
  launch(count_unwritten_kernel, grid_of("count_unwritten", cdiv(buffer.size(), THREADS * CELLS_PER_THREAD)),
         dim3(THREADS), 0, nullptr, reinterpret_cast<const uint32_t*>(buffer.data()), buffer.size(), unwritten.data());
  device_synchronize();
  return unwritten.download()[0];
}

// --- One benchmark ---

void time_work(benchmark::State& state, const std::function<Work()>& make) {
  const Work work = make();
  const auto right = [&](const std::function<void()>& body) {
    body();
    device_synchronize();
    const std::string complaint = work.wrong();
    if (!complaint.empty()) state.SkipWithError(complaint.c_str());
    return complaint.empty();
  };
  if (!right(work.run)) return;
  std::vector<double> times;
  for (auto _ : state) {
    times.push_back(seconds(work.run));
    state.SetIterationTime(times.back());
  }
  if (!right([] {})) return;

  const Times t = summary(times);
  state.SetLabel(work.problem);
  state.counters["median_us"] = t.median * 1e6;
  state.counters["p10_us"] = t.p10 * 1e6;
  state.counters["p90_us"] = t.p90 * 1e6;
  state.counters["bytes_by_model"] = work.bytes;
  if (work.operations > 0) {
    state.counters["operations_by_model"] = work.operations;
    state.counters["TFLOPps"] = work.operations / t.median * 1e-12;
    if (on_gpu()) state.counters["share"] = work.operations / t.median / ceilings().operations;
  } else {
    state.counters["GBps"] = work.bytes / t.median * 1e-9;
    if (on_gpu()) state.counters["share"] = work.bytes / t.median / ceilings().bytes();
  }
}

}  // namespace

void add(const std::string& name, std::function<Work()> make) {
  benchmark::RegisterBenchmark(name.c_str(),
                               [make = std::move(make)](benchmark::State& state) {
                                 try {
                                   time_work(state, make);
                                 } catch (const std::exception& error) {
                                   state.SkipWithError(error.what());
                                 }
                               })
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond)
      ->Iterations(calls());
}

int run(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  try {
    if (const auto reason = device_missing()) throw std::runtime_error(*reason);
    if (!on_gpu()) std::fputs("These are times of a CPU that plays a GPU. They say nothing about a GPU's.\n", stderr);
    for (const auto& [key, value] : device_facts()) benchmark::AddCustomContext(key, value);
    if (on_gpu()) {
      ceilings() = measure_ceilings();
      const auto giga = [](double rate) { return std::to_string(rate * 1e-9); };
      benchmark::AddCustomContext("copy_GBps_memcpy", giga(ceilings().memcpy_bytes));
      benchmark::AddCustomContext("copy_GBps_kernel", giga(ceilings().kernel_bytes));
      benchmark::AddCustomContext("fp32_TFLOPps", giga(ceilings().operations * 1e-3));
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: error: %s\n", argc > 0 ? argv[0] : "bench", error.what());
    return 2;
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

Buffer<float> normal_buffer(const std::string& name, int64_t n, uint64_t seed, double mean) {
  constexpr int64_t PERIOD = 1'000'003;
  const std::vector<float> values = normal(std::min(n, PERIOD), seed, mean);
  Buffer<float> buffer(name, n);
  for (int64_t first = 0; first < n; first += PERIOD)
    copy_to_device(buffer.data() + first, values.data(),
                   static_cast<std::size_t>(std::min(PERIOD, n - first)) * sizeof(float));
  return buffer;
}

std::vector<float> part(const Buffer<float>& buffer, int64_t first, int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  copy_from_device(values.data(), buffer.data() + first, static_cast<std::size_t>(count) * sizeof(float));
  return values;
}

std::string wrong(const Buffer<float>& output, int64_t window, Tolerance tolerance,
                  const std::function<std::vector<double>(int64_t first, int64_t count)>& expected) {
  if (window < 1 || output.size() % window != 0) return "the window does not divide the output";
  if (const int64_t unwritten = count_unwritten(output); unwritten > 0)
    return std::to_string(unwritten) + " cells were never written";
  if (!output.guards_intact()) return "somebody wrote outside the output";
  const int64_t windows = output.size() / window;
  const int64_t compared = std::min<int64_t>(windows, 64);
  for (int64_t i = 0; i < compared; ++i) {
    const int64_t first = (compared == 1 ? 0 : i * (windows - 1) / (compared - 1)) * window;
    const Comparison difference = compare(part(output, first, window), expected(first, window), {window}, tolerance);
    if (!difference.matches()) return "from element " + std::to_string(first) + " on: " + difference.describe();
  }
  return "";
}

}  // namespace ladder::bench
