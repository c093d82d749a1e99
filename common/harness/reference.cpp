#include "common/harness/reference.hpp"

#include <algorithm>
#include <cmath>

#include "common/harness/compare.hpp"

namespace ladder {
// In place. NaN, +inf and nothing but -inf need no cases of their own: each makes the sum NaN.
static void softmax(std::span<double> row) {
  double highest = -INFINITY;
  for (double value : row) highest = std::max(highest, value);  // passes over a NaN, which the sum then catches
  double sum = 0;
  for (double& value : row) sum += value = std::exp(value - highest);
  for (double& value : row) value /= sum;
}

std::vector<double> reference_add(std::span<const float> x, std::span<const float> y) {
  require_elements("reference_add: y", y.size(), {std::ssize(x)});
  std::vector<double> sum(x.begin(), x.end());
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += y[i];
  return sum;
}

std::vector<double> reference_relu_dropout(std::span<const float> x, std::span<const float> uniforms, float p) {
  require_elements("reference_relu_dropout: uniforms", uniforms.size(), {std::ssize(x)});
  std::vector<double> output(x.size(), 0.0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool keep = p < 1 && uniforms[i] >= p;
    if (keep && !(x[i] <= 0)) output[i] = x[i] / (1 - double{p});  // !(x <= 0) holds for NaN
  }
  return output;
}

std::vector<double> reference_softmax(std::span<const float> x, int64_t rows, int64_t columns) {
  require_elements("reference_softmax: x", x.size(), {rows, columns});
  std::vector<double> output(x.begin(), x.end());
  for (auto row = output.begin(); row != output.end(); row += columns) softmax({row, row + columns});
  return output;
}

std::vector<double> reference_attention(std::span<const float> q, std::span<const float> k, std::span<const float> v,
                                        int64_t batch, int64_t heads, int64_t q_len, int64_t k_len, int64_t head_dim,
                                        double scale, bool causal) {
  require_elements("reference_attention: q", q.size(), {batch, heads, q_len, head_dim});
  require_elements("reference_attention: k", k.size(), {batch, heads, k_len, head_dim});
  require_elements("reference_attention: v", v.size(), {batch, heads, k_len, head_dim});
  std::vector<double> output(q.size(), 0.0);
  for (int64_t row = 0; row < std::ssize(q); row += head_dim) {
    const int64_t head = row / head_dim / q_len, query = row / head_dim % q_len;
    const int64_t visible = causal ? std::clamp<int64_t>(query + 1 + k_len - q_len, 0, k_len) : k_len;
    const float* key = k.data() + head * k_len * head_dim;
    const float* value = v.data() + head * k_len * head_dim;
    std::vector<double> weights(static_cast<std::size_t>(visible), 0.0);
    for (double& weight : weights)
      for (int64_t d = 0; d < head_dim; ++d) weight += scale * q.data()[row + d] * *key++;
    softmax(weights);
    for (double weight : weights)
      for (int64_t d = 0; d < head_dim; ++d) output.data()[row + d] += weight * *value++;
  }
  return output;
}
}  // namespace ladder
