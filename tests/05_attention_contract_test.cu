// Rung 05's launcher: strides, refusals, the wall, and the bytes that move.
#include <algorithm>
#include <map>

#include "tests/05_attention_problem.hpp"

using namespace ladder;

TEST_CASE("BC-071: slices of one packed QKV buffer equal contiguous copies, bit for bit") {
  constexpr int64_t N = 62, HEADS = 2, D = 16, ROW = 3 * HEADS * D;  // (N, 3, HEADS, D)
  const std::vector<float> packed = normal(N * ROW, 1, 0.5);
  const Buffer<float> buffer("qkv", packed);
  const auto slice = [&](int64_t which) {
    const int64_t start = which * HEADS * D;
    return Heads<const float>{buffer.data() + start, {1, HEADS, N, D}, {N * ROW, D, ROW, 1}, N * ROW - start};
  };
  const auto copy = [&](int64_t which) {
    std::vector<float> values;
    for (int64_t head = 0; head < HEADS; ++head)
      for (int64_t i = 0; i < N; ++i) {
        const auto row = packed.begin() + i * ROW + which * HEADS * D + head * D;
        values.insert(values.end(), row, row + D);
      }
    return values;
  };
  for (const bool causal : {false, true}) {
    const Problem contiguous{1, HEADS, N, N, D, copy(0), copy(1), copy(2), causal};
    // The output as (N, HEADS, D), as the next layer wants it.
    Buffer<float> out("out", N * HEADS * D);
    step05::attention(slice(0), slice(1), slice(2),
                      {out.data(), {1, HEADS, N, D}, {N * HEADS * D, D, HEADS * D, 1}, out.size()}, causal);
    const std::vector<float> strided = out.download(), expected = contiguous.run();
    check_against_reference(contiguous);
    for (int64_t head = 0; head < HEADS; ++head)
      for (int64_t i = 0; i < N; ++i)
        CHECK(std::equal(strided.begin() + (i * HEADS + head) * D, strided.begin() + (i * HEADS + head + 1) * D,
                         expected.begin() + (head * N + i) * D));
  }
}

TEST_CASE("BC-072, BC-074: one head of K and V for all heads of Q, as head stride 0, equals copies of it") {
  for (const auto& [heads, k_len] : {std::pair<int64_t, int64_t>{4, 33}, {8, 3}}) {
    Problem copied{.batch = 2, .heads = heads, .q_len = 5, .k_len = k_len, .head_dim = 16};
    copied.random(2);
    const auto per_head = k_len * 16;
    std::vector<float> k, v;  // (2, 1, k_len, 16)
    for (int64_t batch = 0; batch < 2; ++batch) {
      const int64_t first = batch * heads * per_head;
      for (int64_t head = 1; head < heads; ++head) {
        std::copy_n(copied.k.begin() + first, per_head, copied.k.begin() + first + head * per_head);
        std::copy_n(copied.v.begin() + first, per_head, copied.v.begin() + first + head * per_head);
      }
      k.insert(k.end(), copied.k.begin() + first, copied.k.begin() + first + per_head);
      v.insert(v.end(), copied.v.begin() + first, copied.v.begin() + first + per_head);
    }
    const Buffer<float> q_buffer("q", copied.q), k_buffer("k", k), v_buffer("v", v);
    Buffer<float> out("out", copied.queries());
    const auto broadcast = [&, heads = heads, k_len = k_len](const Buffer<float>& buffer) {
      return Heads<const float>{buffer.data(), {2, heads, k_len, 16}, {per_head, 0, 16, 1}, buffer.size()};
    };
    step05::attention(q_buffer.view(2, heads, 5, 16), broadcast(k_buffer), broadcast(v_buffer),
                      out.view(2, heads, 5, 16));
    check_same(out.download(), copied.run());
    check_against_reference(copied);
  }
  // BC-074 as reported: 1.0 in all 8 heads.
  const Buffer<float> zeros("zeros", std::vector<float>(8 * 3 * 4, 0.0f)), v("v", {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2});
  Buffer<float> out("out", 8 * 3 * 4);
  const Heads<const float> values{v.data(), {1, 8, 3, 4}, {0, 0, 4, 1}, 12};
  step05::attention(zeros.view(1, 8, 3, 4), zeros.view(1, 8, 3, 4), values, out.view(1, 8, 3, 4));
  const Comparison difference = compare(out.download(), std::vector<double>(96, 1.0), {8, 3, 4}, {0, 1e-6});
  CHECK_MESSAGE(difference.matches(), difference.describe());
}

TEST_CASE("BC-066: where head_dim is 1, the last stride means nothing") {
  const Buffer<float> q("q", std::vector<float>{1, 2, 3, 4}), one("one", std::vector<float>{1});
  Buffer<float> out("out", 4);
  step05::attention({q.data(), {1, 1, 2, 1}, {4, 4, 2, 2}, 4}, one.view(1, 1, 1, 1), one.view(1, 1, 1, 1),
                    {out.data(), {1, 1, 2, 1}, {2, 2, 1, 2}, 4});
  const std::vector<float> result = out.download();
  check_same({result[0], result[1]}, {1, 1});
}

TEST_CASE("nothing is written but the output: not behind the last query of a tile, nor between rows and heads") {
  constexpr int64_t HEADS = 2, Q_LEN = 37, D = 20, ROW = 23, HEAD = 50 * ROW;  // room for 50 queries in each head
  constexpr float GUARD = -777;
  Problem problem{.heads = HEADS, .q_len = Q_LEN, .k_len = 9, .head_dim = D};
  problem.random(3);
  const Buffer<float> q("q", problem.q), k("k", problem.k), v("v", problem.v);
  Buffer<float> out("out", HEADS * HEAD);
  out.fill(GUARD);
  step05::attention(q.view(1, HEADS, Q_LEN, D), k.view(1, HEADS, 9, D), v.view(1, HEADS, 9, D),
                    {out.data(), {1, HEADS, Q_LEN, D}, {HEADS * HEAD, HEAD, ROW, 1}, out.size()});
  std::vector<double> expected(HEADS * HEAD, GUARD);
  const std::vector<double> reference = problem.reference();
  for (int64_t row = 0; row < HEADS * Q_LEN; ++row)
    std::copy_n(reference.begin() + row * D, D, expected.begin() + row / Q_LEN * HEAD + row % Q_LEN * ROW);
  const Comparison difference = compare(out.download(), expected, {HEADS, 50, ROW}, TOLERANCE);
  CHECK_MESSAGE(difference.matches(), difference.describe());
  CHECK(out.guards_intact());
}

TEST_CASE("each broken contract is refused in one line, and nothing is written") {
  const Buffer<float> x("x", normal(1000, 4));
  Buffer<float> out("out", 1000);
  const Heads<const float> q = x.view(2, 3, 4, 8), k = x.view(2, 3, 5, 8);
  const Heads<float> o = out.view(2, 3, 4, 8);
  const auto message = [](Heads<const float> a, Heads<const float> b, Heads<const float> c, Heads<float> d) {
    return message_of<InvalidArgument>([&] { step05::attention(a, b, c, d); });
  };
  CHECK(message(q, x.view(1, 3, 5, 8), k, o) == "attention: k.sizes[0] is 1, must be 2, as of q");
  CHECK(message(q, x.view(2, 1, 5, 8), k, o) == "attention: k.sizes[1] is 1, must be 3, as of q");
  CHECK(message(q, x.view(2, 3, 5, 7), k, o) == "attention: k.sizes[3] is 7, must be 8, as of q");
  CHECK(message(q, k, x.view(2, 3, 6, 8), o) == "attention: v.sizes[2] is 6, must be 5, as of k");
  CHECK(message(q, k, k, out.view(2, 3, 5, 8)) == "attention: out.sizes[2] is 5, must be 4, as of q");
  CHECK(message({x.data(), {2, 3, 4, 8}, {192, 64, 16, 2}, 1000}, k, k, o) ==
        "attention: q.strides[3] is 2, must be 1");
  CHECK(message(q, {x.data(), {2, 3, 5, 8}, {120, 40, 1, 5}, 1000}, k, o) == "attention: k.strides[3] is 5, must be 1");
  CHECK(message(q, k, {x.data(), {2, 3, 5, 8}, {120, 40, 1, 5}, 1000}, o) == "attention: v.strides[3] is 5, must be 1");
  CHECK(message(q, k, k, {out.data(), {2, 3, 4, 8}, {192, 64, 16, 2}, 1000}) ==
        "attention: out.strides[3] is 2, must be 1");
  CHECK(message(q, k, k, {out.data(), {2, 3, 4, 8}, {96, 0, 8, 1}, 1000}) ==
        "attention: out.strides[1] is 0, must be at least 1, or its elements would share cells");
  CHECK(message({nullptr, {2, 3, 4, 8}, {96, 32, 8, 1}, 192}, k, k, o) ==
        "attention: q.data is null, must be a pointer to 192 elements");
  CHECK(message(q, {x.data(), {2, 3, 5, 8}, {120, 40, 8, 1}, 239}, k, o) ==
        "attention: k.extent is 239, must be at least 240, which its sizes and strides reach");
  CHECK(message(q, k, {x.data(), {2, 3, -5, 8}, {120, 40, 8, 1}, 240}, o) ==
        "attention: v.sizes[2] is -5, must be at least 0");
  CHECK(untouched(out));
}

TEST_CASE("an output that shares memory with an input is refused, the same view included") {
  const std::vector<float> values = normal(3000, 5);
  Buffer<float> x("x", values);
  const auto at = [&](int64_t start) {
    return Heads<float>{x.data() + start, {1, 1, 4, 8}, {32, 32, 8, 1}, 3000 - start};
  };
  CHECK_REFUSED(step05::attention(at(0), at(100), at(200), at(0)),
                "attention: out.data is inside q, must be apart from it");
  CHECK_REFUSED(step05::attention(at(0), at(100), at(200), at(69)),
                "attention: out.data is inside k, must be apart from it");
  CHECK_REFUSED(step05::attention(at(0), at(100), at(200), at(231)),
                "attention: out.data is inside v, must be apart from it");
  check_same(x.download(), values);
  CHECK_NOTHROW(step05::attention(at(0), at(100), at(200), at(32)));
}

TEST_CASE("BC-077: the bytes are computed in 64 bits and do not wrap") {
  // 4 (k_len (head_dim, made odd + head_dim + 8) + 8 head_dim)
  CHECK(step05::shared_bytes(15, 32) == 5'404);
  CHECK(step05::shared_bytes(4096, 64) == 2'246'656);
  CHECK(step05::shared_bytes(16'777'216, 64) == 9'193'916'416);
  constexpr int64_t LARGEST = std::numeric_limits<int64_t>::max();
  CHECK(step05::shared_bytes(LARGEST, 256) == LARGEST);
  CHECK(step05::shared_bytes(int64_t{1} << 60, 64) == LARGEST);
  CHECK(step05::most_keys(64, 232'448) == 420);
  // The launcher itself, with a row stride of 0, so that a few bytes stand for 2^33 of K and of V; and no wrap beyond.
  const Buffer<float> x("x", normal(64, 6));
  Buffer<float> out("out", 64);
  for (int64_t k_len : {int64_t{16'777'216}, int64_t{1} << 31, int64_t{1} << 32, int64_t{1} << 60, LARGEST}) {
    CAPTURE(k_len);
    const Heads<const float> keys{x.data(), {1, 1, k_len, 64}, {0, 0, 0, 1}, 64};
    const std::string message =
        message_of<InvalidArgument>([&] { step05::attention(x.view(1, 1, 1, 64), keys, keys, out.view(1, 1, 1, 64)); });
    CHECK(message.find(" is " + std::to_string(step05::shared_bytes(k_len, 64)) + " bytes, must be at most " +
                       std::to_string(shared_memory_limit())) != std::string::npos);
  }
  CHECK(untouched(out));
}

TEST_CASE("BC-076: K and V that do not fit are refused with both numbers before the launch, and the next call works") {
  const Buffer<float> q("q", normal(64, 7)), k("k", normal(4096 * 64, 8));
  Buffer<float> out("out", 64);
  std::string message;
  const Launches launches = count_launches([&] {
    message = message_of<InvalidArgument>([&] {
      step05::attention(q.view(1, 1, 1, 64), k.view(1, 1, 4096, 64), k.view(1, 1, 4096, 64), out.view(1, 1, 1, 64));
    });
  });
  const std::string both_numbers =
      "attention: shared memory for K and V of (4096, 64) is 2246656 bytes, must be at most " +
      std::to_string(shared_memory_limit()) + ": use at most ";
  CHECK(message.substr(0, both_numbers.size()) == both_numbers);
  CHECK(message.find('\n') == std::string::npos);
  CHECK(launches.kernels == exactly(0));
  CHECK(untouched(out));
  check_against_reference(Problem{.q_len = 3, .k_len = 50, .head_dim = 64}.random(9));
}

TEST_CASE("the wall: the last k_len that fits is right, and one key more is refused") {
  const auto at_the_wall = [](int64_t head_dim) {
    const int64_t last = step05::most_keys(head_dim, static_cast<int64_t>(shared_memory_limit()));
    Problem problem{.q_len = 2, .k_len = last, .head_dim = head_dim};
    check_against_reference(problem.random(10));
    problem.k_len = last + 1;
    CHECK_THROWS_AS(problem.random(10).run(), InvalidArgument);
    problem.k_len = last;
    check_against_reference(problem.random(11));
  };
  for (int64_t head_dim : {1, 2, 32, 33, 64, 128, 256}) at_the_wall(head_dim);
}

TEST_CASE("the wall of each device model, against numbers worked out by hand" *
          doctest::skip(!try_set_device_model("sm_90"))) {
  struct Wall {
    const char* model;
    int64_t head_dim, last, needed, allowed;  // bytes needed by last + 1 keys
  };
  for (const Wall& wall : {Wall{"sm_75", 64, 115, 65'616, 65'536}, Wall{"sm_80", 64, 300, 166'996, 166'912},
                           Wall{"sm_86", 64, 181, 101'784, 101'376}, Wall{"sm_89", 32, 343, 101'472, 101'376},
                           Wall{"sm_90", 32, 792, 232'580, 232'448}, Wall{"sm_90", 64, 420, 232'756, 232'448},
                           Wall{"sm_90", 128, 215, 233'056, 232'448}}) {
    CAPTURE(wall.model);
    try_set_device_model(wall.model);
    Problem problem{.k_len = wall.last, .head_dim = wall.head_dim};
    check_against_reference(problem.random(12));
    problem.k_len = wall.last + 1;
    CHECK_REFUSED(problem.random(12).run(),
                  "attention: shared memory for K and V of (" + std::to_string(wall.last + 1) + ", " +
                      std::to_string(wall.head_dim) + ") is " + std::to_string(wall.needed) +
                      " bytes, must be at most " + std::to_string(wall.allowed) + ": use at most " +
                      std::to_string(wall.last) +
                      " keys, or a tiled algorithm (rung 07), which keeps only a tile of K and V on chip");
  }
  try_set_device_model("sm_90");
}

TEST_CASE("one launch reads Q once, K and V once per tile of 32 queries, and writes the output once") {
  const std::map<int64_t, int64_t> tiles_of{{1, 1}, {32, 1}, {33, 2}, {100, 4}};
  for (const int64_t q_len : {1, 32, 33, 100})
    for (const bool causal : {false, true}) {
      CAPTURE(q_len);
      const int64_t q_size = 2 * 3 * q_len * 20, k_size = 2 * 3 * 45 * 20;
      const Buffer<float> q("q", normal(q_size, 1)), k("k", normal(k_size, 2)), v("v", normal(k_size, 3, 1));
      Buffer<float> out("out", q_size);
      const Launches launches = count_launches([&] {
        step05::attention(q.view(2, 3, q_len, 20), k.view(2, 3, 45, 20), v.view(2, 3, 45, 20),
                          out.view(2, 3, q_len, 20), causal);
      });
      CHECK(launches.kernels == exactly(1));
      if (!device_checks()) continue;  // a GPU counts no bytes
      for (const Traffic& traffic : launches.traffic) {
        CAPTURE(traffic.buffer);
        CHECK(traffic.bytes_read == exactly(traffic.buffer == "out" ? 0
                                            : traffic.buffer == "q" ? 4 * q_size
                                                                    : 4 * tiles_of.at(q_len) * k_size));
        CHECK(traffic.bytes_written == exactly(traffic.buffer == "out" ? 4 * q_size : 0));
      }
    }
}
