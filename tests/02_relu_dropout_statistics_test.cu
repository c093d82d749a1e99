// Rung 02, what is random: rates, scale, and independence between neighbours, seeds and calls, each against what chance
// allows. Seeds are fixed and the masks are the same everywhere, so a test that is green stays green.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "common/harness/buffer.hpp"
#include "common/harness/inputs.hpp"
#include "steps/02_relu_dropout/four_per_call.cuh"
#include "steps/02_relu_dropout/relu_dropout.cuh"
#include "steps/02_relu_dropout/statistics.hpp"
#include "tests/expect.hpp"

namespace {

using namespace ladder;
using step02::correlation;

using Launcher = void (*)(Vector<const float>, Vector<float>, float, uint64_t, uint64_t, cudaStream_t);
struct Variant {
  std::string name;
  Launcher launch;
};
// The two mappings. (The unfused pair has the mask of the first, to the bit.)
const std::vector<Variant> VARIANTS{{"relu_dropout", step02::relu_dropout},
                                    {"relu_dropout_four_per_call", step02::relu_dropout_four_per_call}};

std::vector<float> run(Launcher launch, const std::vector<float>& x, float p, uint64_t seed,
                       uint64_t first_counter = 0) {
  const auto n = static_cast<int64_t>(x.size());
  const Buffer<float> x_buffer("x", x);
  Buffer<float> out("out", n);
  launch(x_buffer.view(n), out.view(n), p, seed, first_counter, nullptr);
  return out.download();
}

// Zero where an element is dropped, 1 / (1 - p) where it is kept.
std::vector<float> mask(Launcher launch, int64_t n, float p, uint64_t seed, uint64_t first_counter = 0) {
  return run(launch, std::vector<float>(static_cast<std::size_t>(n), 1.0f), p, seed, first_counter);
}

// Two masks whose correlation is no more than chance allows.
bool independent(std::span<const float> a, std::span<const float> b, double p) {
  return within(correlation(a, b, p), 0, 5 / std::sqrt(static_cast<double>(std::min(a.size(), b.size()))));
}

double agreement(std::span<const float> a, std::span<const float> b) {
  const std::size_t n = std::min(a.size(), b.size());
  int64_t equal = 0;
  for (std::size_t i = 0; i < n; ++i) equal += (a[i] == 0) == (b[i] == 0);
  return static_cast<double>(equal) / static_cast<double>(n);
}

}  // namespace

TEST_CASE("the statistics themselves: known masks, known answers") {
  std::vector<float> alternating(1000), same(1000, 0.0f);
  for (std::size_t i = 0; i < alternating.size(); ++i) alternating[i] = i % 2 == 0 ? 2.0f : 0.0f;
  CHECK(within(correlation(alternating, alternating, 0.5), 1, 1e-12));
  CHECK(within(correlation(alternating, std::span(alternating).subspan(1), 0.5), -1, 0.01));
  CHECK(within(correlation(alternating, same, 0.5), 0, 1e-12));
  const std::vector<float> x{1, -1, 2, 0, 3, NAN}, out{2, 0, 0, 0, 6, NAN};
  const step02::Drops drops = step02::count_drops(x, out);
  CHECK(drops.candidates == 3);
  CHECK(drops.dropped == 1);
  CHECK(within(step02::rate_sigma(0.1, 100'000), 0.00094868, 1e-8));
  CHECK(step02::enough_to_judge(0.5, 100));
  CHECK_FALSE(step02::enough_to_judge(0.5, 99));
  CHECK_FALSE(step02::enough_to_judge(0.5, 0));
  CHECK(step02::enough_to_judge(1, 1));
}

TEST_CASE("BC-016: the rate is p, and survivors are 1 / (1 - p) in fp32") {
  struct Row {
    float p, survivor;
  };
  for (const Variant& variant : VARIANTS)
    for (int64_t n : {100'000, 1'048'576})
      for (const Row& row : {Row{0.1f, 1.11111116f}, {0.3f, 1.42857146f}, {0.5f, 2.0f}, {0.9f, 9.99999809f}}) {
        const float p = row.p;
        CAPTURE(variant.name);
        CAPTURE(n);
        CAPTURE(p);
        const std::vector<float> out = mask(variant.launch, n, p, 0);
        const int64_t zeros = std::count(out.begin(), out.end(), 0.0f);
        CHECK(std::count(out.begin(), out.end(), row.survivor) == n - zeros);
        const double expected = static_cast<double>(n) * double{p};
        CHECK(within(static_cast<double>(zeros), expected, 5 * std::sqrt(expected * (1 - double{p}))));
        if (n == 1'048'576 && p == 0.1f) CHECK(within(static_cast<double>(zeros), 104'858, 1'536));
        if (n == 1'048'576 && p == 0.3f) CHECK(within(static_cast<double>(zeros), 314'573, 2'346));
      }
}

TEST_CASE("BC-017: drops are counted among positive inputs; a zero that ReLU made is not one") {
  std::vector<float> x(1'048'576);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = i % 2 == 0 ? 1.0f : -1.0f;
  for (const Variant& variant : VARIANTS) {
    const std::vector<float> out = run(variant.launch, x, 0.25f, 0);
    const step02::Drops drops = step02::count_drops(x, out);
    CHECK(drops.candidates == 524'288);
    CHECK(within(drops.rate(), 0.25, 0.003));
    CHECK(within(static_cast<double>(std::count(out.begin(), out.end(), 0.0f)) / 1'048'576, 0.625, 0.0015));
  }
}

TEST_CASE("the mean over seeds is relu(x), for each element") {
  constexpr int64_t N = 512, SEEDS = 2000;
  const std::vector<float> x = normal(N, 1);
  for (const Variant& variant : VARIANTS)
    for (float p : {0.1f, 0.5f, 0.9f}) {
      const Buffer<float> x_buffer("x", x);
      Buffer<float> out("out", N);
      std::vector<double> sums(N, 0.0);
      for (uint64_t seed = 0; seed < SEEDS; ++seed) {
        variant.launch(x_buffer.view(N), out.view(N), p, seed, 0, nullptr);
        const std::vector<float> values = out.download();
        for (std::size_t i = 0; i < values.size(); ++i) sums[i] += values[i];
      }
      const double sigma = std::sqrt(double{p} / (1 - double{p}) / SEEDS);  // relative to relu(x)
      double worst = 0, sum_of_squares = 0, positive = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        if (x[i] <= 0) {
          CHECK(sums[i] == 0);
          continue;
        }
        const double off = std::abs(sums[i] / SEEDS / x[i] - 1) / sigma;
        worst = std::max(worst, off);
        sum_of_squares += off * off;
        ++positive;
      }
      CAPTURE(variant.name);
      CAPTURE(p);
      CHECK(worst <= 5);
      // Neither too far off nor too near: the squares average 1, as those of independent draws do.
      CHECK(within(sum_of_squares / positive, 1, 5 * std::sqrt(2 / positive)));
    }
}

TEST_CASE("neighbours are independent at every lag up to 256 and at the sizes of blocks") {
  for (const Variant& variant : VARIANTS)
    for (float p : {0.1f, 0.5f}) {
      const std::vector<float> one = mask(variant.launch, 131'072, p, 5);
      std::vector<std::size_t> lags(256);
      std::iota(lags.begin(), lags.end(), 1);
      lags.insert(lags.end(), {512, 768, 1024, 2048, 4096, 65'536});
      for (std::size_t lag : lags) {
        if (!independent(one, std::span(one).subspan(lag), p)) FAIL(variant.name << ", p " << p << ", lag " << lag);
      }
    }
}

TEST_CASE("seeds are independent, also those that differ in one bit, high or low") {
  const uint64_t seeds[]{0, 1, 2, 3, uint64_t{1} << 31, uint64_t{1} << 32, uint64_t{1} << 63, ~uint64_t{0}};
  for (const Variant& variant : VARIANTS) {
    std::vector<std::vector<float>> masks;
    for (uint64_t seed : seeds) masks.push_back(mask(variant.launch, 65'536, 0.3f, seed));
    for (std::size_t a = 0; a < masks.size(); ++a)
      for (std::size_t b = 0; b < a; ++b) {
        CAPTURE(variant.name);
        CAPTURE(seeds[a]);
        CAPTURE(seeds[b]);
        CHECK(independent(masks[a], masks[b], 0.3f));
      }
  }
}

TEST_CASE("the two mappings draw different masks, independent of each other") {
  const std::vector<float> one = mask(step02::relu_dropout, 65'536, 0.3f, 0);
  const std::vector<float> four = mask(step02::relu_dropout_four_per_call, 65'536, 0.3f, 0);
  CHECK(one != four);
  CHECK(independent(one, four, 0.3f));
}

TEST_CASE("BC-018: a call that continues at the next counter draws a new mask; the same arguments draw the same") {
  constexpr int64_t N = 65'536;
  for (const Variant& variant : VARIANTS) {
    CAPTURE(variant.name);
    const std::vector<float> first = mask(variant.launch, N, 0.5f, 0, 0), next = mask(variant.launch, N, 0.5f, 0, N);
    CHECK(within(agreement(first, next), 0.5, 0.01));
    CHECK(mask(variant.launch, N, 0.5f, 0, N) == next);
  }
}

TEST_CASE("BC-019: no piece of one call's mask comes again in the next call") {
  constexpr int64_t N = 4099;
  for (const Variant& variant : VARIANTS) {
    const std::vector<float> a = mask(variant.launch, N, 0.5f, 0, 0), b = mask(variant.launch, N, 0.5f, 0, N);
    for (std::size_t lag = 0; lag <= N - 512; ++lag)
      for (const double equal : {agreement(a, std::span(b).subspan(lag)), agreement(std::span(a).subspan(lag), b)})
        if (!within(equal, 0.5, 0.12)) FAIL(variant.name << ", lag " << lag << ": " << equal);
  }
}

TEST_CASE("BC-021: in tails of 1 to 9 elements each has its own random word, the same for every length") {
  constexpr std::size_t LONGEST = 9, SEEDS = 1000;
  const Buffer<float> x("x", std::vector<float>(LONGEST, 1.0f));
  Buffer<float> out("out", LONGEST);
  for (const Variant& variant : VARIANTS) {
    CAPTURE(variant.name);
    std::vector<std::vector<float>> longest;
    for (uint64_t seed = 0; seed < SEEDS; ++seed) {
      std::vector<float> previous;
      for (std::size_t n = 1; n <= LONGEST; ++n) {
        out.fill(-777);
        variant.launch(x.view(n), out.view(n), 0.5f, seed, 0, nullptr);
        std::vector<float> values = out.download();
        CHECK(std::count(values.begin(), values.end(), -777.0f) == LONGEST - n);
        values.resize(n);
        if (!std::equal(previous.begin(), previous.end(), values.begin()))
          FAIL(variant.name << ", seed " << seed << ", n " << n);
        previous = values;
      }
      longest.push_back(previous);
    }
    for (std::size_t i = 0; i < LONGEST; ++i) {
      const auto kept = std::count_if(longest.begin(), longest.end(), [&](const auto& item) { return item[i] == 2; });
      const auto dropped =
          std::count_if(longest.begin(), longest.end(), [&](const auto& item) { return item[i] == 0; });
      CHECK(kept + dropped == SEEDS);
      CHECK(within(static_cast<double>(kept), 500, 80));
      for (std::size_t j = 0; j < i; ++j) {
        const auto equal =
            std::count_if(longest.begin(), longest.end(), [&](const auto& item) { return item[i] == item[j]; });
        CHECK(within(static_cast<double>(equal), 500, 80));
      }
    }
  }
}

TEST_CASE("the uniform numbers fill [0, 1) evenly: chi-square over 256 bins, all four words") {
  constexpr uint64_t CALLS = 65'536;
  std::vector<int64_t> bins(256, 0);
  for (uint64_t counter = 0; counter < CALLS; ++counter) {
    const uint4 words = step02::random_words(0, counter);
    for (uint32_t word : {words.x, words.y, words.z, words.w})
      ++bins.at(static_cast<std::size_t>(step02::uniform_from(word) * 256));
  }
  const double expected = 4.0 * CALLS / 256;
  double chi_square = 0;
  for (int64_t bin : bins)
    chi_square += (static_cast<double>(bin) - expected) * (static_cast<double>(bin) - expected) / expected;
  CHECK(within(chi_square, 255, 5 * std::sqrt(2 * 255.0)));
}
