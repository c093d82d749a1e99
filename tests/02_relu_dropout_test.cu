// Rung 02, what is certain: the two mappings from elements to random words, the special values, the contract. Philox
// itself is tested in 02_philox_test.cu, what is random in 02_relu_dropout_statistics_test.cu.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

#include "common/harness/buffer.hpp"
#include "common/harness/compare.hpp"
#include "common/harness/inputs.hpp"
#include "common/harness/reference.hpp"
#include "steps/02_relu_dropout/four_per_call.cuh"
#include "steps/02_relu_dropout/in_flight.cuh"
#include "steps/02_relu_dropout/relu_dropout.cuh"
#include "steps/02_relu_dropout/unfused.cuh"
#include "tests/02_philox_by_hand.hpp"
#include "tests/expect.hpp"

namespace {

using namespace ladder;

constexpr float INF = std::numeric_limits<float>::infinity(), NOT_A_NUMBER = std::numeric_limits<float>::quiet_NaN();

using Launcher = void (*)(Vector<const float>, Vector<float>, float, uint64_t, uint64_t, cudaStream_t);
struct Variant {
  std::string name;
  Launcher launch;
  uint32_t (*word)(uint64_t seed, uint64_t element);  // the mapping it promises
  int64_t kernels, bytes_per_element;
};
const std::vector<Variant> VARIANTS{
    {"relu_dropout", step02::relu_dropout, by_hand::word_per_call, 1, 8},
    {"relu_dropout_four_per_call", step02::relu_dropout_four_per_call, by_hand::word_of_four, 1, 8},
    {"relu_dropout_in_flight", step02::relu_dropout_in_flight, by_hand::word_of_four, 1, 8},
    {"relu_dropout_unfused", step02::relu_dropout_unfused, by_hand::word_per_call, 2, 16}};

std::vector<float> ones(int64_t n) { return std::vector<float>(static_cast<std::size_t>(n), 1.0f); }

// The exact answer. The quotient of two floats in double, rounded to float, is the float quotient.
std::vector<float> right_answer(const std::vector<float>& x, const std::vector<float>& uniforms, float p) {
  const float survival = 1.0f - p;
  std::vector<float> out(x.size(), 0.0f);
  for (std::size_t i = 0; i < x.size(); ++i)
    if (uniforms[i] >= p && !(x[i] <= 0)) out[i] = static_cast<float>(double{x[i]} / double{survival});
  return out;
}

// A part of a buffer: what a caller has who passes x[offset:].
template <class T>
Vector<T> part(const Buffer<T>& buffer, int64_t offset, int64_t n) {
  return {buffer.data() + offset, {n}, {1}, buffer.size() - offset};
}

// The output of `launch`, with pointers so many elements behind 16-byte alignment, and NaN around x.
std::vector<float> run(Launcher launch, const std::vector<float>& x, float p, uint64_t seed, uint64_t first_counter = 0,
                       int64_t x_offset = 0, int64_t out_offset = 0) {
  constexpr int64_t MARGIN = 8;
  constexpr float GUARD = -777;
  const auto n = static_cast<int64_t>(x.size());
  std::vector<float> surrounded(static_cast<std::size_t>(n + x_offset + MARGIN), NOT_A_NUMBER);
  std::copy(x.begin(), x.end(), surrounded.begin() + x_offset);
  const Buffer<float> x_buffer("x", surrounded);
  Buffer<float> out_buffer("out", n + out_offset + MARGIN);
  out_buffer.fill(GUARD);
  launch(part(x_buffer, x_offset, n), part(out_buffer, out_offset, n), p, seed, first_counter, nullptr);
  const std::vector<float> all = out_buffer.download();
  const auto first = all.begin() + out_offset, last = first + n;
  CHECK(std::count(all.begin(), first, GUARD) + std::count(last, all.end(), GUARD) == out_offset + MARGIN);
  CHECK(out_buffer.guards_intact());
  return {first, last};
}

}  // namespace

TEST_CASE("both mappings, word by word: p itself measures each random number to its last bit") {
  constexpr int64_t N = 67;
  const uint64_t seeds[]{0, 7, 0x0123456789abcdef};
  const uint64_t firsts[]{0, 1, 2, 3, 4, 0xfffffffe, (uint64_t{1} << 34) - 5, std::numeric_limits<uint64_t>::max() - N};
  for (const Variant& variant : VARIANTS)
    for (uint64_t seed : seeds)
      for (uint64_t first : firsts) {
        CAPTURE(variant.name);
        CAPTURE(seed);
        CAPTURE(first);
        const std::vector<float> u = by_hand::uniforms(variant.word, seed, first, N);
        // At p = u[i] element i is kept, and with the next float above it is dropped: only u[i] itself does both.
        for (std::size_t i = 0; i < u.size(); i += 11)
          for (float p : {u[i], std::nextafter(u[i], 2.0f)}) {
            const Comparison difference =
                compare_bits(run(variant.launch, ones(N), p, seed, first), right_answer(ones(N), u, p), {N});
            CHECK_MESSAGE(difference.matches(), difference.describe());
          }
      }
}

TEST_CASE("every size, and pointers off 16-byte alignment: the same values, and nothing outside is written") {
  constexpr float P = 0.3f;
  constexpr uint64_t SEED = 7;
  for (const Variant& variant : VARIANTS)
    for (int64_t n : {1, 2, 3, 4, 5, 7, 8, 9, 31, 33, 255, 256, 257, 1023, 1024, 1025, 4097})
      for (uint64_t first : {0, 1, 3, 6}) {
        const std::vector<float> x = normal(n, 1);
        const std::vector<float> expected = right_answer(x, by_hand::uniforms(variant.word, SEED, first, n), P);
        const auto check = [&](int64_t x_offset, int64_t out_offset) {
          CAPTURE(variant.name);
          CAPTURE(n);
          CAPTURE(first);
          CAPTURE(x_offset);
          CAPTURE(out_offset);
          const std::vector<float> out = run(variant.launch, x, P, SEED, first, x_offset, out_offset);
          const Comparison difference = compare_bits(out, expected, {n});
          CHECK_MESSAGE(difference.matches(), difference.describe());
        };
        check(0, 0);
        check(1, 0);
        check(0, 1);
        check(2, 2);
        check(3, 3);
      }
}

TEST_CASE("against the reference in double") {
  constexpr int64_t N = 4099;
  // x / (1 - p) rounds twice: each time by at most half a unit in the last place, 2^-24.
  constexpr Tolerance TOLERANCE{0, 0x1.01p-23};
  const std::vector<float> x = normal(N, 5);
  for (const Variant& variant : VARIANTS)
    for (float p : {0.0f, 0.1f, 0.5f, 0.9f}) {
      CAPTURE(variant.name);
      const auto expected = reference_relu_dropout(x, by_hand::uniforms(variant.word, 3, 0, N), p);
      CHECK(rejects_zeros(expected, TOLERANCE));
      const Comparison difference = compare(run(variant.launch, x, p, 3), expected, {N}, TOLERANCE);
      CHECK_MESSAGE(difference.matches(), difference.describe());
    }
}

TEST_CASE("BC-020: block size, vector width and length leave the mask as it is") {
  constexpr float P = 0.3f;
  constexpr uint64_t SEED = 7;
  const auto first_1000 = [](const std::vector<float>& values) {
    return std::vector(values.begin(), values.begin() + 1000);
  };
  const std::vector<float> one = right_answer(ones(4097), by_hand::uniforms(by_hand::word_per_call, SEED, 0, 4097), P);
  check_same(run(step02::relu_dropout<64>, ones(4097), P, SEED), one);
  check_same(run(step02::relu_dropout<128>, ones(4097), P, SEED), one);
  check_same(run(step02::relu_dropout<256>, ones(4097), P, SEED), one);
  check_same(run(step02::relu_dropout<256>, ones(1000), P, SEED), first_1000(one));
  const std::vector<float> four = right_answer(ones(4097), by_hand::uniforms(by_hand::word_of_four, SEED, 0, 4097), P);
  CHECK(four != one);
  for (int64_t offset : {0, 1}) {  // by 16-byte accesses, and one by one
    check_same(run(step02::relu_dropout_four_per_call<64>, ones(4097), P, SEED, 0, offset, offset), four);
    check_same(run(step02::relu_dropout_four_per_call<128>, ones(4097), P, SEED, 0, offset, offset), four);
    check_same(run(step02::relu_dropout_four_per_call<256>, ones(4097), P, SEED, 0, offset, offset), four);
    check_same(run(step02::relu_dropout_four_per_call<256>, ones(1000), P, SEED, 0, offset, offset), first_1000(four));
    check_same(run(step02::relu_dropout_in_flight<64, 3>, ones(4097), P, SEED, 0, offset, offset), four);
    check_same(run(step02::relu_dropout_in_flight<128, 4>, ones(4097), P, SEED, 0, offset, offset), four);
    check_same(run(step02::relu_dropout_in_flight<256, 1>, ones(1000), P, SEED, 0, offset, offset), first_1000(four));
  }
}

TEST_CASE("however a stream is cut into calls, its mask is the same") {
  constexpr int64_t N = 1031;
  for (const Variant& variant : VARIANTS)
    for (int64_t cut : {1, 2, 3, 4, 514, 1029}) {
      CAPTURE(variant.name);
      CAPTURE(cut);
      const std::vector<float> whole = run(variant.launch, ones(N), 0.5f, 11, 100);
      const Buffer<float> x("x", ones(N));
      Buffer<float> out("out", N);
      variant.launch(part(x, 0, cut), part(out, 0, cut), 0.5f, 11, 100, nullptr);
      variant.launch(part(x, cut, N - cut), part(out, cut, N - cut), 0.5f, 11, 100 + static_cast<uint64_t>(cut),
                     nullptr);
      check_same(out.download(), whole);
    }
}

TEST_CASE("BC-024: the seed's value counts, not where it is kept") {
  const std::vector<uint64_t> here{42}, there{1, 42, 3};
  for (const Variant& variant : VARIANTS) {
    check_same(run(variant.launch, ones(1000), 0.5f, here[0]), run(variant.launch, ones(1000), 0.5f, there[1]));
    CHECK(run(variant.launch, ones(1000), 0.5f, here[0]) != run(variant.launch, ones(1000), 0.5f, there[2]));
  }
}

TEST_CASE(
    "BC-025, as far as the forward pass goes: the mask is computed again, with other blocks, where it is needed") {
  std::vector<float> x;
  for (int i = 0; i < 512; ++i) x.insert(x.end(), {1.0f, -1.0f});
  const std::vector<float> out = run(step02::relu_dropout<256>, x, 0.5f, 3);
  const std::vector<float> scale = run(step02::relu_dropout<128>, ones(1024), 0.5f, 3);  // dropout's own gradient
  std::vector<float> expected;  // x is 1 where it is positive, so that out is its own gradient
  for (std::size_t i = 0; i < x.size(); ++i) {
    expected.push_back(x[i] > 0 ? scale[i] : 0.0f);
    CHECK((expected[i] == 0 || expected[i] == 2));
  }
  check_same(out, expected);
}

TEST_CASE("BC-012: NaN passes through ReLU; a kept zero is +0") {
  const std::vector<float> x{NOT_A_NUMBER, -1, 0, 1, -INF, INF, -0.0f, 1e-40f, -1e-40f};
  const std::vector<float> expected{NOT_A_NUMBER, 0, 0, 1, 0, INF, 0, 1e-40f, 0};
  for (const Variant& variant : VARIANTS) {
    CAPTURE(variant.name);
    const Comparison difference = compare_bits(run(variant.launch, x, 0.0f, 1), expected, {9});
    CHECK_MESSAGE(difference.matches(), difference.describe());
  }
}

TEST_CASE("BC-013: a dropped infinity is 0, and so is a dropped NaN") {
  for (const Variant& variant : VARIANTS)
    for (float value : {INF, NOT_A_NUMBER}) {
      CAPTURE(variant.name);
      CAPTURE(value);
      const std::vector<float> x(1000, value);
      const std::vector<float> expected = right_answer(x, by_hand::uniforms(variant.word, 9, 0, 1000), 0.1f);
      CHECK(std::count(expected.begin(), expected.end(), 0.0f) > 50);
      const Comparison difference = compare_bits(run(variant.launch, x, 0.1f, 9), expected, {1000});
      CHECK_MESSAGE(difference.matches(), difference.describe());
    }
}

TEST_CASE("BC-014: p = 1 drops all, to +0") {
  const std::vector<float> x{1, -1, 0, INF, 3e38f, NOT_A_NUMBER};
  for (const Variant& variant : VARIANTS)
    for (const std::vector<float>& values : {x, ones(1025)}) {
      const auto n = static_cast<int64_t>(values.size());
      const std::vector<float> zeros(values.size(), 0.0f);
      const Comparison difference = compare_bits(run(variant.launch, values, 1.0f, 1), zeros, {n});
      CHECK_MESSAGE(difference.matches(), difference.describe());
    }
}

TEST_CASE("BC-015: a p outside [0, 1] is refused by its value, -0 is 0, and nothing is written") {
  const Buffer<float> x("x", ones(5));
  Buffer<float> out("out", 5);
  struct Refused {
    float p;
    const char* text;
  };
  const Refused all_refused[]{{-0.1f, "-0.1"}, {-10.0f, "-10"},    {1.0000001f, "1.0000001"},
                              {2.0f, "2"},     {INF, "inf"},       {NOT_A_NUMBER, "nan"},
                              {-INF, "-inf"},  {-1e-45f, "-1e-45"}};
  for (const Variant& variant : VARIANTS) {
    for (const Refused& refused : all_refused)
      CHECK_REFUSED(variant.launch(x.view(5), out.view(5), refused.p, 0, 0, nullptr),
                    variant.name + ": p is " + refused.text + ", must be at least 0 and at most 1");
    CHECK(untouched(out));
    check_same(run(variant.launch, ones(5), -0.0f, 0), ones(5));
  }
}

TEST_CASE("BC-022: strided views are refused, and so are those too short, unequal or null") {
  const Buffer<float> x("x", ones(36));
  Buffer<float> out("out", 36);
  for (const Variant& variant : VARIANTS) {
    const std::string& name = variant.name;
    const auto launch = [&](Vector<const float> from, Vector<float> to) {
      variant.launch(from, to, 0.5f, 0, 0, nullptr);
    };
    CHECK_REFUSED(launch({x.data(), {18}, {2}, 36}, out.view(18)), name + ": x.strides[0] is 2, must be 1");
    CHECK_REFUSED(launch(x.view(18), {out.data(), {18}, {2}, 36}), name + ": out.strides[0] is 2, must be 1");
    CHECK_REFUSED(launch(x.view(36), out.view(35)), name + ": out.sizes[0] is 35, must be 36, as of x");
    CHECK_REFUSED(launch(x.view(37), out.view(37)),
                  name + ": x.extent is 36, must be at least 37, which its sizes and strides reach");
    CHECK_REFUSED(launch(x.view(36), {nullptr, {36}, {1}, 36}),
                  name + ": out.data is null, must be a pointer to 36 elements");
    CHECK(untouched(out));
  }
}

TEST_CASE("the counters of a call may not pass 2^64, nor its blocks what a grid takes") {
  const Buffer<float> x("x", ones(5));
  Buffer<float> out("out", 5);
  for (const Variant& variant : VARIANTS) {
    const std::string& name = variant.name;
    CHECK_REFUSED(
        variant.launch(x.view(5), out.view(5), 0.5f, 0, std::numeric_limits<uint64_t>::max() - 4, nullptr),
        name +
            ": first_counter is 18446744073709551611, must be at most 18446744073709551610, 2^64 - 1 less the "
            "number of elements");
    const int64_t huge = int64_t{1} << 42;  // the view claims it; the refusal comes before anything is read
    const std::string message = message_of<InvalidArgument>([&] {
      variant.launch(Vector<float>{out.data(), {huge}, {1}, huge}, {out.data(), {huge}, {1}, huge}, 0.5f, 0, 0,
                     nullptr);
    });
    CHECK(message.starts_with(name + ": the number of blocks is "));
    CHECK(untouched(out));
  }
}

TEST_CASE("no elements, null pointers: nothing is launched, whatever the first counter") {
  for (const Variant& variant : VARIANTS)
    for (uint64_t first : {uint64_t{0}, uint64_t{3}, std::numeric_limits<uint64_t>::max()}) {
      CAPTURE(variant.name);
      CHECK(count_launches([&] { variant.launch({}, {}, 0.5f, 0, first, nullptr); }).kernels == exactly(0));
    }
}

TEST_CASE("out may be x; a partial overlap is refused") {
  constexpr int64_t N = 1025;
  const std::vector<float> x = normal(N, 3);
  for (const Variant& variant : VARIANTS) {
    CAPTURE(variant.name);
    Buffer<float> both("x", x);
    variant.launch(both.view(N), both.view(N), 0.3f, 1, 0, nullptr);
    const std::vector<float> expected = right_answer(x, by_hand::uniforms(variant.word, 1, 0, N), 0.3f);
    check_same(both.download(), expected);
    CHECK_REFUSED(variant.launch(part(both, 0, N - 1), part(both, 1, N - 1), 0.3f, 1, 0, nullptr),
                  variant.name + ": out.data is inside x, must be apart from it, or the same view");
    check_same(both.download(), expected);
  }
}

TEST_CASE("any size, values, p, seed, counter and alignment: the right answer, to the bit") {
  for (const Variant& variant : VARIANTS)
    CHECK_PROPERTY([&] {
      const auto n = *rc::gen::inRange<int64_t>(1, 3000);
      const auto x = *rc::gen::container<std::vector<float>>(static_cast<std::size_t>(n), rc::gen::arbitrary<float>());
      const float p = static_cast<float>(*rc::gen::inRange(0, 1001)) / 1000.0f;
      const auto seed = *rc::gen::arbitrary<uint64_t>();
      const auto first = *rc::gen::arbitrary<uint64_t>() / 2;
      const auto offset = *rc::gen::inRange<int64_t>(0, 4);
      const std::vector<float> expected = right_answer(x, by_hand::uniforms(variant.word, seed, first, n), p);
      RC_ASSERT(compare_bits(run(variant.launch, x, p, seed, first, offset, offset), expected, {n}).matches());
    });
}

TEST_CASE("one trip moves 8 bytes an element, two trips 16") {
  for (int64_t n : {1024, 1025}) {
    const Buffer<float> x("x", normal(n, 1));
    Buffer<float> out("out", n);
    for (const Variant& variant : VARIANTS) {
      CAPTURE(variant.name);
      const Launches launches = count_launches([&] { variant.launch(x.view(n), out.view(n), 0.5f, 0, 0, nullptr); });
      CHECK(launches.kernels == exactly(variant.kernels));
      if (!device_checks()) continue;  // a GPU counts no bytes
      CHECK(launches.traffic[1].bytes_written == exactly(4 * n * variant.kernels));
      // Of an element that is dropped a compiler may leave out the read. clang does where it moves one at a time: at
      // the end of four_per_call and in_flight.
      const int64_t one_at_a_time = variant.word == by_hand::word_of_four ? n % 4 : 0;
      const int64_t not_read = variant.bytes_per_element * n - launches.bytes();
      CHECK(not_read >= exactly(0));
      CHECK(not_read <= 4 * one_at_a_time);
    }
  }
}
