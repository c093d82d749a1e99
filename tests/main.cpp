// The main of every test program. Without a device there is nothing to test, and that is not a pass: 77 is "skipped".
#define DOCTEST_CONFIG_IMPLEMENT
#include "tests/main.hpp"

#include <doctest/doctest.h>

#include <cstdio>

#include "common/cpu_device/environment.hpp"
#include "common/harness/device.hpp"
#include "tests/shift.hpp"

bool needs_device_checks = false;

int main(int argc, char** argv) try {
  if (const auto reason = ladder::device_missing()) {
    std::printf("skipped: %s\n", reason->c_str());
    return 77;
  }
  if (needs_device_checks && !ladder::device_checks()) {
    std::printf("skipped: the device of this build does not see accesses\n");
    return 77;
  }
  ladder::check_everything();
  if (ladder::environment_switch("LADDER_SHIFT_REFERENCES")) return run_shifted();
  const int status = doctest::Context(argc, argv).run();
  std::printf("%lld kernels launched\n", static_cast<long long>(ladder::total_launches()));
  return status;
} catch (const ladder::InvalidArgument& error) {  // of the environment
  std::fprintf(stderr, "error: %s\n", error.what());
  return 2;
}
