// Rung 02's random words: Philox against its published answers and against another hand's, on the device and on the
// host.
#include <doctest/doctest.h>

#include <array>
#include <vector>

#include "common/harness/buffer.hpp"
#include "steps/02_relu_dropout/philox.cuh"
#include "tests/02_philox_by_hand.hpp"
#include "tests/expect.hpp"

namespace {

using namespace ladder;

// Philox as the device computes it, and as the host does: the functions are compiled for both.
__global__ void philox_kernel(const uint4* counters, const uint2* keys, uint4* words, float* uniforms, int n) {
  const unsigned i = blockIdx.x * 64 + threadIdx.x;
  if (static_cast<int>(i) >= n) return;
  const uint4 result = step02::philox4x32_10(counters[i], keys[i]);
  words[i] = result;
  uniforms[i] = step02::uniform_from(result.x);
}

struct Case {
  by_hand::Words counter;
  std::array<uint32_t, 2> key;
  by_hand::Words expected;
};

void check_philox(const std::vector<Case>& cases) {
  const auto n = static_cast<int64_t>(cases.size());
  std::vector<uint4> counters;
  std::vector<uint2> keys;
  for (const Case& c : cases) {
    counters.push_back(make_uint4(c.counter[0], c.counter[1], c.counter[2], c.counter[3]));
    keys.push_back(make_uint2(c.key[0], c.key[1]));
  }
  const Buffer<uint4> counter_buffer("counters", counters);
  const Buffer<uint2> key_buffer("keys", keys);
  const Buffer<uint4> word_buffer("words", n);
  const Buffer<float> uniform_buffer("uniforms", n);
  launch(philox_kernel, grid_of("philox", cdiv(n, 64)), dim3(64), 0, nullptr, counter_buffer.data(), key_buffer.data(),
         word_buffer.data(), uniform_buffer.data(), static_cast<int>(n));
  const std::vector<uint4> on_device = word_buffer.download();
  const std::vector<float> uniforms = uniform_buffer.download();
  const auto words = [](uint4 w) { return by_hand::Words{w.x, w.y, w.z, w.w}; };
  bool equal = true;
  std::vector<float> expected;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    equal = equal && words(on_device[i]) == cases[i].expected;
    equal = equal && words(step02::philox4x32_10(counters[i], keys[i])) == cases[i].expected;
    expected.push_back(by_hand::uniform(cases[i].expected[0]));
    equal = equal && step02::uniform_from(cases[i].expected[0]) == expected[i];
  }
  CHECK(equal);
  check_same(uniforms, expected);
}

}  // namespace

TEST_CASE("BC-023: Philox 4x32-10 gives Random123's published answers, on the device, on the host, and by hand") {
  const uint32_t all = 0xffffffff;
  const std::vector<Case> published{
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{all, all, all, all}, {all, all}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
  for (const Case& c : published) CHECK(by_hand::philox(c.counter, c.key) == c.expected);
  check_philox(published);
}

TEST_CASE("Philox and the uniform numbers equal those by hand, on the device and on the host") {
  std::vector<Case> cases;
  for (uint32_t i = 0; i < 2000; ++i) {
    const by_hand::Words counter = by_hand::philox(i, 1), key = by_hand::philox(i, 2);  // any numbers will do
    cases.push_back({counter, {key[0], key[1]}, by_hand::philox(counter, {key[0], key[1]})});
  }
  for (uint32_t bit = 0; bit < 192;
       ++bit) {  // each bit of the counter and of the key alone: no word stands for another
    Case c{};
    (bit < 128 ? c.counter[bit / 32] : c.key[bit / 32 - 4]) = 1u << bit % 32;
    c.expected = by_hand::philox(c.counter, c.key);
    cases.push_back(c);
  }
  check_philox(cases);
}

TEST_CASE("a uniform number is in [0, 1), and is what the definition of tl.rand makes of a word") {
  // Worked by hand from the definition; no output of Triton stands here.
  struct Pin {
    uint32_t word;
    float expected;
  };
  const Pin pins[]{{0, 0.0f},
                   {1, 0x1.fffffep-32f},
                   {0x40000000, 0x1.fffffep-2f},
                   {0x7fffffff, 0x1.fffffep-1f},  // 1 - 2^-24, the largest
                   {0x80000000, 0x1.fffffep-1f},
                   {0xffffffff, 0.0f}};
  for (const Pin& pin : pins) {
    CAPTURE(pin.word);
    CHECK(within(step02::uniform_from(pin.word), pin.expected, 0));
    CHECK(within(by_hand::uniform(pin.word), pin.expected, 0));
  }
  CHECK(step02::random_words(0, 0).x == 0x6627e8d5);  // seed 0, offset 0 is the first published answer
  for (uint64_t word = 0; word < uint64_t{1} << 32; word += 65'521) {
    const float u = step02::uniform_from(static_cast<uint32_t>(word));
    if (!(u >= 0 && u < 1 && u == by_hand::uniform(static_cast<uint32_t>(word)))) FAIL(word);
  }
}
