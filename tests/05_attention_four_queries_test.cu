// The variant of rung 05 that takes four queries at a time: above all where the last four are not four, and where the
// four see different keys.
#include <limits>

#include "steps/05_attention/four_queries.cuh"
#include "tests/05_attention_problem.hpp"

using namespace ladder;

namespace {

Problem by_fours(Problem problem) {
  problem.attention = step05::attention_four_queries;
  return problem;
}

}  // namespace

TEST_CASE("four queries: every remainder of queries, keys around a warp, with and without a mask") {
  uint64_t seed = 1;
  for (const bool causal : {false, true})
    for (int64_t q_len : {1, 2, 3, 4, 5, 31, 33, 127, 130})
      for (int64_t k_len : {1, 3, 31, 32, 33, 100})
        check_against_reference(
            by_fours(Problem{.q_len = q_len, .k_len = k_len, .head_dim = 16, .causal = causal}.random(seed++)));
}

TEST_CASE("four queries: head dimensions, batches and heads") {
  for (int64_t head_dim : {1, 2, 31, 33, 59, 64, 111, 256})
    check_against_reference(by_fours(
        Problem{.batch = 2, .heads = 3, .q_len = 6, .k_len = 9, .head_dim = head_dim, .causal = true}.random(7)));
}

TEST_CASE("four queries: a query that sees no key gives 0, and so does every query without keys") {
  check_against_reference(
      by_fours(Problem{.q_len = 11, .k_len = 5, .head_dim = 8, .causal = true}.random(3)));  // six see nothing
  check_against_reference(by_fours(Problem{.q_len = 5, .k_len = 0, .head_dim = 8}.random(3)));
}

TEST_CASE("four queries: a NaN or an infinity in a key or a value harms no query that may not see it") {
  for (const float poison : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
    for (int64_t key = 0; key < 8; ++key) {
      Problem problem = by_fours(Problem{.q_len = 8, .k_len = 8, .head_dim = 4, .causal = true}.random(5));
      const std::vector<float> clean = problem.run();
      for (int64_t d = 0; d < 4; ++d) {
        problem.k[static_cast<std::size_t>(key * 4 + d)] = poison;
        problem.v[static_cast<std::size_t>(key * 4 + d)] = poison;
      }
      std::vector<float> out = problem.run();
      CHECK(std::isnan(out[static_cast<std::size_t>(key * 4)]) == exactly(1));  // the query that sees it
      out.resize(static_cast<std::size_t>(key * 4));
      const Comparison difference = compare_bits(out, {clean.begin(), clean.begin() + key * 4}, {key, 4});
      CHECK_MESSAGE(difference.matches(), difference.describe());
    }
}

TEST_CASE("four queries: as many keys as fit, and one more, which is left to the rung's first kernel") {
  const auto on_chip = static_cast<int64_t>(shared_memory_limit());
  const int64_t most = step05::four_queries_most_keys(64, on_chip);
  CHECK(most < step05::most_keys(64, on_chip));
  for (int64_t k_len : {most, most + 1})
    check_against_reference(by_fours(Problem{.q_len = 5, .k_len = k_len, .head_dim = 64}.random(9)));
}

TEST_CASE("four queries: scores far from 0 in both directions") {
  for (const float scale : {-30.0f, 30.0f}) {
    Problem problem = by_fours(Problem{.q_len = 5, .k_len = 40, .head_dim = 8}.random(11));
    problem.scale = scale;
    const auto difference = compare(problem.run(), problem.reference(), problem.sizes(), {1e-3, 1e-3});
    CHECK_MESSAGE(difference.matches(), difference.describe());
  }
}

TEST_CASE("four queries: refusals name this launcher") {
  const Buffer<float> memory("memory", 100);
  CHECK_REFUSED(step05::attention_four_queries(memory.view(1, 1, 2, 4), memory.view(1, 2, 2, 4),
                                               memory.view(1, 2, 2, 4), memory.view(1, 1, 2, 4)),
                "attention_four_queries: k.sizes[1] is 2, must be 1, as of q");
}
