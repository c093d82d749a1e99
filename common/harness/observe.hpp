// --order, --counters and --picture: what every rung's program can be asked for, and only the CPU device can answer.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "common/cpu_device/recording.hpp"
#include "common/harness/command_line.hpp"
#include "common/harness/picture.hpp"

namespace ladder {
/// The three options. A device that cannot follow one refuses it before anything runs.
struct ObserveOptions {
  std::string order;      ///< In the words of try_set_order(); empty: as the device is set.
  std::string picture;    ///< The file to write; empty: none.
  bool counters = false;  ///< Whether to print tables.

  /// Adds them to a program's options.
  void add_to(CommandLine& command_line);
  /// Sets the order, and what observe() records from here on. Throws InvalidArgument, naming the option.
  void apply() const;
};

/// Runs `body`. Where --counters or --picture was given its launches are recorded, with the shapes of these tensors;
/// what an earlier call recorded is forgotten: the last one counts.
void observe(std::vector<Tensor> tensors, const std::function<void()>& body);

/// Prints the counters of all launches that were observed, and writes a picture of the last of them. Throws
/// InvalidArgument when there is none, or when the file cannot be written.
void report_observed(std::ostream& out);

/// The tables of --counters, at most 100 columns wide.
void print_counters(std::ostream& out, const cpu_device::LaunchRecord& launch);
}  // namespace ladder
