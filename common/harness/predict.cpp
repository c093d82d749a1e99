#include "common/harness/predict.hpp"

#include <cmath>
#include <iomanip>
#include <new>
#include <sstream>

#include "common/cpu_device/environment.hpp"
#include "common/kernel/error.hpp"

namespace ladder {
static constexpr int CALLS = 10;
static constexpr int NAME_WIDTH = 26, TIME_WIDTH = 12, RATIO_WIDTH = 8;

static double seconds_at(const std::string& what, const std::string& unit, double count, double ceiling) {
  if (!(count >= 0) || std::isinf(count))  // the negation also catches NaN
    throw InvalidArgument("predict: the " + unit + " of " + what + " are " + significant(count) +
                          ", must be a number and at least 0");
  if (!(ceiling > 0))
    throw InvalidArgument("predict: the ceiling of " + unit + " is " + significant(ceiling) + ", must be above 0");
  return count / ceiling;
}
static double bytes_seconds(const Prediction& p, const Ceilings& ceilings) {
  return seconds_at(p.what, "bytes", p.bytes.value, ceilings.bytes());
}
static double operations_seconds(const Prediction& p, const Ceilings& ceilings) {
  return seconds_at(p.what, "operations", p.operations.value, ceilings.operations);
}

double predicted_seconds(const Prediction& prediction, const Ceilings& ceilings) {
  const double bytes = bytes_seconds(prediction, ceilings), operations = operations_seconds(prediction, ceilings);
  return std::max(bytes, operations);
}

static std::string fixed(double value, int digits) {
  return (std::ostringstream() << std::fixed << std::setprecision(digits) << value).str();
}
static std::string microseconds(double seconds) { return fixed(seconds * 1e6, 1) + " us"; }
static std::string counted(const Count& count, const std::string& unit) {
  return count.formula + " = " + grouped(static_cast<int64_t>(count.value)) + " " + unit;
}

std::string prediction_table(const std::vector<Prediction>& predictions, const Ceilings& ceilings,
                             const std::vector<std::optional<double>>& measured) {
  std::ostringstream table;
  const bool any = std::ranges::any_of(measured, [](const auto& time) { return time.has_value(); });
  const auto row = [&](const std::string& what, const std::string& predicted, const std::string& time,
                       const std::string& ratio, const std::string& formula) {
    table << "  " << std::left << std::setw(NAME_WIDTH) << what << std::right << std::setw(TIME_WIDTH) << predicted;
    if (any) table << std::setw(TIME_WIDTH) << time << std::setw(RATIO_WIDTH) << ratio;
    table << "   " << formula << "\n";
  };
  row("kernel", "predicted", "measured", "ratio", "by formula");
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    const Prediction& p = predictions[i];
    const double predicted = predicted_seconds(p, ceilings);
    const double* const time = i < measured.size() && measured[i] ? &*measured[i] : nullptr;
    const bool by_operations = operations_seconds(p, ceilings) > bytes_seconds(p, ceilings);
    row(p.what, microseconds(predicted), time ? microseconds(*time) : "-",
        time && predicted > 0 ? fixed(*time / predicted, 2) : "-",
        by_operations ? counted(p.operations, "operations") : counted(p.bytes, "bytes"));
    if (by_operations && p.bytes.value > 0)
      table << "    its " << counted(p.bytes, "bytes") << " alone: " << microseconds(bytes_seconds(p, ceilings))
            << "\n";
  }
  return table.str();
}

// The median of a few calls, or nothing when the result is wrong, which is then a verdict.
static std::optional<double> measured_seconds(Report& report, const Prediction& prediction) {
  const Work work = prediction.make();
  const std::string complaint = run_and_check(work, work.run);
  if (complaint.empty()) return median_seconds(CALLS, work.run);
  report.verdict(prediction.what + " is right at this shape", false, complaint);
  return std::nullopt;
}

void predict_then_measure(Report& report, const std::string& shape, const std::vector<Prediction>& predictions) {
  report.paragraph(
      "Predict, then measure, at " + shape +
      ". Predicted are its bytes at the bandwidth of a copy, or its operations at the fp32 rate, whichever "
      "takes longer:");
  Ceilings ceilings = H200_CEILINGS;
  std::vector<std::optional<double>> measured;
  std::string why_not;
  if (!on_gpu()) {
    why_not = "what a CPU takes would say nothing about a GPU. On a GPU its own time stands beside this.";
  } else if (environment_switch("LADDER_PREDICT_ONLY")) {
    why_not = "LADDER_PREDICT_ONLY is set.";
  } else {
    try {
      const Ceilings here = measure_ceilings(CALLS);
      for (const Prediction& prediction : predictions) measured.push_back(measured_seconds(report, prediction));
      ceilings = here;
    } catch (const std::bad_alloc&) {
      why_not = "this GPU has too little memory free.";
      measured.clear();
    }
  }
  report.verbatim(prediction_table(predictions, ceilings, measured));
  const std::string rates = "copy " + grouped(std::llround(ceilings.bytes() * 1e-9)) + " GB/s, fp32 " +
                            fixed(ceilings.operations * 1e-12, 1) + " TFLOP/s";
  if (why_not.empty())
    report.paragraph("The ceilings were measured just now: " + rates + ". Measured: the median of " +
                     std::to_string(CALLS) + " calls, after one that was checked; ratio: measured / predicted.");
  else
    report.paragraph("The ceilings are those of an NVIDIA H200, " + rates + " (" + H200_CEILINGS_SOURCE +
                     "). Nothing was timed: " + why_not);
}

}  // namespace ladder
