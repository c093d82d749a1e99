// ./climb 5 runs this: attention with all of K and V on chip, checked and counted; --wall: where the chip ends.
#include <iostream>

#include "common/harness/buffer.hpp"
#include "common/harness/command_line.hpp"
#include "common/harness/compare.hpp"
#include "common/harness/inputs.hpp"
#include "common/harness/predict.hpp"
#include "common/harness/program.hpp"
#include "common/harness/reference.hpp"
#include "common/harness/report.hpp"
#include "common/harness/work.hpp"
#include "steps/05_attention/attention.cuh"
#include "steps/05_attention/register_tiles.cuh"

namespace {

using namespace ladder;

constexpr Tolerance TOLERANCE{2e-6, 1e-5};  // the outputs are near 1

constexpr std::array<int64_t, 3> HEAD_DIMS{32, 64, 128};

struct Shape {
  int64_t batch, heads, q_len, k_len, head_dim;

  std::vector<int64_t> q_sizes() const { return {batch, heads, q_len, head_dim}; }
  int64_t queries() const { return batch * heads * q_len * head_dim; }
  int64_t keys() const { return batch * heads * k_len * head_dim; }
};

struct Problem {
  Shape shape;
  std::vector<float> host_q, host_k, host_v;
  Buffer<float> q, k, v, out;

  Problem(const Shape& s, std::vector<float> q_values, std::vector<float> k_values, std::vector<float> v_values)
      : shape(s),
        host_q(std::move(q_values)),
        host_k(std::move(k_values)),
        host_v(std::move(v_values)),
        q("Q", host_q),
        k("K", host_k),
        v("V", host_v),
        out("O", s.queries()) {}
  // Outputs are averages of V: with a mean of 1 they stay away from 0, where a tolerance would see little.
  Problem(const Shape& s, uint64_t seed)
      : Problem(s, normal(s.queries(), seed), normal(s.keys(), seed + 1), normal(s.keys(), seed + 2, 1)) {}

  void run(bool causal) {
    const auto& [batch, heads, q_len, k_len, head_dim] = shape;
    step05::attention(q.view(batch, heads, q_len, head_dim), k.view(batch, heads, k_len, head_dim),
                      v.view(batch, heads, k_len, head_dim), out.view(batch, heads, q_len, head_dim), causal);
  }
  std::vector<Tensor> tensors() const {
    const auto& [batch, heads, q_len, k_len, head_dim] = shape;
    return {q.view(batch, heads, q_len, head_dim), k.view(batch, heads, k_len, head_dim),
            v.view(batch, heads, k_len, head_dim), out.view(batch, heads, q_len, head_dim)};
  }
  Comparison check(bool causal) const {
    const auto& [batch, heads, q_len, k_len, head_dim] = shape;
    const std::vector<double> expected =
        reference_attention(host_q, host_k, host_v, batch, heads, q_len, k_len, head_dim,
                            1 / std::sqrt(static_cast<double>(head_dim)), causal);
    return compare(out.download(), expected, shape.q_sizes(), TOLERANCE);
  }
};

std::string max_abs_diff(const Comparison& difference) {
  return difference.matches() ? "max abs diff " + significant(difference.max_abs_diff) : difference.describe();
}

std::string size_text(int64_t rows, int64_t columns) {
  return "(" + std::to_string(rows) + ", " + std::to_string(columns) + ")";
}

void show_article_shapes(Report& report, uint64_t seed) {
  report.paragraph("The article's two shapes, against softmax(Q K^T / sqrt(head_dim)) V in double precision:");
  for (const Shape& shape : {Shape{1, 1, 5, 15, 32}, Shape{1, 1, 1, 10, 64}}) {
    Problem problem(shape, seed);
    problem.run(false);
    const std::string keys = size_text(shape.k_len, shape.head_dim);
    const Comparison difference = problem.check(false);
    report.verdict("Q: " + size_text(shape.q_len, shape.head_dim) + ", K: " + keys + ", V: " + keys + "  ->  matches",
                   difference.matches(), max_abs_diff(difference));
  }
}

// With Q = 0 all scores are equal, so that each query averages the values it may see: row j of V holds j.
void show_causal(Report& report) {
  report.paragraph(
      "Causal, 2 queries and 5 keys, every score 0, row j of V all j: O is the mean of the values seen. The last query "
      "sees the last key, so query 0 sees keys 0 to 3. (With the mask at the top left it would be 0 and 0.5.)");
  Problem problem({1, 1, 2, 5, 1}, {0, 0}, {0, 0, 0, 0, 0}, {0, 1, 2, 3, 4});
  problem.run(true);
  const std::vector<float> o = problem.out.download();
  report.verdict("O = 1.5, 2", o == std::vector<float>{1.5f, 2.0f}, significant(o[0]) + ", " + significant(o[1]));
}

void show_traffic(Report& report, const Shape& shape, bool causal, uint64_t seed) {
  const auto& [batch, heads, q_len, k_len, head_dim] = shape;
  report.paragraph("Batch " + std::to_string(batch) + ", " + std::to_string(heads) + " heads, " +
                   std::to_string(q_len) + " queries, " + std::to_string(k_len) + " keys, head dimension " +
                   std::to_string(head_dim) + (causal ? ", causal:" : ":"));
  Problem problem(shape, seed);
  Launches launches;
  observe(problem.tensors(), [&] { launches = count_launches([&] { problem.run(causal); }); });
  const Comparison difference = problem.check(causal);
  report.verdict("attention matches the reference", difference.matches() && problem.out.guards_intact(),
                 max_abs_diff(difference));
  report.value("shared memory of a block", grouped(step05::shared_bytes(k_len, head_dim)) + " of " +
                                               grouped(static_cast<int64_t>(shared_memory_limit())) + " bytes");
  report.traffic(launches);
  const int64_t tiles = cdiv(q_len, step05::QUERIES_PER_BLOCK);
  const int64_t bytes = 4 * (2 * shape.queries() + (q_len == 0 ? 0 : tiles * 2 * shape.keys()));
  const std::string formula = "4 (2 size of Q + " + std::to_string(tiles) + " tiles * 2 size of K) = " + grouped(bytes);
  if (device_checks())
    report.verdict("Each tile of " + std::to_string(step05::QUERIES_PER_BLOCK) + " queries reads K and V once",
                   launches.bytes() == bytes, formula);
  else
    report.value("by the formula", formula, "bytes");
  report.paragraph("S and P, " + grouped(4 * batch * heads * q_len * k_len) +
                   " bytes each, never leave the chip. Separate kernels would write and read both.");
}

// Calls the launcher with one query. True when it ran and was right, false when it was refused; `refusal` is then its
// text.
bool fits(int64_t k_len, int64_t head_dim, std::string& refusal) {
  Problem problem({1, 1, 1, k_len, head_dim}, 0);
  try {
    problem.run(false);
  } catch (const InvalidArgument& error) {
    refusal = error.what();
    return false;
  }
  if (const Comparison difference = problem.check(false); !difference.matches())
    throw KernelFault("k_len " + std::to_string(k_len) + ": " + difference.describe());
  return true;
}

// Walks k_len upward on the current device until the launcher refuses: in doubling steps, then between the last that
// ran and the first that did not. Returns the largest k_len that ran, or -1 when it did not run again after a refusal.
int64_t walk(int64_t head_dim, std::string& refusal) {
  int64_t runs = 0, refused = 1;
  for (; fits(refused, head_dim, refusal); refused *= 2) runs = refused;
  while (refused - runs > 1) {
    const int64_t between = runs + (refused - runs) / 2;
    if (fits(between, head_dim, refusal))
      runs = between;
    else
      refused = between;
  }
  return !fits(refused, head_dim, refusal) && fits(runs, head_dim, refusal) ? runs : -1;
}

// The wall of one device for each head dimension: computed, and on the current device walked to. Returns the words of
// the last refusal.
std::string show_wall(Report& report, const std::string& device, std::size_t limit, bool is_current) {
  report.paragraph(device + ": " + grouped(static_cast<int64_t>(limit)) + " bytes (" + std::to_string(limit / 1024) +
                   " KiB) of shared memory for one block" + (is_current ? "" : ", by the formula, not tried here"));
  bool as_computed = true;
  std::string refusal;
  for (int64_t head_dim : HEAD_DIMS) {
    const int64_t last = step05::most_keys(head_dim, static_cast<int64_t>(limit));
    const auto keys = [&](int64_t k_len) {
      return grouped(k_len) + " keys (" + grouped(step05::shared_bytes(k_len, head_dim)) + " bytes)";
    };
    report.value("head dimension " + std::to_string(head_dim), keys(last) + " fit, " + keys(last + 1) + " do not");
    if (is_current) as_computed = walk(head_dim, refusal) == last && as_computed;
  }
  if (is_current) report.verdict("Walked upward, it stops there", as_computed, "and runs again after a refusal");
  return refusal;
}

int wall(Report& report) {
  report.paragraph(
      "This rung holds all of K and V in the shared memory of one block. K and V grow with k_len, a chip does not: the "
      "article's kernel \"breaks, not gracefully, it just runs out of room\". Here the launcher computes the bytes "
      "first, and refuses before anything runs. The article's \"tens of kilobytes\" of a "
      "multiprocessor are, for one block of it, by architecture:");
  std::string refusal;
  if (try_set_device_model(DEVICE_MODELS.front().name)) {
    for (const DeviceModel& model : DEVICE_MODELS) {
      try_set_device_model(model.name);
      refusal = show_wall(report, std::string(model.name), model.shared_bytes, true);
    }
  } else {
    for (const DeviceModel& model : DEVICE_MODELS)
      show_wall(report, std::string(model.name), model.shared_bytes, false);
    refusal = show_wall(report, "This device", shared_memory_limit(), true);
  }
  report.paragraph("The last refusal, in the launcher's words: " + refusal);
  report.paragraph("What a tiled algorithm would need instead for its tile of K and V, here 64 keys, at any k_len:");
  for (int64_t head_dim : HEAD_DIMS)
    report.value("head dimension " + std::to_string(head_dim), grouped(2 * 64 * head_dim * 4), "bytes");
  report.lesson(
      "what must fit on chip decides how far a kernel goes. A softmax that never needs its whole row (rung 06) takes "
      "the wall down (rung 07).");
  return report.exit_status();
}

// With as many keys as fit on chip; Q, K and O are of H heads, D wide.
void predict(Report& report) {
  const int64_t heads = 16, q_len = 4096, head_dim = 64;
  const auto on_chip = static_cast<int64_t>(shared_memory_limit());
  const auto with = [=](const std::string& name, int64_t k_len, auto attention) -> Prediction {
    const auto H = static_cast<double>(heads), Q = static_cast<double>(q_len), K = static_cast<double>(k_len),
               D = static_cast<double>(head_dim);
    return {.what = name,
            .bytes = {8 * H * (Q + K) * D, "8 H (Q + K) D"},
            .operations = {4 * H * Q * K * D, "4 H Q K D"},  // two products; a multiply-add is two operations
            .make = [=] { return attention_work(heads, q_len, k_len, head_dim, attention); }};
  };
  const int64_t k_len = step05::register_tiles_most_keys(head_dim, on_chip);
  predict_then_measure(
      report,
      "H = " + grouped(heads) + " heads, Q = " + grouped(q_len) + " queries, K = " + grouped(k_len) +
          " keys, as many as fit for both, D = " + grouped(head_dim),
      {with("attention", k_len, [](auto q, auto k, auto v, auto out) { step05::attention(q, k, v, out); }),
       with("attention_register_tiles", k_len,
            [](auto q, auto k, auto v, auto out) { step05::attention_register_tiles(q, k, v, out); })});
}

}  // namespace

int main(int argc, char** argv) {
  Shape shape{2, 4, 100, 150, 64};
  uint64_t seed = 0;
  bool causal = false, show_only_wall = false;
  CommandLine command_line("05_attention", "Scaled dot-product attention with all of K and V in shared memory.");
  command_line.integer("--q-len", shape.q_len, "length of the query sequence", "queries", 0, int64_t{1} << 20);
  command_line.integer("--k-len", shape.k_len, "length of the key sequence", "keys", 0, int64_t{1} << 40);
  command_line.integer("--head-dim", shape.head_dim, "head dimension", "elements", 1, step05::LARGEST_HEAD_DIM);
  command_line.integer("--batch", shape.batch, "batch size", "sequences", 0, 1024);
  command_line.integer("--heads", shape.heads, "heads", "heads", 0, 1024);
  command_line.flag("--causal", causal, "query i sees only the keys up to i + (k_len - q_len)");
  command_line.seed("--seed", seed, "seed of the inputs");
  command_line.flag("--wall", show_only_wall, "walk k_len upward until K and V no longer fit on chip");
  return run_program(command_line, argc, argv, [&] {
    if (!show_only_wall) {  // refused before the inputs take their time and memory
      step05::require_on_chip("attention", shape.k_len, shape.head_dim);
      require_range("attention", "the number of elements of Q", shape.queries(), 0, int64_t{1} << 28);
      require_range("attention", "the number of elements of K", shape.keys(), 0, int64_t{1} << 28);
    }
    Report report(std::cout, "05 attention: O = softmax(scale Q K^T) V", device_description());
    if (show_only_wall) return wall(report);
    report.paragraph(
        "A block loads all of K and V into shared memory. Each of its 8 warps takes a query at a time: its whole row "
        "of scores S = Q K^T / sqrt(head_dim), their maximum m, exp(S - m) and its sum l, then P = exp(S - m) / l "
        "and O = P V.");
    show_article_shapes(report, seed);
    show_causal(report);
    show_traffic(report, shape, causal, seed);
    predict(report);
    report.lesson(
        "offsets, masks and a stable softmax are all that attention needs, as long as K and V fit on chip. See where "
        "they stop fitting: --wall");
    return report.exit_status();
  });
}
