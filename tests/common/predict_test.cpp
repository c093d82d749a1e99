// Predictions by hand, the table to the letter, and the page of a device that times nothing.
#include "common/harness/predict.hpp"

#include <cstdlib>
#include <limits>
#include <sstream>

#include "common/harness/work.hpp"
#include "tests/expect.hpp"

using namespace ladder;

namespace {

constexpr Ceilings ROUND{.memcpy_bytes = 1e12, .kernel_bytes = 2e12, .operations = 50e12};

Prediction of(double bytes, double operations = 0) {
  return {.what = "kernel", .bytes = {bytes, "b"}, .operations = {operations, "o"}};
}

}  // namespace

TEST_CASE("predict: bytes over the better copy, or operations over the fp32 rate, whichever takes longer") {
  CHECK(within(predicted_seconds(of(4e9), ROUND), 2e-3, 1e-15));  // 4 GB at 2 TB/s
  CHECK(within(predicted_seconds(of(4e9, 50e9), ROUND), 2e-3, 1e-15));
  CHECK(within(predicted_seconds(of(4e9, 200e9), ROUND), 4e-3, 1e-15));  // 200 GFLOP at 50 TFLOP/s
  CHECK(within(predicted_seconds(of(0, 200e9), ROUND), 4e-3, 1e-15));
  // 12 bytes for each of 2^26 elements, 805,306,368, at 4,268 GB/s.
  CHECK(within(predicted_seconds(of(805306368), H200_CEILINGS), 188.684716e-6, 1e-11));
}

TEST_CASE("predict: nothing to do takes no time; what is no count, or no ceiling, is refused") {
  CHECK(predicted_seconds(of(0), ROUND) == exactly(0.0));
  CHECK_REFUSED(predicted_seconds(of(-1), ROUND),
                "predict: the bytes of kernel are -1, must be a number and at least 0");
  CHECK_REFUSED(predicted_seconds(of(1, std::numeric_limits<double>::quiet_NaN()), ROUND),
                "predict: the operations of kernel are nan, must be a number and at least 0");
  CHECK_REFUSED(predicted_seconds(of(std::numeric_limits<double>::infinity()), ROUND),
                "predict: the bytes of kernel are inf, must be a number and at least 0");
  CHECK_REFUSED(predicted_seconds(of(1), Ceilings{}), "predict: the ceiling of bytes is 0, must be above 0");
  CHECK_REFUSED(predicted_seconds(of(1), (Ceilings{.kernel_bytes = 1})),
                "predict: the ceiling of operations is 0, must be above 0");
}

TEST_CASE("predict: the table without times") {
  CHECK(judged(prediction_table({of(4e9), of(1e6, 200e9)}, ROUND, {})) ==
        "  kernel                       predicted   by formula\n"
        "  kernel                       2000.0 us   b = 4,000,000,000 bytes\n"
        "  kernel                       4000.0 us   o = 200,000,000,000 operations\n"
        "    its b = 1,000,000 bytes alone: 0.5 us\n");
}

TEST_CASE("predict: the table with times; where one is missing, or nothing was predicted, there is no ratio") {
  CHECK(judged(prediction_table({of(4e9), of(2e9), of(0)}, ROUND, {3e-3, std::nullopt, 2e-6})) ==
        "  kernel                       predicted    measured   ratio   by formula\n"
        "  kernel                       2000.0 us   3000.0 us    1.50   b = 4,000,000,000 bytes\n"
        "  kernel                       1000.0 us           -       -   b = 2,000,000,000 bytes\n"
        "  kernel                          0.0 us      2.0 us       -   b = 0 bytes\n");
}

TEST_CASE(
    "predict: on the CPU device nothing is run, and the page says whose ceilings they are; a GPU can be told so") {
  setenv("LADDER_PREDICT_ONLY", "1", 1);
  std::ostringstream out;
  Report report(out, "title", "device");
  Prediction prediction = of(4.268e9);
  prediction.make = []() -> Work { throw KernelFault("nothing is to be run here"); };
  const int64_t before = total_launches();
  predict_then_measure(report, "n = 1,000", {prediction});
  CHECK(total_launches() == exactly(before));
  CHECK(report.exit_status() == exactly(0));
  CHECK(judged(out.str()) ==
        "title, on device\n"
        "\n"
        "Predict, then measure, at n = 1,000. Predicted are its bytes at the bandwidth of a copy, or its\n"
        "operations at the fp32 rate, whichever takes longer:\n"
        "  kernel                       predicted   by formula\n"
        "  kernel                       1000.0 us   b = 4,268,000,000 bytes\n"
        "\n"
        "The ceilings are those of an NVIDIA H200, copy 4,268 GB/s, fp32 63.2 TFLOP/s\n"
        "(docs/results/2026-11-30-h200-bench.json). Nothing was timed: " +
            std::string(on_gpu() ? "LADDER_PREDICT_ONLY is set.\n"
                                 : "what a CPU takes would say nothing\n"
                                   "about a GPU. On a GPU its own time stands beside this.\n"));
  unsetenv("LADDER_PREDICT_ONLY");
}

TEST_CASE("work: by model each input is read once and each output written once; attention multiplies and adds") {
  const auto nothing = [](auto&&...) {};
  CHECK(add_work(4096, nothing).bytes == exactly(12.0 * 4096));
  CHECK(relu_dropout_work(
            4096, 0.5f, [](int64_t) { return 0.0f; }, nothing)
            .bytes == exactly(8.0 * 4096));
  CHECK(softmax_work(3, 5, nothing).bytes == exactly(8.0 * 15));
  const Work attention = attention_work(2, 3, 5, 7, nothing);
  CHECK(attention.bytes == exactly(4.0 * (2 * 2 * 3 * 7 + 2 * 2 * 5 * 7)));  // Q and O, K and V
  CHECK(attention.operations == exactly(2.0 * 2 * (2 * 3 * 5 * 7)));  // two products, each 2 * 3 * 5 * 7 multiply-adds
  CHECK(judged(attention.problem) == "attention heads=2 q_len=3 k_len=5 head_dim=7");
}

TEST_CASE("measure: quantiles are values that were there") {
  CHECK(quantile({3, 1, 2}, 0.5) == exactly(2.0));
  CHECK(quantile({3, 1, 2}, 0) == exactly(1.0));
  CHECK(quantile({3, 1, 2}, 1) == exactly(3.0));
  CHECK(quantile({4, 3, 1, 2}, 0.5) == exactly(2.0));
  CHECK(quantile({7}, 0.9) == exactly(7.0));
}
