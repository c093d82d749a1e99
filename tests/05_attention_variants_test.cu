// What both kernels of rung 05 must do alike, and what only extreme numbers, uneven strides and full memory show.
#include <algorithm>
#include <limits>
#include <string>

#include "steps/05_attention/register_tiles.cuh"
#include "tests/05_attention_problem.hpp"

using namespace ladder;

namespace {

constexpr float INF = std::numeric_limits<float>::infinity(), NOT_A_NUMBER = std::numeric_limits<float>::quiet_NaN();

struct Variant {
  std::string name;
  decltype(&step05::attention) attention;
  int64_t queries_per_block;
  int64_t (*most_keys)(int64_t head_dim, int64_t bytes);
};
const std::vector<Variant> VARIANTS{{"attention", step05::attention, step05::QUERIES_PER_BLOCK, step05::most_keys},
                                    {"attention_register_tiles", step05::attention_register_tiles,
                                     step05::QUERIES_PER_BLOCK_OF_TILES, step05::register_tiles_most_keys}};

Problem with(Problem problem, const Variant& variant) {
  problem.attention = variant.attention;
  return problem;
}

// One query of 1, keys of `keys`, values of `values`, a head dimension of 1 and a scale of 1: what comes out.
void check_one(const Variant& variant, const std::vector<float>& keys, const std::vector<float>& values,
               double expected) {
  CAPTURE(variant.name);
  Problem problem{.k_len = std::ssize(keys), .q = {1}, .k = keys, .v = values, .scale = 1.0f};
  const Comparison difference = compare(with(problem, variant).run(), std::vector<double>{expected}, {1}, TOLERANCE);
  CHECK_MESSAGE(difference.matches(), difference.describe());
}

}  // namespace

TEST_CASE("values near the largest float: no sum overflows on the way to their mean") {
  for (const Variant& variant : VARIANTS) {
    check_one(variant, {0, 0}, {1.8e38f, 1.8e38f}, 1.8e38f);
    check_one(variant, {0, 0}, {-3.4e38f, -3.4e38f}, -3.4e38f);
    check_one(variant, {0, 0, 0, 0}, {3.4e38f, 3.4e38f, -3.4e38f, -3.4e38f}, 0);
    check_one(variant, {0, 0, 0, 0}, {3.4e38f, 3.4e38f, 3.4e38f, -3.4e38f}, 3.4e38f / 2);
    for (int64_t k_len : {33, 300})
      for (const bool causal : {false, true}) {
        Problem problem{.heads = 2, .q_len = 40, .k_len = k_len, .head_dim = 5, .causal = causal};
        problem.random(1);
        std::fill(problem.v.begin(), problem.v.end(), 3.4e38f);
        check_against_reference(with(problem, variant));
      }
  }
}

TEST_CASE("values near the smallest float come through, the smallest one as itself") {
  for (const Variant& variant : VARIANTS) {
    CAPTURE(variant.name);
    const float smallest = std::numeric_limits<float>::denorm_min();
    check_same(with(Problem{.q = {1}, .k = {1}, .v = {smallest}}, variant).run(), {smallest});
    check_same(with(Problem{.k_len = 2, .q = {1}, .k = {1, 1}, .v = {1e-37f, 1e-37f}}, variant).run(), {1e-37f});
  }
}

TEST_CASE("a dot product that overflows before it is scaled makes its query NaN, and no other") {
  for (const Variant& variant : VARIANTS) {
    CAPTURE(variant.name);
    Problem problem{.q_len = 2, .k_len = 2, .q = {1e20f, 1}, .k = {1e20f, 1e20f}, .v = {1, 3}, .scale = 1e-30f};
    const std::vector<float> out = with(problem, variant).run();
    CHECK(std::isnan(out[0]) == exactly(1));
    CHECK(within(out[1], 2, 1e-5));
  }
}

TEST_CASE("BC-068: scores as low as a float goes: no finite number stands for the start of the maximum") {
  for (const Variant& variant : VARIANTS) {
    for (const float low : {-1e6f, -1e12f, -1e30f, -3.4e38f}) {
      check_one(variant, {low, low}, {1, 3}, 2);
      check_one(variant, std::vector<float>(40, low), std::vector<float>(40, 7), 7);
      check_one(variant, {low, 0}, {1, 3}, 3);
    }
    // Row 0 sees the first key alone, whose score is as low as any; the second key's is far above it.
    Problem problem{
        .q_len = 2, .k_len = 2, .q = {1, 1}, .k = {-3.4e38f, 0}, .v = {1, 100}, .causal = true, .scale = 1.0f};
    check_rows(with(problem, variant), {1, 100});
  }
}

TEST_CASE("one key returns its value, and one score above all others too, to the bit") {
  for (const Variant& variant : VARIANTS)
    for (int64_t head_dim : {1, 2, 7, 64, 256}) {
      CAPTURE(variant.name);
      Problem problem{.q_len = 5, .k_len = 1, .head_dim = head_dim};
      problem.random(3);
      std::vector<float> expected;
      for (int i = 0; i < 5; ++i) expected.insert(expected.end(), problem.v.begin(), problem.v.end());
      check_same(with(problem, variant).run(), expected);
      problem = {.q_len = 5, .k_len = 34, .head_dim = head_dim};
      problem.random(4);
      std::fill(problem.q.begin(), problem.q.end(), 1.0f);
      std::fill(problem.k.begin(), problem.k.end(), -1000.0f);
      std::fill_n(problem.k.begin() + 33 * head_dim, head_dim, 1000.0f);
      expected.clear();
      for (int i = 0; i < 5; ++i) expected.insert(expected.end(), problem.v.end() - head_dim, problem.v.end());
      check_same(with(problem, variant).run(), expected);
    }
}

TEST_CASE("a scale that is negative, zero or large is the one that counts, with a mask and without") {
  for (const Variant& variant : VARIANTS)
    for (const float scale : {-2.0f, -0.25f, 0.0f, 0.3f, 4.0f})
      for (const bool causal : {false, true}) {
        CAPTURE(variant.name);
        CAPTURE(scale);
        Problem problem{.heads = 2, .q_len = 6, .k_len = 9, .head_dim = 3, .causal = causal, .scale = scale};
        check_against_reference(with(problem.random(5), variant));
      }
}

TEST_CASE("four batches of three heads, and more: each finds its own") {
  for (const Variant& variant : VARIANTS)
    for (const auto& [batch, heads] : {std::pair<int64_t, int64_t>{4, 3}, {7, 1}, {1, 7}, {3, 5}}) {
      CAPTURE(variant.name);
      Problem problem{
          .batch = batch, .heads = heads, .q_len = variant.queries_per_block + 1, .k_len = 4, .head_dim = 2};
      check_against_reference(with(problem.random(6), variant));
    }
}

TEST_CASE("a NaN in any column of Q, K or V reaches the queries that see it, and no others") {
  constexpr int64_t Q_LEN = 5, K_LEN = 5, D = 7;
  for (const Variant& variant : VARIANTS)
    for (int64_t d = 0; d < D; ++d)
      for (int64_t row = 0; row < K_LEN; ++row) {
        CAPTURE(variant.name);
        CAPTURE(d);
        CAPTURE(row);
        const auto check = [&](const std::string& tensor, std::vector<float> Problem::*member) {
          CAPTURE(tensor);
          Problem problem{.q_len = Q_LEN, .k_len = K_LEN, .head_dim = D, .causal = true};
          (problem.random(7).*member)[static_cast<std::size_t>(row * D + d)] = NOT_A_NUMBER;
          const std::vector<double> expected = problem.reference();
          CHECK(std::ranges::count_if(expected, [](double o) { return std::isnan(o); }) > 0);
          const Comparison difference = compare(with(problem, variant).run(), expected, problem.sizes(), TOLERANCE);
          CHECK_MESSAGE(difference.matches(), difference.describe());
        };
        check("q", &Problem::q);
        check("k", &Problem::k);
        check("v", &Problem::v);
      }
}

TEST_CASE("a key at -inf has no weight, wherever it stands") {
  for (const Variant& variant : VARIANTS)
    for (std::size_t place = 0; place < 3; ++place) {
      std::vector<float> keys(3, 0.0f), values{1, 2, 6};
      keys[place] = -INF;
      check_one(variant, keys, values, (9 - values[place]) / 2);
    }
}

namespace {

// A tensor of (batch, heads, rows, head_dim) in memory of its own order and gaps, NaN between.
struct Layout {
  std::vector<int64_t> order;  // axes from the widest stride to the narrowest but the last
  int64_t gap;                 // elements added to each stride
};
std::array<int64_t, 4> strides_of(const Layout& layout, const std::array<int64_t, 4>& sizes) {
  std::array<int64_t, 4> strides{0, 0, 0, 1};
  int64_t stride = sizes[3];
  for (std::size_t i = 3; i-- > 0;) {
    const auto axis = static_cast<std::size_t>(layout.order[i]);
    strides[axis] = stride += layout.gap;
    stride *= sizes[axis];
  }
  return strides;
}
template <class Body>
void for_each_row(const std::array<int64_t, 4>& sizes, const std::array<int64_t, 4>& strides, Body&& body) {
  int64_t row = 0;
  for (int64_t b = 0; b < sizes[0]; ++b)
    for (int64_t h = 0; h < sizes[1]; ++h)
      for (int64_t i = 0; i < sizes[2]; ++i) body(row++ * sizes[3], b * strides[0] + h * strides[1] + i * strides[2]);
}

}  // namespace

TEST_CASE("Q, K, V and the output each in a layout of its own: no stride is taken for another") {
  constexpr std::array<int64_t, 4> Q_SIZES{2, 3, 34, 6}, K_SIZES{2, 3, 19, 6};
  const std::vector<Layout> layouts{{{0, 1, 2}, 1}, {{1, 2, 0}, 2}, {{2, 0, 1}, 5}, {{0, 2, 1}, 3}};
  for (const Variant& variant : VARIANTS)
    for (std::size_t turn = 0; turn < layouts.size(); ++turn) {
      CAPTURE(variant.name);
      CAPTURE(turn);
      Problem problem{.batch = 2, .heads = 3, .q_len = 34, .k_len = 19, .head_dim = 6};
      problem.random(8 + turn);
      const auto layout = [&](std::size_t which) { return layouts[(which + turn) % layouts.size()]; };
      const auto laid_out = [&](const std::vector<float>& values, const std::array<int64_t, 4>& sizes, Layout how) {
        const auto strides = strides_of(how, sizes);
        std::vector<float> cells(4000, NOT_A_NUMBER);
        for_each_row(sizes, strides, [&](int64_t from, int64_t to) {
          std::copy_n(values.begin() + from, sizes[3], cells.begin() + to);
        });
        return cells;
      };
      const Buffer<float> q("q", laid_out(problem.q, Q_SIZES, layout(0))),
          k("k", laid_out(problem.k, K_SIZES, layout(1))), v("v", laid_out(problem.v, K_SIZES, layout(2)));
      Buffer<float> out("out", 4000);
      out.fill(-777.0f);
      const auto view = [&](const Buffer<float>& buffer, const std::array<int64_t, 4>& sizes, std::size_t which) {
        return Heads<float>{buffer.data(), sizes, strides_of(layout(which), sizes), buffer.size()};
      };
      variant.attention(view(q, Q_SIZES, 0), view(k, K_SIZES, 1), view(v, K_SIZES, 2), view(out, Q_SIZES, 3), false,
                        std::nullopt, nullptr);
      std::vector<double> expected(4000, -777.0);
      const std::vector<double> reference = problem.reference();
      for_each_row(Q_SIZES, strides_of(layout(3), Q_SIZES), [&](int64_t from, int64_t to) {
        std::copy_n(reference.begin() + from, Q_SIZES[3], expected.begin() + to);
      });
      const Comparison difference = compare(out.download(), expected, {4000}, TOLERANCE);
      CHECK_MESSAGE(difference.matches(), difference.describe());
    }
}

TEST_CASE("as many keys as fill the shared memory to the last byte are taken, by the kernel itself") {
  const auto on_chip = static_cast<int64_t>(shared_memory_limit());
  for (const Variant& variant : VARIANTS) {
    int found = 0;
    for (int64_t head_dim = 1; head_dim <= 256 && found < 2; ++head_dim) {
      const int64_t last = variant.most_keys(head_dim, on_chip);
      if (variant.most_keys(head_dim, on_chip - 4) == last) continue;  // some bytes are left over
      ++found;
      CAPTURE(variant.name);
      CAPTURE(head_dim);
      Problem problem{.q_len = variant.queries_per_block, .k_len = last, .head_dim = head_dim};
      problem.random(9);
      const Buffer<float> q("q", problem.q), k("k", problem.k), v("v", problem.v);
      Buffer<float> out("out", problem.queries());
      const Launches launches = count_launches([&] {
        variant.attention(q.view(1, 1, problem.q_len, head_dim), k.view(1, 1, last, head_dim),
                          v.view(1, 1, last, head_dim), out.view(1, 1, problem.q_len, head_dim), false, std::nullopt,
                          nullptr);
      });
      const Comparison difference = compare(out.download(), problem.reference(), problem.sizes(), TOLERANCE);
      CHECK_MESSAGE(difference.matches(), difference.describe());
      // One block, and so one trip of K: the rung's first kernel, with fewer queries a block, would need more.
      if (device_checks()) CHECK(launches.traffic[1].bytes_read == exactly(4 * problem.keys()));
    }
    CHECK(found > 0);
  }
}

TEST_CASE("register tiles: what is left to the first kernel keeps its mask, scale, batches and heads") {
  const int64_t most = step05::register_tiles_most_keys(64, static_cast<int64_t>(shared_memory_limit()));
  for (const bool causal : {false, true})
    for (const std::optional<float> scale : {std::optional<float>{}, std::optional<float>{-0.2f}}) {
      Problem problem{
          .batch = 3, .heads = 2, .q_len = 5, .k_len = most + 1, .head_dim = 64, .causal = causal, .scale = scale};
      check_against_reference(with(problem.random(10), VARIANTS[1]));
    }
}

TEST_CASE("a refusal names the launcher that was called, also where it leaves the call to another") {
  float cell = 0;  // the memory need not be there: nothing is launched
  for (const Variant& variant : VARIANTS)
    for (int64_t k_len : {int64_t{1}, step05::most_keys(1, static_cast<int64_t>(shared_memory_limit()))}) {
      const int64_t q_len = variant.queries_per_block << 31, refused = k_len == 1 ? 1LL << 31 : (q_len + 31) / 32;
      const Heads<float> keys{&cell, {1, 1, k_len, 1}, {0, 0, 0, 0}, 1},
          queries{&cell, {1, 1, q_len, 1}, {0, 0, 0, 1}, 1};
      const Heads<float> out{&cell + 1, {1, 1, q_len, 1}, {0, 0, 1, 1}, q_len};
      CHECK_REFUSED(
          variant.attention(queries, keys, keys, out, false, std::nullopt, nullptr),
          variant.name + ": the number of blocks is " + std::to_string(refused) + ", must be at most 2147483647");
    }
}
