// Tests of attention that people used, each with the report or the article that it comes from.
// All of them pass over some broken kernel; none is wrong, and none is enough.
#include "steps/05_attention/attention.cuh"
#include "tests/mutants/naive.hpp"

using namespace ladder;

namespace {

// One batch and one head: Q is (q_len, head_dim), K and V are (k_len, head_dim).
std::vector<float> attend(const std::vector<float>& q, const std::vector<float>& k,
                          const std::vector<float>& v, int64_t q_len, int64_t k_len,
                          int64_t head_dim, bool causal = false) {
  const Buffer<float> q_buffer("q", q), k_buffer("k", k), v_buffer("v", v);
  Buffer<float> out("out", q_len * head_dim);
  out.fill(0);  // as torch.zeros_like
  step05::attention(q_buffer.view(1, 1, q_len, head_dim), k_buffer.view(1, 1, k_len, head_dim),
                    v_buffer.view(1, 1, k_len, head_dim), out.view(1, 1, q_len, head_dim),
                    causal);
  return out.download();
}

bool matches(int64_t q_len, int64_t k_len, int64_t head_dim, bool causal = false) {
  const std::vector<float> q = normal(q_len * head_dim, 0), k = normal(k_len * head_dim, 1),
                           v = normal(k_len * head_dim, 2, 1);
  return allclose(attend(q, k, v, q_len, k_len, head_dim, causal),
                  reference_attention(q, k, v, 1, 1, q_len, k_len, head_dim,
                                      1 / std::sqrt(static_cast<double>(head_dim)), causal));
}

// n elements, all of the same value.
std::vector<float> all(int64_t n, float value) {
  return std::vector<float>(static_cast<std::size_t>(n), value);
}

}  // namespace

// The two shapes that the article tested its attention with: no mask, and head dimensions of 32
// and 64.
TEST_CASE("the article: Q (5, 32), K and V (15, 32) match") { CHECK(matches(5, 15, 32)); }
TEST_CASE("the article: Q (1, 64), K and V (10, 64) match") { CHECK(matches(1, 10, 64)); }

// The input of BC-053's reports: Q = K = 0 and V = 1, where each row of P sums to 1 and so each
// output is 1.
TEST_CASE("BC-053: 64 queries and keys, Q = K = 0, V = 1") {
  CHECK(attend(all(64 * 64, 0), all(64 * 64, 0), all(64 * 64, 1), 64, 64, 64) ==
        all(64 * 64, 1));
}
TEST_CASE("BC-053: Q = K = 0, V = 1, causal, 2 queries and 3 keys") {
  CHECK(attend(all(2 * 8, 0), all(3 * 8, 0), all(3 * 8, 1), 2, 3, 8, true) == all(2 * 8, 1));
}

// The fault of BC-054 needs fewer queries than keys. Self-attention in training has as many of
// both.
TEST_CASE("BC-054: causal, 32 queries and 32 keys match") { CHECK(matches(32, 32, 16, true)); }

// BC-071's own check: slices of one packed tensor must give what copies of them give, to the
// bit.
TEST_CASE("BC-071: slices of a packed QKV give what copies give") {
  constexpr int64_t N = 62, D = 16;
  const std::vector<float> packed = normal(N * 3 * D, 0);  // (N, 3, D)
  std::vector<float> copies[3];
  for (int64_t i = 0; i < N * 3 * D; ++i) copies[i / D % 3].push_back(packed[i]);
  const Buffer<float> qkv("qkv", packed), out("out", N * D);
  const auto slice = [&](int64_t which) {
    return Heads<const float>{qkv.data() + which * D,
                              {1, 1, N, D},
                              {N * 3 * D, N * 3 * D, 3 * D, 1},
                              (N * 3 - which) * D};
  };
  step05::attention(slice(0), slice(1), slice(2), out.view(1, 1, N, D));
  CHECK(out.download() == attend(copies[0], copies[1], copies[2], N, N, D));
}

// BC-073's input: one query, one key, 128 heads that hold their own number. The output is V.
TEST_CASE("BC-073: one query and one key in each of 128 heads give V") {
  std::vector<float> v;
  for (int head = 0; head < 128; ++head) v.insert(v.end(), 16, static_cast<float>(head));
  const Buffer<float> q("q", normal(128 * 16, 0)), k("k", normal(128 * 16, 1)),
      v_buffer("v", v), out("out", 128 * 16);
  step05::attention(q.view(1, 128, 1, 16), k.view(1, 128, 1, 16), v_buffer.view(1, 128, 1, 16),
                    out.view(1, 128, 1, 16));
  CHECK(out.download() == v);
}
