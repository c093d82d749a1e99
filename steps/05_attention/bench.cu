// How fast rung 05 is, with as many keys as fit on chip. Its data is small; the limit is arithmetic.
#include "common/harness/bench.hpp"
#include "common/harness/work.hpp"
#include "steps/05_attention/attention.cuh"
#include "steps/05_attention/register_tiles.cuh"

using namespace ladder;

int main(int argc, char** argv) {
  const int64_t head_dim = 64;
  const int64_t heads = on_gpu() ? 16 : 1, q_len = on_gpu() ? 4096 : 64;
  // Inside, since only then is it known that there is a device to ask how much it has on chip.
  const auto on_chip = [] { return static_cast<int64_t>(shared_memory_limit()); };
  bench::add("attention", [=] {
    return attention_work(heads, q_len, step05::most_keys(head_dim, on_chip()), head_dim,
                          [](auto q, auto k, auto v, auto out) { step05::attention(q, k, v, out); });
  });
  bench::add("attention_register_tiles", [=] {
    return attention_work(heads, q_len, step05::register_tiles_most_keys(head_dim, on_chip()), head_dim,
                          [](auto q, auto k, auto v, auto out) { step05::attention_register_tiles(q, k, v, out); });
  });
  return bench::run(argc, argv);
}
