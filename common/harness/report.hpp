// What a rung prints: the same page for each, at most 100 columns wide.
#pragma once

#include <ostream>
#include <string>

#include "common/harness/device.hpp"

namespace ladder {
/// An integer with its digits in threes: 1048576 is "1,048,576".
std::string grouped(int64_t value);
/// A number of so many significant digits: 0.009782 is "0.00978", and 0.0000119 is "1.19e-05".
std::string significant(double value, int digits = 3);

/// Prints a rung's page and remembers whether the rung behaved as the ladder says.
class Report {
 public:
  /// Begins the page with its title and the device that it is about.
  Report(std::ostream& out, const std::string& title, const std::string& device) : out_(out) {
    out_ << title << ", on " << device << "\n";
  }

  /// Text, broken into lines.
  void paragraph(const std::string& text);
  /// Somebody else's words, line by line as they are.
  void quote(const std::string& text);
  /// Lines that are laid out already.
  void verbatim(const std::string& lines) { out_ << lines; }
  /// A line with a label, a value and its unit.
  void value(const std::string& label, const std::string& value, const std::string& unit = "");
  /// "Claim?  True   detail". `expected` is what the ladder says: false where a rung is wrong on purpose. The other
  /// answer is printed loudly and makes exit_status() 1.
  void verdict(const std::string& claim, bool holds, const std::string& detail, bool expected = true);
  /// The bytes of each buffer, as the device counted them.
  void traffic(const Launches& launches);
  /// What the reader should take along, at the end of the page.
  void lesson(const std::string& text) { paragraph("Lesson: " + text); }
  /// 0 when every verdict was the expected one, else 1.
  int exit_status() const { return as_expected_ ? 0 : 1; }

 private:
  std::ostream& out_;
  bool as_expected_ = true;
};
}  // namespace ladder
