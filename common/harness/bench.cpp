#include "common/harness/bench.hpp"

#include <benchmark/benchmark.h>

#include <cstdio>
#include <exception>
#include <stdexcept>

#include "common/harness/device.hpp"

namespace ladder::bench {
namespace {

int calls() { return on_gpu() ? 50 : 3; }

Ceilings& ceilings() {
  static Ceilings measured;
  return measured;
}

void time_work(benchmark::State& state, const std::function<Work()>& make) {
  const Work work = make();
  const auto right = [&](const std::function<void()>& body) {
    const std::string complaint = run_and_check(work, body);
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

  const double median = quantile(times, 0.5);
  state.SetLabel(work.problem);
  state.counters["median_us"] = median * 1e6;
  state.counters["p10_us"] = quantile(times, 0.1) * 1e6;
  state.counters["p90_us"] = quantile(times, 0.9) * 1e6;
  state.counters["bytes_by_model"] = work.bytes;
  if (work.operations > 0) {
    state.counters["operations_by_model"] = work.operations;
    state.counters["TFLOPps"] = work.operations / median * 1e-12;
    if (on_gpu()) state.counters["share"] = work.operations / median / ceilings().operations;
  } else {
    state.counters["GBps"] = work.bytes / median * 1e-9;
    if (on_gpu()) state.counters["share"] = work.bytes / median / ceilings().bytes();
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
      ceilings() = measure_ceilings(calls());
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

}  // namespace ladder::bench
