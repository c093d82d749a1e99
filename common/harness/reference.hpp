// The right answers, in double, by the plainest loops. They share no code with a kernel, so that a kernel and its judge
// cannot be wrong together. Each throws std::length_error when a span and its shape differ in size.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ladder {
/// x + y, element by element. Rounded to float it is the float sum, to the bit.
std::vector<double> reference_add(std::span<const float> x, std::span<const float> y);

/// max(x, 0) / (1 - p) where uniform >= p, else 0 whatever x is. ReLU(NaN) is NaN; p = 1 drops all. Needs p in [0, 1];
/// `uniforms` holds a number in [0, 1) for each element.
std::vector<double> reference_relu_dropout(std::span<const float> x, std::span<const float> uniforms, float p);

/// Softmax of each row of a contiguous (rows, columns) tensor. A row with a NaN, with +inf, or of nothing but -inf is
/// all NaN, as in PyTorch.
std::vector<double> reference_softmax(std::span<const float> x, int64_t rows, int64_t columns);

/// softmax(scale * Q K^T) V, contiguous: Q and the result (batch, heads, q_len, head_dim), K and V (batch, heads,
/// k_len, head_dim). Causal: query i sees the keys up to i + (k_len - q_len). A query that sees no key gives 0.
std::vector<double> reference_attention(std::span<const float> q, std::span<const float> k, std::span<const float> v,
                                        int64_t batch, int64_t heads, int64_t q_len, int64_t k_len, int64_t head_dim,
                                        double scale, bool causal);
}  // namespace ladder
