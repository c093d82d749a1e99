// Every rung's kernels give the same bits in whatever order threads and blocks run: forward, reversed, warp by warp
// from the last, and in twenty random orders. What they give forward is first held against the reference.
#include <doctest/doctest.h>

#include <bit>
#include <set>
#include <string>

#include "common/harness/buffer.hpp"
#include "common/harness/compare.hpp"
#include "common/harness/inputs.hpp"
#include "common/harness/reference.hpp"
#include "steps/01_vector_add/vector_add.cuh"
#include "steps/01_vector_add/vectorized.cuh"
#include "steps/02_relu_dropout/four_per_call.cuh"
#include "steps/02_relu_dropout/in_flight.cuh"
#include "steps/02_relu_dropout/relu_dropout.cuh"
#include "steps/02_relu_dropout/unfused.cuh"
#include "steps/03_softmax_buggy/softmax.cuh"
#include "steps/04_softmax_fixed/naive.cuh"
#include "steps/04_softmax_fixed/softmax.cuh"
#include "steps/04_softmax_fixed/unfused.cuh"
#include "steps/04_softmax_fixed/vectorized.cuh"
#include "steps/05_attention/attention.cuh"
#include "steps/05_attention/register_tiles.cuh"
#include "tests/02_philox_by_hand.hpp"
#include "tests/05_attention_problem.hpp"

namespace {

using namespace ladder;

// The place of each thread of the grid in the order: what a kernel would depend on that is wrong.
__global__ void draw(int* tickets, int* next) { tickets[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd(next, 1); }

std::vector<int> tickets() {
  const Buffer<int> drawn("drawn", 2 * 64), next("next", std::vector<int>(1));
  launch(draw, dim3(2), dim3(64), 0, nullptr, drawn.data(), next.data());
  return drawn.download();
}

std::vector<std::string> other_orders() {
  std::vector<std::string> orders{"reversed", "warp-reversed"};
  for (int seed = 0; seed < 20; ++seed) orders.push_back("random:" + std::to_string(seed));
  return orders;
}

struct InOrder {
  explicit InOrder(const std::string& words) { REQUIRE(try_set_order(words)); }
  ~InOrder() { try_set_order("forward"); }
};

std::vector<uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<uint32_t> bits;
  for (float value : values) bits.push_back(std::bit_cast<uint32_t>(value));
  return bits;
}

// `run` writes `out`, which holds poison before; `right` judges what it gave forward.
template <class Run, class Right>
void check_orders(const std::string& what, int64_t size, Run run, Right right) {
  INFO(what);
  Buffer<float> out("out", size);
  const auto result = [&] {
    out.poison();
    run(out);
    return out.download();
  };
  std::vector<float> forward;
  std::set<std::vector<int>> seen;
  {
    const InOrder order("forward");
    forward = result();
    seen.insert(tickets());
  }
  REQUIRE(right(forward));
  const std::vector<uint32_t> expected = bits_of(forward);
  for (const std::string& words : other_orders()) {
    INFO(words);
    const InOrder order(words);
    CHECK(bits_of(result()) == expected);
    seen.insert(tickets());
  }
  CHECK(seen.size() == 1 + other_orders().size());  // no two of the orders were the same
}

}  // namespace

TEST_CASE("01: both kernels, with a part of a block and a tail") {
  for (int64_t n : {1, 255, 257, 1027}) {
    const std::vector<float> x = normal(n, 1), y = normal(n, 2);
    const Buffer<float> x_buffer("x", x), y_buffer("y", y);
    const auto right = [&](const std::vector<float>& out) {
      const std::vector<double> sums = reference_add(x, y);
      return compare_bits(out, std::vector<float>(sums.begin(), sums.end()), {n}).matches();
    };
    const auto check = [&](const std::string& name, auto add) {
      check_orders(
          name + ", n=" + std::to_string(n), n,
          [&](const Buffer<float>& out) { add(x_buffer.view(n), y_buffer.view(n), out.view(n)); }, right);
    };
    check("vector_add", [](auto a, auto b, auto out) { step01::vector_add(a, b, out); });
    check("vector_add_vectorized", [](auto a, auto b, auto out) { step01::vector_add_vectorized(a, b, out); });
  }
}

TEST_CASE("02: the three variants") {
  constexpr float P = 0.3f;
  constexpr uint64_t SEED = 7;
  for (int64_t n : {1, 1027}) {
    const std::vector<float> x = normal(n, 1);
    const Buffer<float> x_buffer("x", x);
    const auto check = [&](const std::string& name, auto launcher, auto word) {
      const std::vector<float> uniforms = by_hand::uniforms(word, SEED, 0, n);
      check_orders(
          name + ", n=" + std::to_string(n), n,
          [&](const Buffer<float>& out) { launcher(x_buffer.view(n), out.view(n), P, SEED, uint64_t{0}, nullptr); },
          [&](const std::vector<float>& out) {
            return compare(out, reference_relu_dropout(x, uniforms, P), {n}, {.absolute = 0, .relative = 1e-6})
                .matches();
          });
    };
    check("relu_dropout", step02::relu_dropout<256>, by_hand::word_per_call);
    check("relu_dropout_four_per_call", step02::relu_dropout_four_per_call<256>, by_hand::word_of_four);
    check("relu_dropout_in_flight", step02::relu_dropout_in_flight<64, 4>, by_hand::word_of_four);
    check("relu_dropout_unfused", step02::relu_dropout_unfused, by_hand::word_per_call);
  }
}

namespace {

constexpr Tolerance SOFTMAX_TOLERANCE{.absolute = 0, .relative = 2e-6};

template <class Softmax>
void check_softmax(const std::string& name, int64_t rows, int64_t columns, Softmax softmax) {
  const std::vector<float> x = normal(rows * columns, 3);
  const Buffer<float> input("input", x);
  check_orders(
      name + ", " + std::to_string(columns) + " columns", rows * columns,
      [&](const Buffer<float>& out) { softmax(input.view(rows, columns), out.view(rows, columns)); },
      [&](const std::vector<float>& out) {
        return compare(out, reference_softmax(x, rows, columns), {rows, columns}, SOFTMAX_TOLERANCE).matches();
      });
}

}  // namespace

TEST_CASE("03: right up to 1024 columns; past them wrong in the same way in every order") {
  check_softmax("softmax", 3, 1000, [](auto x, auto out) { step03::softmax(x, out); });
  constexpr int64_t ROWS = 3, COLUMNS = 1100, KEPT = 1024;
  const std::vector<float> x = normal(ROWS * COLUMNS, 3);
  const Buffer<float> input("input", x);
  std::vector<float> left;
  for (int64_t row = 0; row < ROWS; ++row)
    left.insert(left.end(), x.begin() + row * COLUMNS, x.begin() + row * COLUMNS + KEPT);
  check_orders(
      "softmax, 1100 columns", ROWS * COLUMNS,
      [&](const Buffer<float>& out) { step03::softmax(input.view(ROWS, COLUMNS), out.view(ROWS, COLUMNS)); },
      [&](const std::vector<float>& out) {
        std::vector<float> written;
        bool rest_is_poison = true;
        for (int64_t i = 0; i < ROWS * COLUMNS; ++i) {
          const float value = out[static_cast<std::size_t>(i)];
          if (i % COLUMNS < KEPT)
            written.push_back(value);
          else
            rest_is_poison = rest_is_poison && std::bit_cast<uint32_t>(value) == 0xffffffffu;
        }
        return rest_is_poison &&
               compare(written, reference_softmax(left, ROWS, KEPT), {ROWS, KEPT}, SOFTMAX_TOLERANCE).matches();
      });
}

TEST_CASE("BC-050: 04: one warp, several, and more columns than threads; naive and unfused") {
  for (int64_t columns : {1, 33, 300, 2000}) {
    check_softmax("softmax", 3, columns, [](auto x, auto out) { step04::softmax(x, out); });
    check_softmax("softmax_vectorized", 3, columns, [](auto x, auto out) { step04::softmax_vectorized(x, out); });
    check_softmax("softmax_naive", 3, columns, [](auto x, auto out) { step04::softmax_naive(x, out); });
    const Buffer<float> scratch("scratch", step04::unfused_scratch(3, columns));
    check_softmax("softmax_unfused", 3, columns,
                  [&](auto x, auto out) { step04::softmax_unfused(x, out, scratch.view(scratch.size())); });
  }
}

TEST_CASE("05: a part of a tile, causal and not") {
  for (const Problem& shape : {Problem{1, 1, 5, 15, 32}, Problem{2, 2, 35, 41, 20}, Problem{1, 1, 40, 3, 1}})
    for (const auto& [causal, attention] :
         {std::pair{false, &step05::attention}, std::pair{true, &step05::attention},
          std::pair{false, &step05::attention_register_tiles}, std::pair{true, &step05::attention_register_tiles}}) {
      Problem problem = shape;
      problem.causal = causal;
      problem.random(5);
      const Buffer<float> q("q", problem.q), k("k", problem.k), v("v", problem.v);
      check_orders(
          "attention, " + std::to_string(problem.q_len) + " queries, " + std::to_string(problem.k_len) + " keys",
          problem.queries(),
          [&, is_causal = causal, run = attention](const Buffer<float>& out) {
            run(q.view(problem.batch, problem.heads, problem.q_len, problem.head_dim),
                k.view(problem.batch, problem.heads, problem.k_len, problem.head_dim),
                v.view(problem.batch, problem.heads, problem.k_len, problem.head_dim),
                out.view(problem.batch, problem.heads, problem.q_len, problem.head_dim), is_causal, std::nullopt,
                nullptr);
          },
          [&](const std::vector<float>& out) {
            return compare(out, problem.reference(), problem.sizes(), TOLERANCE).matches();
          });
    }
}
