// The rungs' four problems as work to time, each with its check: for bench.cu at its shapes, for main.cu at one.
#pragma once

#include <cstdint>
#include <functional>

#include "common/harness/measure.hpp"
#include "common/kernel/view.hpp"

namespace ladder {
/// out = x + y over n elements, to the bit.
Work add_work(int64_t n, std::function<void(Vector<const float>, Vector<const float>, Vector<float>)> add);

/// ReLU and dropout over n elements, to the bit: so p must be one where x / (1 - p) rounds nothing, such as 0.5.
/// `random` is what element i draws.
Work relu_dropout_work(int64_t n, float p, std::function<float(int64_t)> random,
                       std::function<void(Vector<const float>, Vector<float>)> relu_dropout);

/// The softmax of each row of a contiguous matrix.
Work softmax_work(int64_t rows, int64_t columns, std::function<void(Matrix<const float>, Matrix<float>)> softmax);

/// Attention of one sequence, contiguous, without a causal mask.
Work attention_work(
    int64_t heads, int64_t q_len, int64_t k_len, int64_t head_dim,
    std::function<void(Heads<const float>, Heads<const float>, Heads<const float>, Heads<float>)> attention);
}  // namespace ladder
