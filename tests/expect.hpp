// Expectations that all tests share.
#pragma once

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <exception>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#ifdef LADDER_RAPIDCHECK
#include <rapidcheck.h>
#endif

#include "common/harness/buffer.hpp"
#include "common/harness/compare.hpp"
#include "common/kernel/error.hpp"
#include "tests/shift.hpp"

/// A number that a test expects to the last digit, such as a count: itself, or its neighbour when references are
/// shifted.
template <class Number>
Number exactly(Number expected) {
  ++ladder::reference_shift.compared;
  if (!ladder::reference_shift.on) return expected;
  if constexpr (std::is_integral_v<Number>)
    return static_cast<Number>(expected ^ 1);  // and not + 1, for the largest's sake
  else
    return std::isfinite(expected) ? std::nextafter(expected, std::numeric_limits<Number>::infinity()) : Number{0};
}
template <class Number>
std::vector<Number> exactly(std::vector<Number> expected) {
  for (Number& number : expected) number = exactly(number);
  return expected;
}

/// A text that a test is about to judge: itself, unless messages are shifted.
inline std::string judged(std::string text) { return messages_shifted ? "<shifted>" : text; }

/// The text of the Error that `body` throws; a text that matches nothing when it throws none.
template <class Error, class Body>
std::string message_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return judged(error.what());
  }
  return "<nothing was thrown>";
}

/// A launcher's refusal, to the letter.
#define CHECK_REFUSED(call, text) CHECK(message_of<ladder::InvalidArgument>([&] { call; }) == (text))

/// True when `actual` is no further than `tolerance` from `expected`. Never for a NaN.
inline bool within(double actual, double expected, double tolerance) {
  return std::abs(actual - ladder::shifted(expected, {.absolute = tolerance})) <= tolerance;
}

/// A RapidCheck property; its counterexample is printed when it fails. Without RapidCheck it is not compiled, and the
/// test case says so.
#ifdef LADDER_RAPIDCHECK
#define CHECK_PROPERTY(...) CHECK(rc::check(__VA_ARGS__))
#else
#define CHECK_PROPERTY(...) MESSAGE("skipped: a property, which needs RapidCheck")
#endif

/// All elements agree, bit by bit.
inline void check_same(const std::vector<float>& actual, const std::vector<float>& expected) {
  const ladder::Comparison difference = ladder::compare_bits(actual, expected, {std::ssize(expected)});
  CHECK_MESSAGE(difference.matches(), difference.describe());
}

/// True when every cell still holds the poison of a fresh buffer.
inline bool untouched(const ladder::Buffer<float>& buffer) {
  for (float value : buffer.download())
    if (std::bit_cast<uint32_t>(value) != 0xffffffffu) return false;
  return true;
}
