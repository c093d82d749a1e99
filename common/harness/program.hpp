// The frame of a rung's main.
#pragma once

#include <cstdio>
#include <iostream>
#include <stdexcept>

#include "common/harness/command_line.hpp"
#include "common/harness/device.hpp"
#include "common/harness/observe.hpp"

namespace ladder {
/// `status`, once all that was printed has been written. Throws std::runtime_error where it could not be: a disk is
/// full, or the reader has gone.
inline int finished(int status) {
  std::cout.flush();
  if (std::fflush(stdout) != 0 || !std::cout) throw std::runtime_error("the output could not be written to its end");
  return status;
}

/// Parses the options, with --order, --counters and --picture added to them, then returns what `body` returns, a
/// Report's exit_status(). A missing device and whatever is thrown end in one line on stderr and status 2. --help needs
/// no device.
template <class Body>
int run_program(CommandLine& command_line, int argc, const char* const* argv, Body&& body) {
  try {
    ObserveOptions options;
    options.add_to(command_line);
    if (const auto status = command_line.parse(argc, argv)) return finished(*status);
    if (const auto reason = device_missing()) throw std::runtime_error(*reason);
    check_everything();
    options.apply();
    const int status = body();
    report_observed(std::cout);
    return finished(status);
  } catch (const std::exception& error) {
    print_error(command_line.name(), error.what());
    return 2;
  }
}
}  // namespace ladder
