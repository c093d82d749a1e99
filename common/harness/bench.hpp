// What the rungs' bench.cu share: a check before the clock starts, times by the device's own clock, and the ceilings of
// this very machine, measured in the same run.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/harness/buffer.hpp"
#include "common/harness/compare.hpp"

namespace ladder::bench {

/// True on a GPU. The benchmarks run on the CPU device too, with small sizes, to show that they run: its times are
/// those of a CPU that plays a GPU, and say nothing about one.
bool on_gpu();

/// One thing to time at one shape. It owns its buffers, through its functions.
struct Work {
  std::function<void()> run;           // one call of a launcher; need not wait for it
  std::function<std::string()> wrong;  // after a run: what is wrong with the output, empty when nothing is
  double bytes = 0;                    // by model: each input read once, each output written once
  double operations = 0;     // floating-point operations by model, where these are the limit and bytes are not
  std::string problem = {};  // what is computed at which shape; variants and peers share it
};

/// Adds a benchmark. `make` is called when its turn comes, so that one work's memory is free before the next one's is
/// taken. The first run is checked, and the last one: a benchmark whose check fails reports an error and no time.
void add(const std::string& name, std::function<Work()> make);

/// What the main of a bench.cu returns: measures the ceilings of a GPU, then runs what was added, with Google
/// Benchmark's options. The counters of each: median_us of the calls, and p10_us and p90_us; GBps or TFLOPps by model
/// at the median, and its share of the ceiling where one was measured.
int run(int argc, char** argv);

/// A buffer of `n` values, normal with this mean and deviation 1. They repeat after a million and three, which is odd:
/// the rows of a matrix differ until that many rows.
Buffer<float> normal_buffer(const std::string& name, int64_t n, uint64_t seed, double mean = 0);

/// `count` elements from `first` on.
std::vector<float> part(const Buffer<float>& buffer, int64_t first, int64_t count);

/// What is wrong with `output`, or nothing. All of it is searched for cells that nobody wrote. Sixty-four windows of
/// `window` elements, the first and the last among them, are compared with `expected(first, count)`: all of a gigabyte
/// would take longer than the benchmark. Each window begins at a multiple of `window`, which must divide the size.
std::string wrong(const Buffer<float>& output, int64_t window, Tolerance tolerance,
                  const std::function<std::vector<double>(int64_t first, int64_t count)>& expected);

// --- What only the device knows: bench_cpu.cpp, bench_cuda.cu ---

/// Seconds that `body` takes on the device. Before it a buffer several times as large as the L2 cache is written: what
/// `body` reads comes from memory, and its launch is already waiting when the clock starts.
double seconds(const std::function<void()>& body);
void copy_on_device(void* to, const void* from, std::size_t bytes);
std::vector<std::pair<std::string, std::string>> device_facts();  // for the head of the results

}  // namespace ladder::bench
