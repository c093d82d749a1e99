// Offsets beyond 32 bits, in every kernel and launcher of rungs 01 to 05, without the gigabytes: only the last elements
// of a tensor are there, and its first element lies more than 2^32 elements in front of them, where nothing is. Blocks
// run from the last to the first. A right kernel computes the last elements and is stopped at the first that is not
// there; an offset that lost its upper bits is stopped before, or not at all.
//
// The other way round, only the first elements are there: a count that lost its upper bits says that they are all.
#include <functional>
#include <string>

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
#include "steps/04_softmax_fixed/vectorized.cuh"
#include "steps/05_attention/attention.cuh"
#include "steps/05_attention/register_tiles.cuh"
#include "tests/02_philox_by_hand.hpp"
#include "tests/expect.hpp"

using namespace ladder;

namespace {

constexpr int64_t FAR = (int64_t{1} << 32) + 8;

struct Reversed {
  Reversed() { try_set_order("reversed"); }
  ~Reversed() { try_set_order("forward"); }
  Reversed(const Reversed&) = delete;
  Reversed& operator=(const Reversed&) = delete;
};

// The element so many elements in front of this one; nothing is there.
template <class T>
T* before(T* element, int64_t elements) {
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(element) -
                              static_cast<std::uintptr_t>(elements) * sizeof(T));
}

std::string fault_of(const std::function<void()>& body) { return message_of<KernelFault>(body); }

bool says(const std::string& message, const std::string& words) { return message.find(words) != std::string::npos; }

struct Elementwise {
  std::string name;
  std::function<void(Vector<float>)> launch;  // in place: x, and y, are out
  std::function<float(float x, int64_t i)> expected;
};
float keep(float x, uint32_t word) {
  const float u = by_hand::uniform(word);
  return u >= 0.5f && x > 0 ? 2 * x : 0.0f;
}
float one_per_call(float x, int64_t i) { return keep(x, by_hand::word_per_call(7, static_cast<uint64_t>(i))); }
float four_per_call(float x, int64_t i) { return keep(x, by_hand::word_of_four(7, static_cast<uint64_t>(i))); }
const std::vector<Elementwise> ELEMENTWISE{
    {"vector_add", [](auto v) { step01::vector_add(v, v, v); }, [](float x, int64_t) { return x + x; }},
    {"vector_add_vectorized", [](auto v) { step01::vector_add_vectorized(v, v, v); },
     [](float x, int64_t) { return x + x; }},
    {"relu_dropout", [](auto v) { step02::relu_dropout(v, v, 0.5f, 7); }, one_per_call},
    {"relu_dropout_four_per_call", [](auto v) { step02::relu_dropout_four_per_call(v, v, 0.5f, 7); }, four_per_call},
    {"relu_dropout_in_flight", [](auto v) { step02::relu_dropout_in_flight(v, v, 0.5f, 7); }, four_per_call}};

}  // namespace

TEST_CASE("BC-004: elements from 2^34 on are found by every elementwise kernel" * doctest::skip(!device_checks())) {
  constexpr int64_t START = int64_t{1} << 34, THERE = 300;  // and so 2^32 calls of Philox
  const Reversed reversed;
  for (const Elementwise& kernel : ELEMENTWISE)
    for (int64_t shift : {0, 1}) {  // on 16-byte alignment, and off it
      CAPTURE(kernel.name);
      CAPTURE(shift);
      const std::vector<float> x = normal(THERE + shift, 1);
      Buffer<float> buffer("x", x);
      const int64_t n = START + THERE;
      const std::string message = fault_of([&] { kernel.launch({before(buffer.data() + shift, START), {n}, {1}, n}); });
      std::vector<float> expected = x;
      for (int64_t i = 0; i < THERE; ++i) {
        auto& cell = expected[static_cast<std::size_t>(i + shift)];
        cell = kernel.expected(cell, START + i);
      }
      // Blocks in front of the first element run next, and may reach the one element before it, which is there.
      std::vector<float> result = buffer.download();
      if (shift == 1) result[0] = expected[0];
      check_same(result, expected);
      INFO(message);
      CHECK(says(message, " buffer 'x': index -"));  // a dropped element is written, and clang does not read it
    }
}

TEST_CASE("the two kernels of relu_dropout_unfused find elements from 2^32 on" * doctest::skip(!device_checks())) {
  constexpr int64_t START = int64_t{1} << 32, THERE = 300, N = START + THERE;
  const Reversed reversed;
  const std::vector<float> x = normal(THERE, 1);
  const Buffer<float> both("x", x);
  float* const data = before(both.data(), START);
  const dim3 grid = grid_of("test", cdiv(N, 256));
  const auto stopped = [](const std::string& message) { return says(message, "of buffer 'x': index -"); };
  CHECK(stopped(fault_of([&] { launch(step02::relu_kernel<256>, grid, dim3(256), 0, nullptr, data, data, N); })));
  std::vector<float> expected = x;
  for (float& value : expected) value = value > 0 ? value : 0.0f;
  check_same(both.download(), expected);
  CHECK(stopped(fault_of([&] {
    launch(step02::dropout_kernel<256>, grid, dim3(256), 0, nullptr, data, data, N, 0.5f, uint64_t{7}, uint64_t{0});
  })));
  for (int64_t i = 0; i < THERE; ++i) {
    auto& cell = expected[static_cast<std::size_t>(i)];
    cell = one_per_call(cell, START + i);
  }
  check_same(both.download(), expected);
}

TEST_CASE("a count of 2^32 and a few elements is not taken for the few" * doctest::skip(!device_checks())) {
  for (const Elementwise& kernel : ELEMENTWISE)
    for (int64_t shift : {0, 1}) {
      CAPTURE(kernel.name);
      CAPTURE(shift);
      constexpr int64_t THERE = 4096;
      const std::vector<float> x = normal(THERE + shift, 1);
      const Buffer<float> buffer("x", x);
      const int64_t n = (int64_t{1} << 32) + 8;
      const std::string message = fault_of([&] { kernel.launch({buffer.data() + shift, {n}, {1}, n}); });
      INFO(message);
      CHECK(says(message, " buffer 'x': index " + std::to_string(THERE + shift) + ", size"));
      std::vector<float> expected, result = buffer.download();
      for (int64_t i = 0; i < 2048; ++i) expected.push_back(kernel.expected(x[static_cast<std::size_t>(i + shift)], i));
      check_same({result.begin() + shift, result.begin() + shift + 2048}, expected);
    }
}

namespace {

struct Softmax {
  std::string name;
  std::function<void(Matrix<float>, Matrix<float>)> launch;
};
const std::vector<Softmax> SOFTMAXES{
    {"step03::softmax", [](auto in, auto out) { step03::softmax(in, out); }},
    {"step04::softmax", [](auto in, auto out) { step04::softmax(in, out); }},
    {"softmax_vectorized", [](auto in, auto out) { step04::softmax_vectorized(in, out); }},
    {"softmax_naive", [](auto in, auto out) { step04::softmax_naive(in, out); }}};

// Five rows of the given stride, of which the last alone is there.
template <class T>
Matrix<T> last_row_of_five(const Buffer<T>& row, int64_t columns, int64_t stride) {
  return {before(row.data(), 4 * stride), {5, columns}, {stride, 1}, 4 * stride + columns};
}

}  // namespace

TEST_CASE(
    "a row 2^32 elements on is found by every softmax, in input and output, by whole accesses and by single ones" *
    doctest::skip(!device_checks())) {
  const Reversed reversed;
  for (const Softmax& softmax : SOFTMAXES)
    for (int64_t columns : {5, 8}) {
      CAPTURE(softmax.name);
      CAPTURE(columns);
      const std::vector<float> x = normal(columns, 1);
      const std::vector<double> expected = reference_softmax(x, 1, columns);
      const auto check = [&](const std::vector<float>& row) {
        const Comparison difference = compare(row, expected, {columns}, {0, 2e-6});
        CHECK_MESSAGE(difference.matches(), difference.describe());
      };
      // In place; the last row is right, and the one before is not there.
      const Buffer<float> both("both", x);
      const auto view = last_row_of_five(both, columns, FAR);
      CHECK(says(fault_of([&] { softmax.launch(view, view); }), "out-of-bounds read of"));
      check(both.download());
    }
}

TEST_CASE("bf16: a row 2^32 elements on is found" * doctest::skip(!device_checks())) {
  const Reversed reversed;
  for (int64_t columns : {5, 8}) {
    CAPTURE(columns);
    const Buffer<__nv_bfloat16> both(
        "both", std::vector<__nv_bfloat16>(static_cast<std::size_t>(columns), __float2bfloat16(0.0f)));
    const auto view = last_row_of_five(both, columns, FAR);
    CHECK(says(fault_of([&] { step04::softmax_vectorized(view, view); }), "out-of-bounds read of"));
    for (__nv_bfloat16 value : both.download())
      CHECK(within(__bfloat162float(value), 1.0 / static_cast<double>(columns), 1e-3));
  }
}

namespace {

using Attention = decltype(&step05::attention);

// One of Q, K, V and the output, of shape (1 or 3, 1 or 3, rows, 2), whose first and middle indices along `axis` lie
// where nothing is.
Heads<float> far_along(const Buffer<float>& last, std::array<int64_t, 4> sizes, std::size_t axis) {
  std::array<int64_t, 4> strides{0, 0, 0, 1};
  int64_t stride = sizes[3];
  for (std::size_t i = 3; i-- > 0;) {
    strides[i] = stride;
    if (i != axis) stride *= sizes[i];
  }
  strides[axis] = FAR;
  const int64_t back = (sizes[axis] - 1) * FAR;
  return {before(last.data(), back), sizes, strides, back + last.size()};
}

}  // namespace

TEST_CASE("attention: a batch, a head or a row 2^32 elements on is found, in Q, K, V and the output" *
          doctest::skip(!device_checks())) {
  const Reversed reversed;
  for (const Attention attention : {step05::attention, step05::attention_register_tiles}) {
    const int64_t tile =
        attention == step05::attention ? step05::QUERIES_PER_BLOCK : step05::QUERIES_PER_BLOCK_OF_TILES;
    CAPTURE(tile);
    for (std::size_t axis : {0, 1, 2})
      for (const std::string which : {"q", "k", "v", "out"}) {
        CAPTURE(axis);
        CAPTURE(which);
        const bool keys_far = axis == 2 && (which == "k" || which == "v");
        const int64_t q_len = axis == 2 && !keys_far ? tile + 1 : 1, k_len = keys_far ? 2 : 1;
        std::array<int64_t, 4> q_sizes{axis == 0 ? 3 : 1, axis == 1 ? 3 : 1, q_len, 2}, k_sizes = q_sizes;
        k_sizes[2] = k_len;
        const int64_t rows = q_sizes[0] * q_sizes[1] * q_len;
        // The output first: what lies far reaches below, and the output's memory must not lie there.
        const Buffer<float> a("a", normal(1000, 1)), b("b", normal(1000, 2));
        const bool out_far = which == "out";
        const bool a_is_low = a.data() < b.data();
        const Buffer<float>&low = a_is_low ? a : b, &high = a_is_low ? b : a;
        const Buffer<float>&out_memory = out_far ? low : high, &in_memory = out_far ? high : low;
        const auto near = [&](const Buffer<float>& buffer, const std::array<int64_t, 4>& sizes) {
          return buffer.view(sizes[0], sizes[1], sizes[2], sizes[3]);
        };
        const auto view = [&](const char* name, const Buffer<float>& buffer, const std::array<int64_t, 4>& sizes) {
          return which == name ? far_along(buffer, sizes, axis) : near(buffer, sizes);
        };
        const std::vector<float> values = in_memory.download();
        const std::string message = fault_of([&] {
          attention(view("q", in_memory, q_sizes), view("k", in_memory, k_sizes), view("v", in_memory, k_sizes),
                    view("out", out_memory, q_sizes), false, std::nullopt, nullptr);
        });
        if (keys_far) {  // its warp loads key 1 first, which is there; the warp of key 0 is stopped, at its last column
          CHECK(says(message, "out-of-bounds read of"));
          CHECK(says(message, "thread 1,"));
          continue;
        }
        CHECK(says(message, out_far ? "out-of-bounds write to" : "out-of-bounds read of"));
        // The last block is right: one key, so that each output is V's last row.
        const std::vector<float> out = out_memory.download();
        const int64_t last_out = out_far ? 0 : (rows - 1) * 2;
        const int64_t last_v = which == "v" || axis == 2 ? 0 : (q_sizes[0] * q_sizes[1] - 1) * 2;
        const auto at = [](const std::vector<float>& cells, int64_t i) { return cells[static_cast<std::size_t>(i)]; };
        CHECK(at(out, last_out) == exactly(at(values, last_v)));
        CHECK(at(out, last_out + 1) == exactly(at(values, last_v + 1)));
      }
  }
}
