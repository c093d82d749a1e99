// ./climb 4 runs this: the bug of rung 03 and its one-line fix, the bytes that fusing saves, and why the maximum goes.
#include <cmath>
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
#include "steps/04_softmax_fixed/naive.cuh"
#include "steps/04_softmax_fixed/softmax.cuh"
#include "steps/04_softmax_fixed/unfused.cuh"
#include "steps/04_softmax_fixed/vectorized.cuh"

namespace {

using namespace ladder;

constexpr Tolerance TOLERANCE{.absolute = 0, .relative = 2e-6};

struct Problem {
  int64_t rows, columns;
  std::vector<float> input;
  std::vector<double> expected;

  Problem(int64_t rows_, int64_t columns_, uint64_t seed)
      : rows(rows_),
        columns(columns_),
        input(normal(rows * columns, seed)),
        expected(reference_softmax(input, rows, columns)) {}
};

// The same kernel with the block that rung 03 hard-codes, whatever the width.
void softmax_before(Matrix<const float> input, Matrix<float> output) {
  if (input.empty()) return;
  constexpr int BLOCK_SIZE = 1024;
  launch(step04::softmax_kernel<BLOCK_SIZE>, grid_of("softmax_before", input.sizes[0]),
         dim3(step04::threads_for(BLOCK_SIZE)), 0, nullptr, output.data, input.data, input.strides[0],
         output.strides[0], input.sizes[1]);
}

// The output holds zeros before: what is never written counts as 0.
template <class Softmax>
Launches check(Report& report, const Problem& problem, const std::string& claim, bool expected, Softmax softmax) {
  const int64_t rows = problem.rows, columns = problem.columns;
  const Buffer<float> input("input", problem.input);
  Buffer<float> output("output", rows * columns);
  output.fill(0.0f);
  const Launches launches = count_launches([&] { softmax(input.view(rows, columns), output.view(rows, columns)); });
  const Comparison difference = compare(output.download(), problem.expected, {rows, columns}, TOLERANCE);
  report.verdict(claim, difference.matches() && output.guards_intact(),
                 "max abs diff " + significant(difference.max_abs_diff), expected);
  return launches;
}

template <class Softmax>
void check_both(Report& report, const std::string& which, const Problem& small, const Problem& problem,
                int64_t right_up_to, Softmax softmax) {
  for (const Problem* p : {&small, &problem})
    check(report, *p, which + " softmax matches reference (n_cols=" + std::to_string(p->columns) + ")",
          p->rows == 0 || p->columns <= right_up_to, softmax);
}

void show_bytes(Report& report, const Problem& problem) {
  const int64_t rows = problem.rows, columns = problem.columns;
  report.paragraph("Fused, each of the M x N elements makes one trip, in and out: 2MN x 4 = " +
                   grouped(8 * rows * columns) + " bytes.");
  const Launches fused = check(report, problem, "Fused softmax matches reference", true,
                               [](auto x, auto out) { step04::softmax(x, out); });
  report.traffic(fused);
  report.paragraph("As five kernels (max, subtract, exp, sum, divide) each intermediate goes out and comes back:");
  const Buffer<float> scratch("scratch", step04::unfused_scratch(rows, columns));
  const Launches unfused = check(report, problem, "Unfused softmax matches reference", true, [&](auto x, auto out) {
    step04::softmax_unfused(x, out, scratch.view(scratch.size()));
  });
  report.traffic(unfused);
  if (fused.bytes() > 0)
    report.value("unfused / fused",
                 significant(static_cast<double>(unfused.bytes()) / static_cast<double>(fused.bytes())),
                 "times the bytes, for the same numbers");
}

void show_why_the_maximum(Report& report) {
  const Buffer<float> input("input", std::vector<float>{88, 88, 89, 89});  // two rows of two
  Buffer<float> output("output", 4);
  const auto number = [](float x) { return std::isnan(x) ? "NaN" : significant(x); };
  const auto row = [&](float a, float b) { return "[" + number(a) + ", " + number(b) + "]"; };
  report.paragraph("Why the maximum is subtracted: the same formula with and without it, on [88, 88] and [89, 89].");
  step04::softmax_naive(input.view(2, 2), output.view(2, 2));
  const std::vector<float> naive = output.download();
  report.verdict("Naive softmax is right at x = 88", naive[0] == 0.5f && naive[1] == 0.5f, row(naive[0], naive[1]));
  report.verdict("Naive softmax is right at x = 89", naive[2] == 0.5f && naive[3] == 0.5f,
                 row(naive[2], naive[3]) + ": exp(89) is infinite in fp32, and inf / inf is NaN", false);
  step04::softmax(input.view(2, 2), output.view(2, 2));
  const std::vector<float> stable = output.download();
  report.verdict("Stable softmax is right at x = 89", stable[2] == 0.5f && stable[3] == 0.5f,
                 row(stable[2], stable[3]));
}

void predict(Report& report) {
  const int64_t columns = 2000, rows = (int64_t{1} << 26) / columns;
  const Count fused{8.0 * static_cast<double>(rows * columns), "8 M N"};
  // The scratch comes and goes with the work.
  const auto unfused = [=] {
    const auto scratch = std::make_shared<Buffer<float>>("scratch", step04::unfused_scratch(rows, columns));
    return softmax_work(rows, columns, [scratch](auto x, auto out) {
      step04::softmax_unfused(x, out, scratch->view(scratch->size()));
    });
  };
  predict_then_measure(
      report, "M = " + grouped(rows) + " rows of N = " + grouped(columns) + " columns",
      {{.what = "softmax",
        .bytes = fused,
        .make = [=] { return softmax_work(rows, columns, [](auto x, auto out) { step04::softmax(x, out); }); }},
       {.what = "softmax_vectorized",
        .bytes = fused,
        .make =
            [=] { return softmax_work(rows, columns, [](auto x, auto out) { step04::softmax_vectorized(x, out); }); }},
       {.what = "softmax_unfused",
        .bytes = {step04::unfused_bytes(rows, columns), "4 (8 M N + 4 M)"},
        .make = unfused}});
}

}  // namespace

int main(int argc, char** argv) {
  int64_t rows = 4, columns = 2000;
  uint64_t seed = 0;
  CommandLine command_line("04_softmax_fixed", "Softmax of each row, with a block made for the row.");
  command_line.integer("--rows", rows, "rows", "rows", 0, 65536);
  command_line.integer("--cols", columns, "columns; past 32768 the rung refuses", "columns", 0, 1 << 20);
  command_line.seed("--seed", seed, "seed of the inputs");
  return run_program(command_line, argc, argv, [&] {
    require_range("04_softmax_fixed", "rows x columns", rows * columns, 0, 1 << 26);
    Report report(std::cout, "04 softmax, fixed: exp(x - max) / sum", device_description());
    const Problem small(4, 5, seed), problem(rows, columns, seed);
    report.paragraph("The kernel is that of rung 03, to the letter. Before: the launcher says BLOCK_SIZE = 1024.");
    check_both(report, "Buggy", small, problem, 1024, softmax_before);
    report.paragraph("After: it says BLOCK_SIZE = next_power_of_2(n_cols). No other line differs.");
    check_both(report, "Corrected", small, problem, step04::MAX_BLOCK_SIZE, [](auto x, auto out) {
      observe({x, out}, [&] { step04::softmax(x, out); });
    });
    if (rows * columns > 0) show_bytes(report, problem);
    show_why_the_maximum(report);
    predict(report);
    report.lesson("size the block to the row; and test the shape that you were not thinking of.");
    return report.exit_status();
  });
}
