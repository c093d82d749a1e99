// What the environment tells a program: read here and nowhere else, so that no value is passed over or replaced.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "common/kernel/error.hpp"

namespace ladder {

/// What `read` makes of the variable's text, or nothing where the variable is not set. `read` takes a std::string_view
/// and gives a std::optional, empty for a text that it does not understand: that throws InvalidArgument, which names
/// the variable, its text and what it must be.
template <class Read>
auto from_environment(const char* variable, const std::string& must_be, Read&& read)
    -> decltype(read(std::string_view{})) {
  const char* text = std::getenv(variable);
  if (!text) return std::nullopt;
  const auto value = read(std::string_view(text));
  if (!value) throw InvalidArgument(std::string(variable) + " is '" + text + "', must be " + must_be);
  return value;
}

/// The number that the whole of `text` spells in decimal digits, or nothing.
inline std::optional<uint64_t> number_of(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// A switch: off when the variable is 0 or not set, on when it is 1.
inline bool environment_switch(const char* variable) {
  const auto read = [](std::string_view text) -> std::optional<bool> {
    if (text != "0" && text != "1") return std::nullopt;
    return text == "1";
  };
  return from_environment(variable, "0 or 1", read).value_or(false);
}

}  // namespace ladder
