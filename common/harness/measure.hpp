// What a time needs to mean something, for the rungs' programs and their benchmarks: a result that was checked first,
// the device's own clock, and the ceilings of this very machine, measured in the same run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/harness/buffer.hpp"
#include "common/harness/compare.hpp"

namespace ladder {

/// One thing to time at one shape. It owns its buffers, through its functions.
struct Work {
  std::function<void()> run;           ///< One call of a launcher; need not wait for it.
  std::function<std::string()> wrong;  ///< After a run: what is wrong with the output, empty when nothing is.
  double bytes = 0;                    ///< By model: each input read once, each output written once.
  double operations = 0;     ///< Floating-point operations by model, where these are the limit and bytes are not.
  std::string problem = {};  ///< What is computed at which shape; variants and peers share it.
};

/// Runs `body`, waits for it, and returns what is then wrong with the output of `work`.
std::string run_and_check(const Work& work, const std::function<void()>& body);

/// What a device can do at most, per second.
struct Ceilings {
  double memcpy_bytes = 0;  ///< Bytes that memcpy copies, read and written ones counted.
  double kernel_bytes = 0;  ///< Bytes that a kernel copies, counted likewise.
  double operations = 0;    ///< fp32 operations, a multiply-add counted as two.
  /// The copy ceiling: the better of the two.
  constexpr double bytes() const { return std::max(memcpy_bytes, kernel_bytes); }
};

/// Those of an NVIDIA H200: the medians in H200_CEILINGS_SOURCE. tests/bench/ceilings.py compares them with the newest
/// one.
inline constexpr Ceilings H200_CEILINGS{.memcpy_bytes = 4258e9, .kernel_bytes = 4268e9, .operations = 63.2e12};
/// The result, from the root of the repository.
inline constexpr const char* H200_CEILINGS_SOURCE = "docs/results/2026-11-30-h200-bench.json";

/// Measures them on this device, as medians of so many calls. Takes 2 GiB of its memory meanwhile.
Ceilings measure_ceilings(int calls);

/// The value that stands at this part of the way through them when they are sorted: 0.5 for the median. Not of none.
double quantile(std::vector<double> values, double share);

/// The median of so many calls of `body`, after one more whose time does not count: it also loads the kernel.
double median_seconds(int calls, const std::function<void()>& body);

/// A buffer of `n` values, normal with this mean and deviation 1. They repeat after a million and three, which is odd:
/// the rows of a matrix differ until that many rows.
Buffer<float> normal_buffer(const std::string& name, int64_t n, uint64_t seed, double mean = 0);

/// `count` elements from `first` on.
std::vector<float> part(const Buffer<float>& buffer, int64_t first, int64_t count);

/// What is wrong with `output`, or nothing. All of it is searched for cells that nobody wrote. Sixty-four windows of
/// `window` elements, the first and the last among them, are compared with `expected(first, count)`: all of a gigabyte
/// would take longer than the measurement. Each window begins at a multiple of `window`, which must divide the size.
std::string wrong(const Buffer<float>& output, int64_t window, Tolerance tolerance,
                  const std::function<std::vector<double>(int64_t first, int64_t count)>& expected);

/// How many cells still hold the poison of a fresh buffer. The device counts.
int64_t count_unwritten(const Buffer<float>& buffer);

// --- What only the device knows: measure_cpu.cpp, measure_cuda.cu ---

/// True on a GPU. What the CPU device takes is the time of a CPU that plays a GPU, and says nothing about one.
bool on_gpu();

/// Seconds that `body` takes on the device. Before it a buffer several times as large as the L2 cache is written: what
/// `body` reads comes from memory, and its launch is already waiting when the clock starts.
double seconds(const std::function<void()>& body);
/// Copies `bytes` inside the device's memory, by memcpy; need not wait for it.
void copy_on_device(void* to, const void* from, std::size_t bytes);
/// Names and values that describe the device, for the head of the results.
std::vector<std::pair<std::string, std::string>> device_facts();

}  // namespace ladder
