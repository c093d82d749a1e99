#include "common/harness/measure.hpp"

#include "common/harness/inputs.hpp"

namespace ladder {

std::string run_and_check(const Work& work, const std::function<void()>& body) {
  body();
  device_synchronize();
  return work.wrong();
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values.at(static_cast<std::size_t>(static_cast<double>(values.size() - 1) * share));
}

double median_seconds(int calls, const std::function<void()>& body) {
  body();
  std::vector<double> times;
  for (int call = 0; call < calls; ++call) times.push_back(seconds(body));
  return quantile(times, 0.5);
}

Buffer<float> normal_buffer(const std::string& name, int64_t n, uint64_t seed, double mean) {
  constexpr int64_t PERIOD = 1'000'003;
  const std::vector<float> values = normal(std::min(n, PERIOD), seed, mean);
  Buffer<float> buffer(name, n);
  for (int64_t first = 0; first < n; first += PERIOD)
    copy_to_device(buffer.data() + first, values.data(),
                   static_cast<std::size_t>(std::min(PERIOD, n - first)) * sizeof(float));
  return buffer;
}

std::vector<float> part(const Buffer<float>& buffer, int64_t first, int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  copy_from_device(values.data(), buffer.data() + first, static_cast<std::size_t>(count) * sizeof(float));
  return values;
}

std::string wrong(const Buffer<float>& output, int64_t window, Tolerance tolerance,
                  const std::function<std::vector<double>(int64_t first, int64_t count)>& expected) {
  if (window < 1 || output.size() % window != 0) return "the window does not divide the output";
  if (const int64_t unwritten = count_unwritten(output); unwritten > 0)
    return std::to_string(unwritten) + " cells were never written";
  if (!output.guards_intact()) return "somebody wrote outside the output";
  const int64_t windows = output.size() / window;
  const int64_t compared = std::min<int64_t>(windows, 64);
  for (int64_t i = 0; i < compared; ++i) {
    const int64_t first = (compared == 1 ? 0 : i * (windows - 1) / (compared - 1)) * window;
    const Comparison difference = compare(part(output, first, window), expected(first, window), {window}, tolerance);
    if (!difference.matches()) return "from element " + std::to_string(first) + " on: " + difference.describe();
  }
  return "";
}

}  // namespace ladder
