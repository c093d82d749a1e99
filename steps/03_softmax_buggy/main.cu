// ./climb 3 runs this: a softmax that is right at every width its author tried, and wrong past 1024 columns.
#include <bit>
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
#include "steps/03_softmax_buggy/softmax.cuh"

namespace {

using namespace ladder;

constexpr int64_t HARD_CODED = 1024;  // the BLOCK_SIZE of the launcher, as the ladder has it
constexpr Tolerance TOLERANCE{.absolute = 0, .relative = 2e-6};

struct Result {
  int64_t rows, columns;
  std::vector<float> input;
  std::vector<double> expected;
  std::vector<float> output;  // on a buffer that held poison
  Comparison difference;      // of that output
  double zeroed_difference =
      0;  // the largest difference on a buffer that held zeros, where an unwritten cell counts as 0
};

Result run_softmax(int64_t rows, int64_t columns, uint64_t seed) {
  Result result{rows, columns, normal(rows * columns, seed), {}, {}, {}};
  result.expected = reference_softmax(result.input, rows, columns);
  const Buffer<float> input("input", result.input);
  Buffer<float> output("output", rows * columns);
  const auto x = input.view(rows, columns), out = output.view(rows, columns);
  observe({x, out}, [&] { step03::softmax(x, out); });
  result.output = output.download();
  result.difference = compare(result.output, result.expected, {rows, columns}, TOLERANCE);
  output.fill(0.0f);
  step03::softmax(input.view(rows, columns), output.view(rows, columns));
  result.zeroed_difference = compare(output.download(), result.expected, {rows, columns}, TOLERANCE).max_abs_diff;
  return result;
}

void verdict(Report& report, const Result& result) {
  report.verdict("Softmax matches reference (n_cols=" + std::to_string(result.columns) + ")",
                 result.difference.matches(), "max abs diff " + significant(result.zeroed_difference),
                 result.rows == 0 || result.columns <= HARD_CODED);
}

// The columns, counted from the first, that hold no poison in any row: found in the output, whatever the launcher says.
int64_t written_columns(const Result& result) {
  int64_t columns = result.columns;
  for (int64_t row = 0; row < result.rows; ++row)
    for (int64_t col = 0; col < columns; ++col)
      if (std::bit_cast<uint32_t>(result.output[static_cast<std::size_t>(row * result.columns + col)]) == 0xffffffffu)
        columns = col;
  return columns;
}

// The first `columns` of each row.
template <class T>
std::vector<T> left_part(const std::vector<T>& matrix, const Result& result, int64_t columns) {
  std::vector<T> part;
  for (int64_t row = 0; row < result.rows; ++row) {
    const auto start = matrix.begin() + row * result.columns;
    part.insert(part.end(), start, start + columns);
  }
  return part;
}

void show_what_happened(Report& report, const Result& result) {
  const int64_t rows = result.rows, kept = written_columns(result);
  const std::vector<float> written = left_part(result.output, result, kept);
  report.paragraph(
      "It returned like any other call: no crash, no error, no warning. Looked at closely, on an output "
      "that held poison before:");
  report.value("cells never written", grouped(result.difference.unwritten) + " of " + grouped(rows * result.columns),
               result.columns > kept ? "(columns " + grouped(kept) + " to " + grouped(result.columns - 1) + ")" : "");
  report.value("max abs diff, written", significant(result.difference.max_abs_diff));
  report.value("max abs diff, all", significant(result.zeroed_difference), "(an unwritten cell counted as 0)");
  report.value("sum of the written part", "1, within " + significant(max_row_sum_error(written, rows, kept)),
               "(as a softmax should, so that it looks right)");
  report.verdict("It is the softmax of the first " + grouped(kept) + " columns",
                 result.difference.unwritten == rows * (result.columns - kept) &&
                     compare(written, reference_softmax(left_part(result.input, result, kept), rows, kept),
                             {rows, kept}, TOLERANCE)
                         .matches(),
                 "");
}

// At the widest row that it gets right: the check would refuse any wider one.
void predict(Report& report) {
  const int64_t columns = HARD_CODED, rows = (int64_t{1} << 26) / columns;
  predict_then_measure(report, "M = " + grouped(rows) + " rows of N = " + grouped(columns) + " columns",
                       {{.what = "softmax", .bytes = {8.0 * static_cast<double>(rows * columns), "8 M N"}, .make = [=] {
                           return softmax_work(rows, columns, [](auto x, auto out) { step03::softmax(x, out); });
                         }}});
}

}  // namespace

int main(int argc, char** argv) {
  int64_t rows = 4, columns = 2000;
  uint64_t seed = 0;
  CommandLine command_line("03_softmax_buggy", "Softmax of each row, with a hard-coded BLOCK_SIZE.");
  command_line.integer("--rows", rows, "rows of the last shape", "rows", 0, 65536);
  command_line.integer("--cols", columns, "columns of the last shape", "columns", 0, 1 << 20);
  command_line.seed("--seed", seed, "seed of the inputs");
  return run_program(command_line, argc, argv, [&] {
    require_range("03_softmax_buggy", "rows x columns", rows * columns, 0, 1 << 26);
    Report report(std::cout, "03 softmax, buggy: exp(x - max) / sum", device_description());
    report.paragraph(
        "One block per row. Its row is read once, stays in registers through the maximum, exp and the "
        "sum, and is written once. The mask, col_offsets < n_cols, stops the threads past the end.");
    verdict(report, run_softmax(4, 5, seed));
    report.paragraph("(4, 5) is the shape of its author's test. Two more:");
    verdict(report, run_softmax(4, HARD_CODED, seed));
    const Result last = run_softmax(rows, columns, seed);
    verdict(report, last);
    if (rows * columns > 0) show_what_happened(report, last);
    predict(report);
    report.lesson(
        "the mask asks whether a column exists, never whether the block reaches the last one. BLOCK_SIZE is "
        "hard-coded, and a test at the shape you had in mind passes right over it.");
    return report.exit_status();
  });
}
