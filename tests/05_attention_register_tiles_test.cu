// The variant of rung 05 that keeps sums in registers: above all where the last tile of queries or keys is not whole,
// and where four queries that share a warp see different keys.
#include <limits>

#include "steps/05_attention/register_tiles.cuh"
#include "tests/05_attention_problem.hpp"

using namespace ladder;

namespace {

Problem by_tiles(Problem problem) {
  problem.attention = step05::attention_register_tiles;
  return problem;
}

}  // namespace

TEST_CASE("register tiles: tiles of queries and keys that are not whole, with and without a mask") {
  uint64_t seed = 1;
  for (const bool causal : {false, true})
    for (int64_t q_len : {1, 3, 4, 5, 31, 32, 33, 65, 128, 130})
      for (int64_t k_len : {1, 3, 15, 16, 17, 100, 128, 131})
        check_against_reference(
            by_tiles(Problem{.q_len = q_len, .k_len = k_len, .head_dim = 16, .causal = causal}.random(seed++)));
}

TEST_CASE("register tiles: head dimensions, batches and heads") {
  for (int64_t head_dim : {1, 2, 3, 5, 31, 33, 59, 64, 66, 111, 256})
    check_against_reference(by_tiles(
        Problem{.batch = 2, .heads = 3, .q_len = 6, .k_len = 9, .head_dim = head_dim, .causal = true}.random(7)));
}

TEST_CASE("register tiles: a query that sees no key gives 0, and so does every query without keys") {
  check_against_reference(
      by_tiles(Problem{.q_len = 11, .k_len = 5, .head_dim = 8, .causal = true}.random(3)));  // six see nothing
  check_against_reference(by_tiles(Problem{.q_len = 5, .k_len = 0, .head_dim = 8}.random(3)));
}

TEST_CASE("register tiles: a NaN or an infinity in a key or a value harms no query that may not see it") {
  for (const float poison : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
    for (int64_t key = 0; key < 8; ++key) {
      Problem problem = by_tiles(Problem{.q_len = 8, .k_len = 8, .head_dim = 4, .causal = true}.random(5));
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

TEST_CASE("register tiles: as many keys as fit, and one more, which is left to the rung's first kernel") {
  const auto on_chip = static_cast<int64_t>(shared_memory_limit());
  const int64_t most = step05::register_tiles_most_keys(64, on_chip);
  CHECK(most < step05::most_keys(64, on_chip));
  for (int64_t k_len : {most, most + 1})
    check_against_reference(by_tiles(Problem{.q_len = 5, .k_len = k_len, .head_dim = 64}.random(9)));
}

TEST_CASE("register tiles: scores far from 0 in both directions") {
  for (const float scale : {-30.0f, 30.0f}) {
    Problem problem = by_tiles(Problem{.q_len = 5, .k_len = 40, .head_dim = 8}.random(11));
    problem.scale = scale;
    const auto difference = compare(problem.run(), problem.reference(), problem.sizes(), {1e-3, 1e-3});
    CHECK_MESSAGE(difference.matches(), difference.describe());
  }
}

TEST_CASE("register tiles: refusals name this launcher") {
  const Buffer<float> memory("memory", 100);
  CHECK_REFUSED(step05::attention_register_tiles(memory.view(1, 1, 2, 4), memory.view(1, 2, 2, 4),
                                                 memory.view(1, 2, 2, 4), memory.view(1, 1, 2, 4)),
                "attention_register_tiles: k.sizes[1] is 2, must be 1, as of q");
}
