#include "common/harness/work.hpp"

#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "common/harness/reference.hpp"
#include "common/harness/report.hpp"

namespace ladder {
static double size(int64_t n) { return static_cast<double>(n); }

Work add_work(int64_t n, std::function<void(Vector<const float>, Vector<const float>, Vector<float>)> add) {
  struct Problem {
    Buffer<float> x, y, out;
  };
  const auto p = std::make_shared<Problem>(
      Problem{normal_buffer("x", n, 1), normal_buffer("y", n, 2, 2.0), Buffer<float>("out", n)});
  const auto expected = [p](int64_t first, int64_t count) {
    std::vector<double> sums = reference_add(part(p->x, first, count), part(p->y, first, count));
    for (double& sum : sums) sum = static_cast<float>(sum);  // rounded once: equal to the bit
    return sums;
  };
  return {.run = [p, n, add = std::move(add)] { add(p->x.view(n), p->y.view(n), p->out.view(n)); },
          .wrong = [p, expected] { return wrong(p->out, 4096, {}, expected); },
          .bytes = 12 * size(n),
          .problem = "add n=" + std::to_string(n)};
}

Work relu_dropout_work(int64_t n, float probability, std::function<float(int64_t)> random,
                       std::function<void(Vector<const float>, Vector<float>)> relu_dropout) {
  struct Problem {
    Buffer<float> x, out;
  };
  const auto p = std::make_shared<Problem>(Problem{normal_buffer("x", n, 1), Buffer<float>("out", n)});
  const auto expected = [p, probability, random = std::move(random)](int64_t first, int64_t count) {
    std::vector<float> uniforms;
    for (int64_t i = first; i < first + count; ++i) uniforms.push_back(random(i));
    return reference_relu_dropout(part(p->x, first, count), uniforms, probability);
  };
  return {.run = [p, n, relu_dropout = std::move(relu_dropout)] { relu_dropout(p->x.view(n), p->out.view(n)); },
          .wrong = [p, expected] { return wrong(p->out, 4096, {}, expected); },
          .bytes = 8 * size(n),
          .problem = "relu_dropout n=" + std::to_string(n) + " p=" + significant(probability)};
}

Work softmax_work(int64_t rows, int64_t columns, std::function<void(Matrix<const float>, Matrix<float>)> softmax) {
  struct Problem {
    Buffer<float> input, output;
  };
  const int64_t n = rows * columns;
  const auto p = std::make_shared<Problem>(Problem{normal_buffer("input", n, 1), Buffer<float>("output", n)});
  const auto expected = [p, columns](int64_t first, int64_t count) {
    return reference_softmax(part(p->input, first, count), count / columns, columns);
  };
  return {.run = [=, softmax =
                         std::move(softmax)] { softmax(p->input.view(rows, columns), p->output.view(rows, columns)); },
          .wrong = [p, columns, expected] { return wrong(p->output, columns, {.relative = 2e-6}, expected); },
          .bytes = 8 * size(n),
          .problem = "softmax columns=" + std::to_string(columns)};
}

Work attention_work(
    int64_t heads, int64_t q_len, int64_t k_len, int64_t head_dim,
    std::function<void(Heads<const float>, Heads<const float>, Heads<const float>, Heads<float>)> attention) {
  struct Problem {
    Buffer<float> q, k, v, out;
  };
  const auto p = std::make_shared<Problem>(
      Problem{normal_buffer("q", heads * q_len * head_dim, 1), normal_buffer("k", heads * k_len * head_dim, 2),
              normal_buffer("v", heads * k_len * head_dim, 3, 1.0),  // its mean is 1: outputs are not near 0
              Buffer<float>("out", heads * q_len * head_dim)});
  const int64_t window = std::min<int64_t>(q_len, 8) * head_dim;  // eight queries of one head
  const auto expected = [=](int64_t first, int64_t count) {
    const int64_t head_start = first / (q_len * head_dim) * (k_len * head_dim);
    return reference_attention(part(p->q, first, count), part(p->k, head_start, k_len * head_dim),
                               part(p->v, head_start, k_len * head_dim), 1, 1, count / head_dim, k_len, head_dim,
                               1 / std::sqrt(size(head_dim)), false);
  };
  return {.run =
              [=, attention = std::move(attention)] {
                attention(p->q.view(int64_t{1}, heads, q_len, head_dim), p->k.view(int64_t{1}, heads, k_len, head_dim),
                          p->v.view(int64_t{1}, heads, k_len, head_dim),
                          p->out.view(int64_t{1}, heads, q_len, head_dim));
              },
          .wrong = [=] { return wrong(p->out, window, {.absolute = 2e-6, .relative = 1e-5}, expected); },
          .bytes = 8 * size(heads) * size(q_len + k_len) * size(head_dim),
          .operations = 4 * size(heads) * size(q_len) * size(k_len) * size(head_dim),
          .problem = "attention heads=" + std::to_string(heads) + " q_len=" + std::to_string(q_len) +
                     " k_len=" + std::to_string(k_len) + " head_dim=" + std::to_string(head_dim)};
}
}  // namespace ladder
