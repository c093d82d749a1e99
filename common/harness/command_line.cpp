#include "common/harness/command_line.hpp"

#include <CLI/CLI.hpp>
#include <charconv>
#include <limits>

namespace ladder {
// `read` turns a text into a value, or into nothing when that is not `allowed`.
template <class Value, class Read>
static void add_option(CLI::App& app, const std::string& option, Value& value, const std::string& help,
                       const std::string& allowed, Read read, const char* type = "VALUE") {
  const auto store = [=, &value](const CLI::results_t& texts) {
    const std::optional<Value> given = read(texts[0]);
    if (!given) throw CLI::ValidationError(option + " is \"" + texts[0] + "\", must be " + allowed);
    value = *given;
    return true;
  };
  const std::string fallback = (std::ostringstream() << value).str();
  app.add_option(option, store, help + ": " + allowed + (fallback.empty() ? "" : ", default " + fallback))
      ->type_name(type);
}

// Reads numbers itself, as CLI11 also takes octal, hexadecimal and "nan".
template <class Number>
static void add_number(CLI::App& app, const char* option, Number& value, const char* help, const std::string& kind,
                       Number lowest, Number highest) {
  const std::string allowed = (std::ostringstream() << kind << " from " << lowest << " to " << highest).str();
  add_option(app, option, value, help, allowed, [=](const std::string& text) {
    Number number{};
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    const bool fits = error == std::errc() && stop == end && number >= lowest && number <= highest;
    return fits ? std::optional(number) : std::nullopt;
  });
}

CommandLine::CommandLine(const std::string& name, const std::string& summary)
    : name_(name), app_(std::make_unique<CLI::App>(summary, name)) {}
CommandLine::~CommandLine() = default;
void CommandLine::integer(const char* option, int64_t& value, const char* help, const char* unit, int64_t lowest,
                          int64_t highest) {
  add_number(*app_, option, value, help, std::string("an integer number of ") + unit, lowest, highest);
}
void CommandLine::seed(const char* option, uint64_t& value, const char* help) {
  add_number(*app_, option, value, help, "an integer", uint64_t{0}, std::numeric_limits<uint64_t>::max());
}
void CommandLine::real(const char* option, double& value, const char* help, double lowest, double highest) {
  add_number(*app_, option, value, help, "a number", lowest, highest);
}
void CommandLine::flag(const char* option, bool& value, const char* help) { app_->add_flag(option, value, help); }
void CommandLine::choice(const char* option, std::string& value, const char* help,
                         const std::vector<std::string>& choices) {
  add_option(*app_, option, value, help, "one of " + CLI::detail::join(choices, ", "), [=](const std::string& text) {
    return std::count(choices.begin(), choices.end(), text) > 0 ? std::optional(text) : std::nullopt;
  });
}
void CommandLine::text(const char* option, std::string& value, const char* help, const char* allowed,
                       const char* kind) {
  add_option(
      *app_, option, value, help, allowed,
      [](const std::string& text) { return text.empty() ? std::nullopt : std::optional(text); }, kind);
}

std::optional<int> CommandLine::parse(int argc, const char* const* argv) {
  try {
    app_->parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app_->exit(error);  // prints the help
    print_error(name_, error.what());
    return 2;
  }
}

void print_error(const std::string& name, const std::string& text) {
  std::istringstream lines(text);
  std::string message = name + ": error", separator = ": ";
  for (std::string line; std::getline(lines, line); separator = "; ") message += separator + line;
  std::cerr << message + "\n";
}
}  // namespace ladder
