// What the rungs' bench.cu share: measure.hpp under Google Benchmark.
#pragma once

#include <functional>
#include <string>

#include "common/harness/measure.hpp"

namespace ladder::bench {

/// Adds a benchmark. `make` is called when its turn comes, so that one work's memory is free before the next one's is
/// taken. The first run is checked, and the last one: a benchmark whose check fails reports an error and no time.
void add(const std::string& name, std::function<Work()> make);

/// What the main of a bench.cu returns: measures the ceilings of a GPU, then runs what was added, with Google
/// Benchmark's options. The counters of each: median_us of the calls, and p10_us and p90_us; GBps or TFLOPps by model
/// at the median, and its share of the ceiling where one was measured.
int run(int argc, char** argv);

}  // namespace ladder::bench
