// Rung 05 against a double-precision reference and against literal numbers, at shapes that broke attention elsewhere.
#include <algorithm>
#include <limits>
#include <random>

#include "tests/05_attention_problem.hpp"

using namespace ladder;

namespace {

std::vector<double> all(int64_t q_len, double value) {
  return std::vector<double>(static_cast<std::size_t>(q_len), value);
}

// Overwrites one row of a (rows, head_dim) tensor.
void set_row(std::vector<float>& tensor, int64_t row, int64_t head_dim, float value) {
  std::fill_n(tensor.begin() + row * head_dim, head_dim, value);
}

}  // namespace

TEST_CASE("the article's shapes, with and without a mask") {
  for (const bool causal : {false, true}) {
    check_against_reference(Problem{.q_len = 5, .k_len = 15, .head_dim = 32, .causal = causal}.random(1));
    check_against_reference(Problem{.q_len = 1, .k_len = 10, .head_dim = 64, .causal = causal}.random(2));
  }
}

TEST_CASE("the tolerance rejects zeros, and what a missing scale, a missing key or a shifted mask would give") {
  Problem problem{.q_len = 7, .k_len = 40, .head_dim = 64, .causal = true};
  problem.random(3);
  const std::vector<double> expected = problem.reference();
  CHECK(rejects_zeros(expected, TOLERANCE));
  const std::vector<float> out = problem.run();
  CHECK(compare(out, expected, problem.sizes(), TOLERANCE).matches());
  const auto rejected = [&](const Problem& other) {
    return compare(out, other.reference(), other.sizes(), TOLERANCE).mismatched * 10 >= 9 * problem.queries();
  };
  Problem other = problem;
  other.scale = 1.0f;
  CHECK(rejected(other));
  other = problem;
  set_row(other.v, 0, 64, 0);
  CHECK(rejected(other));
  other = problem;
  other.causal = false;
  CHECK(compare(out, other.reference(), other.sizes(), TOLERANCE).mismatched >=
        6 * 64 * 9 / 10);  // the last row agrees
}

TEST_CASE("BC-053: keys that pad a warp or a tile take no part") {
  for (int64_t length : {1, 15, 31, 32, 33, 63, 64, 65, 127, 129, 192}) {
    Problem problem{.q_len = length, .k_len = length, .head_dim = 64};
    problem.constant(0, 0);
    std::fill(problem.v.begin(), problem.v.end(), 1.0f);
    check_rows(problem, all(length, 1), {0, 3e-6});  // up to 192 parts of 1, each rounded, add up
  }
}

TEST_CASE("BC-054: causal with fewer queries than keys is aligned at the bottom right") {
  check_rows(Problem{.q_len = 2, .k_len = 5, .head_dim = 8, .causal = true}.constant(0, 1), {1.5, 2.0});
}

TEST_CASE("BC-055: causal with more queries than keys: the first queries see nothing and give 0") {
  Problem problem{.q_len = 5, .k_len = 2, .head_dim = 4, .causal = true};
  problem.constant(0, 0);
  set_row(problem.v, 0, 4, 1);
  set_row(problem.v, 1, 4, 3);
  check_rows(problem, {0, 0, 0, 1, 2});
  // Several tiles of queries, of which the first see nothing.
  check_against_reference(Problem{.q_len = 100, .k_len = 33, .head_dim = 20, .causal = true}.random(4));
}

TEST_CASE("BC-056: a single query is the last position, not position 0") {
  for (const bool causal : {false, true})
    check_rows(Problem{.q_len = 1, .k_len = 65, .head_dim = 16, .causal = causal}.constant(0, 1), {32});
}

TEST_CASE("BC-057: the diagonal is visible") {
  check_rows(Problem{.q_len = 2, .k_len = 3, .head_dim = 8, .causal = true}.constant(0, 1), {0.5, 1.0});
}

TEST_CASE("BC-058: the mask against lists written out by hand") {
  check_rows(Problem{.q_len = 3, .k_len = 128, .head_dim = 8, .causal = true}.constant(0, 1), {62.5, 63, 63.5});
  struct Mask {
    int64_t q_len, k_len;
    std::vector<std::vector<int>> visible;  // by query, by key
  };
  const std::vector<Mask> masks{
      {3, 3, {{1, 0, 0}, {1, 1, 0}, {1, 1, 1}}},
      {3, 5, {{1, 1, 1, 0, 0}, {1, 1, 1, 1, 0}, {1, 1, 1, 1, 1}}},
      {5, 3, {{0, 0, 0}, {0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {1, 1, 1}}},
      {1, 4, {{1, 1, 1, 1}}},
      {4, 1, {{0}, {0}, {0}, {1}}},
  };
  // Key j holds 2^j, so that a mean of values tells which keys it was taken over.
  for (const Mask& mask : masks) {
    Problem problem{.q_len = mask.q_len, .k_len = mask.k_len, .head_dim = 4, .causal = true};
    problem.constant(0, 1);
    for (int64_t j = 0; j < mask.k_len; ++j) set_row(problem.v, j, 4, static_cast<float>(1 << j));
    std::vector<double> rows;
    for (const auto& visible : mask.visible) {
      double sum = 0, count = 0;
      for (std::size_t j = 0; j < visible.size(); ++j) {
        sum += visible[j] * (1 << j);
        count += visible[j];
      }
      rows.push_back(count > 0 ? sum / count : 0);
    }
    check_rows(problem, rows);
  }
}

TEST_CASE("BC-061: no keys: the output is 0, with null pointers for K and V as well") {
  for (const bool causal : {false, true}) {
    Buffer<float> q("q", normal(2 * 3 * 3 * 8, 1)), out("out", 2 * 3 * 3 * 8);
    out.fill(7);
    const Heads<const float> nothing = contiguous(static_cast<const float*>(nullptr), 2, 3, 0, 8);
    step05::attention(q.view(2, 3, 3, 8), nothing, nothing, out.view(2, 3, 3, 8), causal);
    check_same(out.download(), std::vector<float>(2 * 3 * 3 * 8, 0.0f));
    CHECK(out.guards_intact());
  }
}

TEST_CASE("BC-062: no queries, no batch, no heads: nothing is launched, and the next call is right") {
  const auto empty = [](int64_t batch, int64_t heads, int64_t q_len, int64_t k_len) {
    Buffer<float> k("k", std::max<int64_t>(1, batch * heads * k_len * 8));
    const Heads<float> none = contiguous(static_cast<float*>(nullptr), batch, heads, q_len, 8);
    const Heads<const float> keys = k.view(batch, heads, k_len, 8);
    const Launches launches = count_launches([&] { step05::attention(none, keys, keys, none); });
    CHECK(launches.kernels == exactly(0));
  };
  empty(1, 1, 0, 3);
  empty(0, 2, 3, 3);
  empty(2, 0, 3, 3);
  empty(1, 1, 0, int64_t{1} << 16);  // too many keys for any chip, and nobody asks for them
  check_against_reference(Problem{.q_len = 3, .k_len = 3, .head_dim = 8}.random(5));
}

TEST_CASE("BC-063: the last dimensions of a head of 128 take part") {
  Problem problem{.q_len = 1, .k_len = 2, .head_dim = 128};
  problem.constant(0, 0);
  problem.q[64] = problem.k[64] = 20;
  set_row(problem.v, 0, 128, 1);
  set_row(problem.v, 1, 128, 3);
  check_rows(problem, {1.0});
}

TEST_CASE("BC-064: every head dimension up to 256, not only powers of two; beyond it a refusal with the limits") {
  for (int64_t head_dim :
       {1, 2, 7, 20, 31, 32, 33, 40, 59, 63, 64, 65, 72, 80, 96, 111, 112, 128, 160, 192, 224, 255, 256})
    check_against_reference(
        Problem{.q_len = 35, .k_len = 27, .head_dim = head_dim}.random(static_cast<uint64_t>(head_dim)));
  for (int64_t head_dim : {0, 257, 512}) {
    const Buffer<float> x("x", normal(512, 1));
    Buffer<float> out("out", 512);
    CHECK_REFUSED(step05::attention(x.view(1, 1, 1, head_dim), x.view(1, 1, 1, head_dim), x.view(1, 1, 1, head_dim),
                                    out.view(1, 1, 1, head_dim)),
                  "attention: q.sizes[3] (head_dim) is " + std::to_string(head_dim) + ", must be from 1 to 256");
    CHECK(untouched(out));
  }
}

TEST_CASE("BC-065: the scale comes from the head dimension, not from a padded one") {
  for (const auto& [head_dim, expected] : {std::pair<int64_t, double>{40, 0.998211}, {33, 0.996810}}) {
    Problem problem{.q_len = 1, .k_len = 2, .head_dim = head_dim};
    problem.constant(1, 1);
    set_row(problem.k, 1, head_dim, 0);
    set_row(problem.v, 0, head_dim, 1);
    set_row(problem.v, 1, head_dim, 0);
    check_rows(problem, {expected}, {1e-6, 0});
  }
}

TEST_CASE("BC-067 in fp32: raw scores of 8,388,608") {
  Problem problem{.q_len = 1, .k_len = 4, .head_dim = 128};
  check_rows(problem.constant(256, 256), {1.5});
}

TEST_CASE("BC-068: no finite number stands for the mask, which real scores could undercut") {
  Problem problem{.q_len = 2, .k_len = 2, .head_dim = 16, .causal = true, .scale = 0.25f};
  problem.constant(100, 0);
  set_row(problem.k, 0, 16, -100);
  set_row(problem.v, 0, 16, 1);
  set_row(problem.v, 1, 16, 100);
  check_rows(problem, {1, 100});
}

TEST_CASE("BC-070: a scale of 0 makes all visible keys equal, and no infinity meets it") {
  check_rows(Problem{.q_len = 4, .k_len = 4, .head_dim = 8, .causal = true, .scale = 0.0f}.constant(1, 1),
             {0, 0.5, 1, 1.5});
}

TEST_CASE("BC-075: fp32 stays fp32, no bits are cut from the inputs") {
  Problem problem{.q_len = 1, .k_len = 2, .head_dim = 64};
  problem.constant(64, 64);
  set_row(problem.k, 0, 64, 64.015625f);
  set_row(problem.v, 0, 64, 1);
  set_row(problem.v, 1, 64, 0);
  check_rows(problem, {0.999665}, {1e-6, 0});
}

TEST_CASE("a key that no query may see is not touched by arithmetic: NaN and infinity there do not matter") {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  for (const float hostile : {nan, infinity, -infinity}) {
    Problem clean{.q_len = 40, .k_len = 50, .head_dim = 24, .causal = true};
    clean.random(6);
    Problem dirty = clean;
    set_row(dirty.k, 49, 24, hostile);  // only the last query sees key 49
    set_row(dirty.v, 49, 24, hostile);
    const std::vector<float> expected = clean.run(), out = dirty.run();
    check_same({out.begin(), out.end() - 24}, {expected.begin(), expected.end() - 24});
    CHECK(std::all_of(out.end() - 24, out.end(), [](float o) { return !std::isfinite(o); }));
  }
}

TEST_CASE("a NaN in a visible key makes its queries NaN, and no others") {
  Problem problem{.heads = 2, .q_len = 3, .k_len = 40, .head_dim = 8};
  problem.random(7).k[17 * 8] = std::numeric_limits<float>::quiet_NaN();  // in head 0
  const std::vector<float> out = problem.run();
  std::vector<double> expected = problem.reference();
  CHECK(std::all_of(expected.begin(), expected.begin() + 24, [](double o) { return std::isnan(o); }));
  CHECK(compare(out, expected, problem.sizes(), TOLERANCE).matches());
}

TEST_CASE("scores far from 0 in both directions: the maximum is subtracted") {
  for (const float level : {-300.0f, 300.0f}) {
    Problem problem{.q_len = 2, .k_len = 33, .head_dim = 1, .scale = 1.0f};
    problem.random(8);
    std::fill(problem.q.begin(), problem.q.end(), 1.0f);
    for (float& key : problem.k) key += level;
    check_against_reference(problem);
  }
}

TEST_CASE("several tiles, batches and heads: every query finds its own keys") {
  for (const bool causal : {false, true})
    for (int64_t q_len : {31, 32, 33, 64, 65, 100})
      check_against_reference(
          Problem{.batch = 2, .heads = 3, .q_len = q_len, .k_len = 45, .head_dim = 12, .causal = causal}.random(9));
}

// On a GPU only: the CPU device needs seconds for 65,538 blocks of 256 threads that make one output each.
TEST_CASE("batch x heads beyond 65,535, where grid.y would end" * doctest::skip(try_set_device_model("sm_90"))) {
  Problem problem{.batch = 2, .heads = 32'769};
  problem.random(10);
  check_same(problem.run(), problem.v);  // one key: its value, also for the last head
}

TEST_CASE("any shape matches the reference") {
  CHECK_PROPERTY([] {
    Problem problem{.batch = *rc::gen::inRange<int64_t>(1, 3),
                    .heads = *rc::gen::inRange<int64_t>(1, 4),
                    .q_len = *rc::gen::inRange<int64_t>(1, 70),
                    .k_len = *rc::gen::inRange<int64_t>(1, 70),
                    .head_dim = *rc::gen::inRange<int64_t>(1, 40),
                    .causal = *rc::gen::arbitrary<bool>()};
    problem.random(*rc::gen::arbitrary<uint32_t>());
    const Comparison difference = compare(problem.run(), problem.reference(), problem.sizes(), TOLERANCE);
    if (!difference.matches()) RC_FAIL(difference.describe());
  });
}

TEST_CASE("attention of one key returns its value, to the bit") {
  CHECK_PROPERTY([] {
    Problem problem{.q_len = *rc::gen::inRange<int64_t>(1, 40), .head_dim = *rc::gen::inRange<int64_t>(1, 257)};
    problem.random(*rc::gen::arbitrary<uint32_t>());
    std::vector<float> expected;
    for (int64_t i = 0; i < problem.q_len; ++i) expected.insert(expected.end(), problem.v.begin(), problem.v.end());
    RC_ASSERT(compare_bits(problem.run(), expected, problem.sizes()).matches());
  });
}

TEST_CASE("the order of the keys changes nothing but the rounding") {
  CHECK_PROPERTY([] {
    Problem problem{
        .q_len = 3, .k_len = *rc::gen::inRange<int64_t>(2, 80), .head_dim = *rc::gen::inRange<int64_t>(1, 20)};
    problem.random(*rc::gen::arbitrary<uint32_t>());
    Problem permuted = problem;
    std::vector<int64_t> order(static_cast<std::size_t>(problem.k_len));
    for (std::size_t j = 0; j < order.size(); ++j) order[j] = static_cast<int64_t>(j);
    std::shuffle(order.begin(), order.end(), std::mt19937(*rc::gen::arbitrary<uint32_t>()));
    for (std::size_t j = 0; j < order.size(); ++j)
      for (int64_t d = 0; d < problem.head_dim; ++d) {
        const auto to = static_cast<std::size_t>(static_cast<int64_t>(j) * problem.head_dim + d);
        const auto from = static_cast<std::size_t>(order[j] * problem.head_dim + d);
        permuted.k[to] = problem.k[from];
        permuted.v[to] = problem.v[from];
      }
    const std::vector<float> out = problem.run();
    const std::vector<double> expected(out.begin(), out.end());
    const Comparison difference = compare(permuted.run(), expected, problem.sizes(), TOLERANCE);
    if (!difference.matches()) RC_FAIL(difference.describe());
  });
}
