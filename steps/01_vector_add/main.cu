// ./climb 1 runs this: out = x + y, checked, counted, and what happens without the mask.
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
#include "steps/01_vector_add/vector_add.cuh"
#include "steps/01_vector_add/vectorized.cuh"
#include "steps/01_vector_add/without_mask.cuh"

namespace {

using namespace ladder;

struct Problem {
  std::vector<float> host_x, host_y;
  std::vector<float> expected;  // the sum in double, rounded once: what an exact float addition gives
  Buffer<float> x, y;

  Problem(int64_t n, uint64_t seed)
      : host_x(normal(n, seed)), host_y(uniform(n, seed + 1, 1.0f, 3.0f)), x("x", host_x), y("y", host_y) {
    for (double sum : reference_add(host_x, host_y)) expected.push_back(static_cast<float>(sum));
  }
};

template <class Add>
void check(Report& report, const Problem& problem, int64_t n, const std::string& name, Add add) {
  Buffer<float> out("out", n);
  const Launches launches = count_launches([&] { add(problem.x.view(n), problem.y.view(n), out.view(n)); });
  const Comparison difference = compare_bits(out.download(), problem.expected, {n});
  report.verdict(name + " matches x + y (n=" + grouped(n) + ")", difference.matches() && out.guards_intact(),
                 difference.describe());
  if (launches.kernels > 0) report.traffic(launches);
}

void show_without_mask(Report& report, const Problem& problem, int64_t n) {
  if (!device_checks()) {
    report.paragraph(
        "Without the mask the threads past the end read and write what lies there, and a GPU checks no array's bounds. "
        "To see it caught, run the same kernel on the CPU device: ./climb 1 --device cpu");
    return;
  }
  Buffer<float> out("out", n);
  report.paragraph("The same kernel without its mask, on the CPU device, which sees every access:");
  std::string message = "nothing: n is a multiple of the block's 256 threads, so no thread lies past the end";
  bool caught = false;
  try {
    step01::vector_add_without_mask(problem.x.view(n), problem.y.view(n), out.view(n));
  } catch (const KernelFault& fault) {
    message = fault.what();
    caught = true;
  }
  report.quote(message);
  report.verdict("Caught without a mask (n=" + grouped(n) + ")", caught, "a GPU checks no array's bounds",
                 n % 256 != 0);
}

void predict(Report& report) {
  const int64_t n = int64_t{1} << 26;
  const Count bytes{12.0 * static_cast<double>(n), "12 n"};  // x and y read, out written
  predict_then_measure(
      report, "n = " + grouped(n),
      {{.what = "vector_add",
        .bytes = bytes,
        .make = [=] { return add_work(n, [](auto x, auto y, auto out) { step01::vector_add(x, y, out); }); }},
       {.what = "vector_add_vectorized", .bytes = bytes, .make = [=] {
          return add_work(n, [](auto x, auto y, auto out) { step01::vector_add_vectorized(x, y, out); });
        }}});
}

}  // namespace

int main(int argc, char** argv) {
  int64_t n = 1'000'003;
  uint64_t seed = 0;
  CommandLine command_line("01_vector_add", "Adds two vectors: block, offsets, mask.");
  command_line.integer("--n", n, "elements of each vector", "elements", 0, int64_t{1} << 28);
  command_line.seed("--seed", seed, "seed of the inputs");
  return run_program(command_line, argc, argv, [&] {
    Report report(std::cout, "01 vector add: out = x + y", device_description());
    report.paragraph(
        "Each block of 256 threads finds its own chunk: block_start = blockIdx.x * 256, offsets = block_start + "
        "threadIdx.x. The mask, offsets < n, stops the threads past the end.");
    const Problem problem(n, seed);
    check(report, problem, n, "vector_add", [](auto x, auto y, auto out) {
      observe({x, y, out}, [&] { step01::vector_add(x, y, out); });
    });
    check(report, problem, n, "vector_add_vectorized",
          [](auto x, auto y, auto out) { step01::vector_add_vectorized(x, y, out); });
    if (n > 0) show_without_mask(report, problem, n);
    predict(report);
    report.lesson("offsets say which elements are mine, and the mask says which of them exist.");
    return report.exit_status();
  });
}
