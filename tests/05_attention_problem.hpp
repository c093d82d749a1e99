// What the tests of rung 05 share: inputs, a run into a poisoned buffer, and the reference beside it.
#pragma once

#include <cmath>
#include <optional>

#include "common/harness/buffer.hpp"
#include "common/harness/compare.hpp"
#include "common/harness/inputs.hpp"
#include "common/harness/reference.hpp"
#include "steps/05_attention/attention.cuh"
#include "tests/expect.hpp"

// Outputs are averages of values near 1. What rounding makes of the scores moves them by less than this.
constexpr ladder::Tolerance TOLERANCE{2e-6, 1e-5};

struct Problem {
  int64_t batch = 1, heads = 1, q_len = 1, k_len = 1, head_dim = 1;
  std::vector<float> q{}, k{}, v{};
  bool causal = false;
  std::optional<float> scale{};
  decltype(&step05::attention) attention = step05::attention;  // or a variant's launcher

  int64_t queries() const { return batch * heads * q_len * head_dim; }
  int64_t keys() const { return batch * heads * k_len * head_dim; }
  std::vector<int64_t> sizes() const { return {batch, heads, q_len, head_dim}; }

  Problem& random(uint64_t seed) {
    q = ladder::normal(queries(), seed);
    k = ladder::normal(keys(), seed + 1);
    v = ladder::normal(keys(), seed + 2, 1);
    return *this;
  }
  // The bug cases' inputs: all of Q is `query`, all of K is `key`, row j of V is all j.
  Problem& constant(float query, float key) {
    q.assign(static_cast<std::size_t>(queries()), query);
    k.assign(static_cast<std::size_t>(keys()), key);
    v.resize(static_cast<std::size_t>(keys()));
    for (int64_t i = 0; i < keys(); ++i) v[static_cast<std::size_t>(i)] = static_cast<float>(i / head_dim % k_len);
    return *this;
  }

  std::vector<double> reference() const {
    const double factor = scale ? *scale : 1 / std::sqrt(static_cast<double>(head_dim));
    return ladder::reference_attention(q, k, v, batch, heads, q_len, k_len, head_dim, factor, causal);
  }

  std::vector<float> run() const {
    using namespace ladder;
    const Buffer<float> q_buffer("q", q), k_buffer("k", k), v_buffer("v", v);
    Buffer<float> out("out", queries());
    attention(q_buffer.view(batch, heads, q_len, head_dim), k_buffer.view(batch, heads, k_len, head_dim),
              v_buffer.view(batch, heads, k_len, head_dim), out.view(batch, heads, q_len, head_dim), causal, scale,
              nullptr);
    const std::vector<float> result = out.download();
    CHECK(out.guards_intact());
    return result;
  }
};

inline void check_against_reference(const Problem& problem) {
  CAPTURE(problem.batch);
  CAPTURE(problem.heads);
  CAPTURE(problem.q_len);
  CAPTURE(problem.k_len);
  CAPTURE(problem.head_dim);
  CAPTURE(problem.causal);
  const auto difference = ladder::compare(problem.run(), problem.reference(), problem.sizes(), TOLERANCE);
  CHECK_MESSAGE(difference.matches(), difference.describe());
}

// Every element of query i's output is rows[i], in each batch and head.
inline void check_rows(const Problem& problem, const std::vector<double>& rows,
                       ladder::Tolerance tolerance = {0, 1e-6}) {
  CAPTURE(problem.q_len);
  CAPTURE(problem.k_len);
  CAPTURE(problem.head_dim);
  CAPTURE(problem.causal);
  std::vector<double> expected;
  for (int64_t i = 0; i < problem.queries(); ++i)
    expected.push_back(rows.at(static_cast<std::size_t>(i / problem.head_dim % problem.q_len)));
  const auto difference = ladder::compare(problem.run(), expected, problem.sizes(), tolerance);
  CHECK_MESSAGE(difference.matches(), difference.describe());
}
