// "Predict, then measure": what a kernel must move and compute, by formula; the time that takes at the ceiling; and on
// a GPU the time that it took.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/harness/measure.hpp"
#include "common/harness/report.hpp"

namespace ladder {

/// A count and where it comes from: {12.0 * n, "12 n"}.
struct Count {
  double value = 0;          ///< How many.
  std::string formula = {};  ///< From what, in words.
};

/// One kernel, or several that one call launches, at one shape.
struct Prediction {
  std::string what;                 ///< Its name in the table.
  Count bytes;                      ///< Read and written.
  Count operations = {};            ///< Floating-point ones; a multiply-add is two.
  std::function<Work()> make = {};  ///< What to time on a GPU, with its buffers; called on no other device.
};

/// Bytes at the copy ceiling, or operations at the fp32 ceiling, whichever takes longer; 0 when there is nothing to do.
/// A kernel that reads more than it writes can pass a copy by a few percent, as rung 01's vectorized one did.
/// Throws InvalidArgument when a count is negative or no number, or a ceiling is not above 0.
double predicted_seconds(const Prediction& prediction, const Ceilings& ceilings);

/// The table, a line for each kernel: its name, the predicted time, where `measured` has one for it the measured time
/// and the ratio of the two, and the formula. A line below has the bytes of a kernel that operations hold up.
std::string prediction_table(const std::vector<Prediction>& predictions, const Ceilings& ceilings,
                             const std::vector<std::optional<double>>& measured);

/// The section of a rung's page. On a GPU: ceilings measured now, each kernel checked and then timed; a wrong result is
/// a verdict of the report's. On the CPU device, and where LADDER_PREDICT_ONLY is set in the environment (under a
/// sanitizer a time means nothing, and takes long), only what an H200 could do. `shape` says in words for which shape.
void predict_then_measure(Report& report, const std::string& shape, const std::vector<Prediction>& predictions);

}  // namespace ladder
