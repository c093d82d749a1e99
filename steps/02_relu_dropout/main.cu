// ./climb 2 runs this: five values that prove nothing, then the counts that do.
#include <algorithm>
#include <cmath>
#include <iostream>

#include "common/harness/buffer.hpp"
#include "common/harness/command_line.hpp"
#include "common/harness/compare.hpp"
#include "common/harness/inputs.hpp"
#include "common/harness/predict.hpp"
#include "common/harness/program.hpp"
#include "common/harness/report.hpp"
#include "common/harness/work.hpp"
#include "steps/02_relu_dropout/draws.cuh"
#include "steps/02_relu_dropout/four_per_call.cuh"
#include "steps/02_relu_dropout/in_flight.cuh"
#include "steps/02_relu_dropout/relu_dropout.cuh"
#include "steps/02_relu_dropout/statistics.hpp"
#include "steps/02_relu_dropout/unfused.cuh"

namespace {

using namespace ladder;
using namespace step02;

struct Options {
  int64_t n = 1'048'576;
  double p = 0.3;
  uint64_t seed = 0;
  float p_float() const { return static_cast<float>(p); }  // what the kernel is given, and what the counts expect
  uint64_t key(int64_t i = 0) const { return seed + static_cast<uint64_t>(i); }  // after the last seed comes 0
};

using Launcher = void (*)(Vector<const float>, Vector<float>, float, uint64_t, uint64_t, cudaStream_t);

std::vector<float> run(Launcher launcher, const Buffer<float>& x, float p, uint64_t seed) {
  Buffer<float> out("out", x.size());
  launcher(x.view(x.size()), out.view(x.size()), p, seed, 0, nullptr);
  return out.download();
}

// Ones survive as 1 / (1 - p), so that a zero is a drop and nothing else.
std::vector<float> mask_of(Launcher launcher, int64_t n, float p, uint64_t seed) {
  return run(launcher, Buffer<float>("x", std::vector<float>(static_cast<std::size_t>(n), 1.0f)), p, seed);
}

std::string percent(double rate) { return significant(100 * rate, 2); }

// What too few elements, or p = 0 and p = 1, leave open is said, not passed.
void judge(Report& report, const std::string& claim, bool enough, bool holds, const std::string& detail) {
  if (enough)
    report.verdict(claim, holds, detail);
  else
    report.value("cannot be judged here", claim);
}

void five_values(Report& report, const Options& options) {
  report.paragraph("The first five values, p = " + significant(options.p) +
                   ", as the article's author looked at first:");
  const std::vector<float> x = normal(5, options.key()),
                           out = run(relu_dropout, Buffer<float>("x", x), options.p_float(), options.key());
  for (const auto& [name, values] : {std::pair("x", x), std::pair("out", out)}) {
    std::string line;
    for (float value : values) {
      const std::string text = significant(value);
      line += std::string(10 - std::min<std::size_t>(9, text.size()), ' ') + text;
    }
    report.value(name, line);
  }
  report.paragraph(
      "They prove nothing. A wrong probability, a mask that repeats, a mask that is the same for each seed: all can "
      "look like this. Of what is random only the distribution can be tested: count, and know how far "
      "chance carries a count.");
}

bool survivors_exact(const std::vector<float>& x, const std::vector<float>& out, float p) {
  for (std::size_t i = 0; i < x.size(); ++i)
    if (out[i] != 0 && out[i] != std::max(x[i], 0.0f) / (1.0f - p)) return false;
  return true;
}

void rates(Report& report, const Options& options) {
  report.paragraph("The rate of drops, counted among positive inputs only: a zero that ReLU made is not a drop.");
  std::vector<double> ps{0.1, 0.3, 0.5, 0.9};
  if (std::find(ps.begin(), ps.end(), options.p) == ps.end()) ps.push_back(options.p);
  std::vector<int64_t> ns{100'000};
  if (options.n != 100'000) ns.push_back(options.n);
  bool exact = true;
  for (int64_t n : ns) {
    const std::vector<float> host_x = normal(n, options.key());
    const Buffer<float> x("x", host_x);
    for (double exact_p : ps) {
      const auto p = static_cast<float>(exact_p);
      const std::vector<float> out = run(relu_dropout, x, p, options.key());
      const Drops drops = count_drops(host_x, out);
      const double off = std::abs(drops.rate() - p), sigma = rate_sigma(p, drops.candidates);
      judge(report, "Within 5 sigma (n=" + grouped(n) + ", p=" + significant(exact_p) + ")",
            enough_to_judge(p, drops.candidates), off <= 5 * sigma,
            significant(drops.rate(), 5) + " of " + grouped(drops.candidates) +
                (sigma > 0 ? ", off " + significant(off / sigma, 2) + " sigma" : ""));
      exact = exact && survivors_exact(host_x, out, p);
    }
  }
  report.verdict("Every survivor is exactly x / (1 - p) in fp32", exact, "in all of these runs");
}

void what_to_expect(Report& report) {
  const double sigma_all = rate_sigma(0.1, 100'000), sigma_positive = rate_sigma(0.1, 50'000);
  report.paragraph(
      "The article has 0.1007 for p = 0.10, and +/- 0.01 as its margin. The rate is seven hundredths of a percentage "
      "point off, and that is fine: at n = 100,000, one sigma is " +
      percent(sigma_all) + " points if each element counts, " + percent(sigma_positive) +
      " if only the positive half does; 5 sigma are " + percent(5 * sigma_all) + " and " + percent(5 * sigma_positive) +
      ". The margin, one point, would let a rate of 0.107 pass.");
  const std::vector<float> out = mask_of(relu_dropout, 1000, 0.9f, 0);
  const float survivor = *std::max_element(out.begin(), out.end());
  report.paragraph("At p = 0.9, 1 survives as " + significant(survivor, 9) +
                   ", not as 10: fp32 has no 0.9. The nearest is " + significant(0.9f, 9) +
                   ", which leaves 1 - p = " + significant(1.0f - 0.9f, 9) + ".");
}

void mean_over_seeds(Report& report, const Options& options) {
  constexpr int64_t SEEDS = 512, N = 256;
  const std::vector<float> host_x = normal(N, options.key());
  const Buffer<float> x("x", host_x);
  std::vector<double> sums(N, 0.0);
  for (int64_t i = 0; i < SEEDS; ++i) {
    const std::vector<float> out = run(relu_dropout, x, options.p_float(), options.key(i));
    for (std::size_t j = 0; j < out.size(); ++j) sums[j] += out[j];
  }
  const double p = options.p_float(), sigma = std::sqrt(p / (1 - p) / SEEDS);  // of the mean of an element that is 1
  double worst = 0;
  for (std::size_t j = 0; j < sums.size(); ++j) {
    const double relu_x = std::max(host_x[j], 0.0f), off = std::abs(sums[j] / SEEDS - relu_x);
    if (off > 0) worst = std::max(worst, off / (relu_x * sigma));
  }
  judge(report, "Mean over " + grouped(SEEDS) + " seeds is relu(x)", p < 1 && enough_to_judge(p, SEEDS), worst <= 5,
        "of " + grouped(N) + " elements the worst is off " + significant(worst, 2) + " sigma");
}

void independence(Report& report, const Options& options) {
  const double p = options.p_float();
  const int64_t n = std::min<int64_t>(options.n, 262'144);
  const double rarer = std::min(p, 1 - p);  // a constant mask, at p = 0 and p = 1, has no correlation
  const bool enough = rarer > 0 && enough_to_judge(rarer * rarer, n);
  const auto sigmas = [&](std::span<const float> a, std::span<const float> b) {
    return std::abs(correlation(a, b, p)) * std::sqrt(static_cast<double>(std::min(a.size(), b.size())));
  };
  const std::vector<float> mask = mask_of(relu_dropout, n, options.p_float(), options.key());
  double worst = 0;
  for (std::size_t lag : {1, 2, 3, 4, 8, 32, 256, 1024})
    if (enough && lag < mask.size()) worst = std::max(worst, sigmas(mask, std::span(mask).subspan(lag)));
  judge(report, "Neighbours at lags 1 to 1024 are independent", enough, worst <= 5,
        "largest correlation: " + significant(worst, 2) + " sigma");
  const auto against = [&](const std::string& claim, const std::vector<float>& other) {
    const double off = enough ? sigmas(mask, other) : 0;
    judge(report, claim, enough, off <= 5, "correlation: " + significant(off, 2) + " sigma");
  };
  against("The next seed's mask is independent", mask_of(relu_dropout, n, options.p_float(), options.key(1)));
  against("So is the mask of four elements per call",
          mask_of(relu_dropout_four_per_call, n, options.p_float(), options.key()));
}

void same_mask(Report& report, const Options& options) {
  const int64_t n = std::min<int64_t>(options.n, 10'007);
  const auto mask = [&](Launcher launcher, int64_t length) {
    return mask_of(launcher, length, options.p_float(), options.key());
  };
  const std::vector<float> whole = mask(relu_dropout<256>, n);
  report.verdict("Blocks of 64, 128 and 256 draw the same mask",
                 mask(relu_dropout<64>, n) == whole && mask(relu_dropout<128>, n) == whole, "n=" + grouped(n));
  const std::vector<float> prefix = mask(relu_dropout, n / 3);
  report.verdict("A shorter call draws a prefix of it", std::equal(prefix.begin(), prefix.end(), whole.begin()),
                 "n=" + grouped(n / 3));
}

void one_trip_or_two(Report& report, const Options& options) {
  const int64_t n = std::min<int64_t>(options.n, 262'144);
  const Buffer<float> x("x", normal(n, options.key()));
  Buffer<float> out("out", n);
  const auto launches_of = [&](Launcher launcher) {
    return count_launches([&] { launcher(x.view(n), out.view(n), options.p_float(), options.key(), 0, nullptr); });
  };
  report.paragraph("Fused, one trip through memory (n=" + grouped(n) + "):");
  Launches fused;
  observe({x.view(n), out.view(n)}, [&] { fused = launches_of(relu_dropout); });
  report.traffic(fused);
  const std::vector<float> fused_out = out.download();
  report.paragraph("The same as two kernels, relu and dropout, with out between them:");
  out.poison();
  const Launches unfused = launches_of(relu_dropout_unfused);
  report.traffic(unfused);
  const Comparison difference = compare_bits(out.download(), fused_out, {n});
  report.verdict("Both give the same bits", difference.matches(), difference.describe());
  if (device_checks())
    report.verdict("Two trips move twice the bytes", unfused.bytes() == 2 * fused.bytes(), "16 n, not 8 n");
}

void predict(Report& report, const Options& options) {
  const int64_t n = int64_t{1} << 26;
  const float p = 0.5f;  // here survivors are doubled, which rounds nothing: the check is to the bit
  const uint64_t seed = options.key();
  const auto with = [=](const std::string& name, double bytes_of_one, float (*draw)(uint64_t, int64_t),
                        Launcher launcher) -> Prediction {
    return {
        .what = name, .bytes = {bytes_of_one * static_cast<double>(n), significant(bytes_of_one) + " n"}, .make = [=] {
          return relu_dropout_work(
              n, p, [=](int64_t i) { return draw(seed, i); },
              [=](auto x, auto out) { launcher(x, out, p, seed, 0, nullptr); });
        }};
  };
  predict_then_measure(report, "n = " + grouped(n) + ", p = " + significant(p),
                       {with("relu_dropout", 8, draw_one_per_call, relu_dropout),
                        with("relu_dropout_four_per_call", 8, draw_four_per_call, relu_dropout_four_per_call),
                        with("relu_dropout_in_flight", 8, draw_four_per_call, relu_dropout_in_flight),
                        with("relu_dropout_unfused", 16, draw_one_per_call, relu_dropout_unfused)});
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CommandLine command_line("02_relu_dropout", "ReLU and dropout in one kernel, and how to test what is random.");
  command_line.integer("--n", options.n, "elements of the larger runs", "elements", 0, int64_t{1} << 26);
  command_line.real("--p", options.p, "probability that an element is dropped", 0, 1);
  command_line.seed("--seed", options.seed, "seed of inputs and masks");
  return run_program(command_line, argc, argv, [&] {
    Report report(std::cout, "02 relu + dropout: out = dropout(relu(x), p)", device_description());
    five_values(report, options);
    rates(report, options);
    what_to_expect(report);
    report.paragraph("The seed and the element's place in the stream decide on an element, and nothing else does:");
    mean_over_seeds(report, options);
    independence(report, options);
    same_mask(report, options);
    one_trip_or_two(report, options);
    predict(report, options);
    report.lesson(
        "two operations in one kernel are one trip through memory; and what is random is proven by its distribution, "
        "never by a sample.");
    return report.exit_status();
  });
}
