// How fast rung 05 is, with as many keys as fit on chip. Its data is small; the limit is arithmetic.
#include <cmath>

#include "common/harness/bench.hpp"
#include "common/harness/reference.hpp"
#include "steps/05_attention/attention.cuh"
#include "steps/05_attention/register_tiles.cuh"

namespace {

using namespace ladder;

template <class Attention>
bench::Work work(int64_t heads, int64_t q_len, int64_t k_len, int64_t head_dim, Attention attention) {
  struct Problem {
    Buffer<float> q, k, v, out;
  };
  const auto p = std::make_shared<Problem>(Problem{
      bench::normal_buffer("q", heads * q_len * head_dim, 1), bench::normal_buffer("k", heads * k_len * head_dim, 2),
      bench::normal_buffer("v", heads * k_len * head_dim, 3, 1.0),  // its mean is 1: outputs are not near 0
      Buffer<float>("out", heads * q_len * head_dim)});
  const int64_t window = std::min<int64_t>(q_len, 8) * head_dim;  // eight queries of one head
  const auto expected = [=](int64_t first, int64_t count) {
    const int64_t head_start = first / (q_len * head_dim) * (k_len * head_dim);
    return reference_attention(bench::part(p->q, first, count), bench::part(p->k, head_start, k_len * head_dim),
                               bench::part(p->v, head_start, k_len * head_dim), 1, 1, count / head_dim, k_len, head_dim,
                               1 / std::sqrt(static_cast<double>(head_dim)), false);
  };
  const auto size = [](int64_t n) { return static_cast<double>(n); };
  return {.run =
              [=] {
                attention(p->q.view(int64_t{1}, heads, q_len, head_dim), p->k.view(int64_t{1}, heads, k_len, head_dim),
                          p->v.view(int64_t{1}, heads, k_len, head_dim),
                          p->out.view(int64_t{1}, heads, q_len, head_dim));
              },
          .wrong = [=] { return bench::wrong(p->out, window, {.absolute = 2e-6, .relative = 1e-5}, expected); },
          .bytes = 8.0 * size(heads) * size(q_len + k_len) * size(head_dim),
          .operations = 4.0 * size(heads) * size(q_len) * size(k_len) * size(head_dim),
          .problem = "attention heads=" + std::to_string(heads) + " q_len=" + std::to_string(q_len) +
                     " k_len=" + std::to_string(k_len) + " head_dim=" + std::to_string(head_dim)};
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t head_dim = 64;
  const int64_t heads = bench::on_gpu() ? 16 : 1, q_len = bench::on_gpu() ? 4096 : 64;
  // Inside, since only then is it known that there is a device to ask how much it has on chip.
  const auto on_chip = [] { return static_cast<int64_t>(shared_memory_limit()); };
  bench::add("attention", [=] {
    return work(heads, q_len, step05::most_keys(head_dim, on_chip()), head_dim,
                [](auto q, auto k, auto v, auto out) { step05::attention(q, k, v, out); });
  });
  bench::add("attention_register_tiles", [=] {
    return work(heads, q_len, step05::register_tiles_most_keys(head_dim, on_chip()), head_dim,
                [](auto q, auto k, auto v, auto out) { step05::attention_register_tiles(q, k, v, out); });
  });
  return bench::run(argc, argv);
}
