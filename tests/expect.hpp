// Expectations that all tests share.
#pragma once

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <bit>
#include <cstdint>
#include <exception>
#include <string>

#include "common/harness/buffer.hpp"
#include "common/kernel/error.hpp"

/// The text of the Error that `body` throws; a text that matches nothing when it throws none.
template <class Error, class Body>
std::string message_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "<nothing was thrown>";
}

/// A launcher's refusal, to the letter.
#define CHECK_REFUSED(call, text) CHECK(message_of<ladder::InvalidArgument>([&] { call; }) == (text))

/// A RapidCheck property; its counterexample is printed when it fails.
#define CHECK_PROPERTY(...) CHECK(rc::check(__VA_ARGS__))

/// True when every cell still holds the poison of a fresh buffer.
inline bool untouched(const ladder::Buffer<float>& buffer) {
  for (float value : buffer.download())
    if (std::bit_cast<uint32_t>(value) != 0xffffffffu) return false;
  return true;
}
