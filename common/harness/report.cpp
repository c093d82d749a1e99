#include "common/harness/report.hpp"

#include <iomanip>
#include <sstream>
#include <utility>

namespace ladder {
static constexpr std::size_t PAGE_WIDTH = 100;
static constexpr int CLAIM_WIDTH = 46, LABEL_WIDTH = 24, BYTES_WIDTH = 20;

// Breaks `text` between words. Each line starts with `indent`.
static std::string wrapped(const std::string& text, const std::string& indent = "") {
  std::istringstream words(text);
  std::string page, line;
  for (std::string word; words >> word;) {
    if (!line.empty() && line.size() + 1 + word.size() > PAGE_WIDTH) page += std::exchange(line, "") + "\n";
    line += (line.empty() ? indent : " ") + word;
  }
  return page + line + "\n";
}

std::string grouped(int64_t value) {
  std::string text = std::to_string(value);
  const std::size_t sign = value < 0 ? 1 : 0;
  for (std::size_t end = text.size(); end > sign + 3;) text.insert(end -= 3, ",");
  return text;
}

std::string significant(double value, int digits) {
  return (std::ostringstream() << std::setprecision(digits) << value).str();
}

void Report::paragraph(const std::string& text) { out_ << "\n" << wrapped(text); }

void Report::quote(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) out_ << "    | " << line << "\n";
}

void Report::value(const std::string& label, const std::string& value, const std::string& unit) {
  out_ << "  " << std::left << std::setw(LABEL_WIDTH) << label << "  "
       << value + (unit.empty() ? "" : " ") + unit + "\n";
}

void Report::verdict(const std::string& claim, bool holds, const std::string& detail, bool expected) {
  std::ostringstream line;
  line << std::left << std::setw(CLAIM_WIDTH) << claim + "?" << (holds ? "  True" : "  False");
  const std::string gap(detail.empty() ? 0 : holds ? 4 : 3, ' ');
  const bool fits = line.str().size() + gap.size() + detail.size() <= PAGE_WIDTH;
  out_ << line.str() << (fits ? gap + detail + "\n" : "\n" + wrapped(detail, "    "));
  if (holds != expected) out_ << "*** UNEXPECTED: the ladder says " << (expected ? "True" : "False") << " here ***\n";
  as_expected_ = as_expected_ && holds == expected;
}

void Report::traffic(const Launches& launches) {
  const bool counted = !launches.traffic.empty();
  value("kernels launched", grouped(launches.kernels));
  value("bytes moved", counted ? grouped(launches.bytes()) + " (counted by the device)" : "not counted by this device");
  const auto row = [&](const std::string& buffer, const std::string& read, const std::string& written) {
    out_ << "    " << std::left << std::setw(LABEL_WIDTH) << buffer << std::right << std::setw(BYTES_WIDTH) << read
         << std::setw(BYTES_WIDTH) << written << "\n";
  };
  if (counted) row("buffer", "bytes read", "bytes written");
  for (const Traffic& t : launches.traffic) row(t.buffer, grouped(t.bytes_read), grouped(t.bytes_written));
}
}  // namespace ladder
