// The options of a rung's program. A wrong one is refused in one line, before anything runs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace ladder {
/// A variable holds its default when its option is added, and must outlive parse(). Ranges include both ends.
class CommandLine {
 public:
  /// For the program `name`, of which --help says `summary`.
  CommandLine(const std::string& name, const std::string& summary);
  ~CommandLine();
  /// The program, as messages name it.
  const std::string& name() const { return name_; }
  /// An integer from `lowest` to `highest`; `unit` says in --help what it counts.
  void integer(const char* option, int64_t& value, const char* help, const char* unit, int64_t lowest, int64_t highest);
  /// A seed: any number of 64 bits.
  void seed(const char* option, uint64_t& value, const char* help);
  /// A number from `lowest` to `highest`. NaN is refused.
  void real(const char* option, double& value, const char* help, double lowest, double highest);
  /// Takes no value: true when given.
  void flag(const char* option, bool& value, const char* help);
  /// One of `choices`.
  void choice(const char* option, std::string& value, const char* help, const std::vector<std::string>& choices);
  /// Any text but an empty one; `allowed` says in words what it must be, and `kind` in a word: "FILE".
  void text(const char* option, std::string& value, const char* help, const char* allowed, const char* kind);
  /// The status to exit with, or nothing when the program should run: 0 after --help; 2 after one line on stderr that
  /// names the option, the value and what it must be.
  std::optional<int> parse(int argc, const char* const* argv);

 private:
  std::string name_;
  std::unique_ptr<CLI::App> app_;
};

/// Prints "NAME: error: TEXT" on stderr, in one line: line breaks in the text become "; ".
void print_error(const std::string& name, const std::string& text);
}  // namespace ladder
