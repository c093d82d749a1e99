// Inputs for mains, tests and benchmarks: a function of the seed alone, and the first k of n values those of n = k.
#pragma once

#include <cstdint>
#include <vector>

namespace ladder {
/// `n` normally distributed values; only the C library's log, sin and cos can move one, by its last bit. Two tensors
/// need two seeds. Mean 0 does for softmax. The outputs of attention are averages of V: with mean 0 they shrink towards
/// 0, where a tolerance sees little, so give V a mean of 1. Throws std::length_error when n < 0.
std::vector<float> normal(int64_t n, uint64_t seed, double mean = 0, double deviation = 1);

/// `n` values low + (high - low) * k / 2^24 in [low, high), bit for bit the same everywhere.
/// Needs low < high, both finite. Throws std::length_error when n < 0.
std::vector<float> uniform(int64_t n, uint64_t seed, float low = 0, float high = 1);
}  // namespace ladder
