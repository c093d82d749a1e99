// The check before the clock must be able to fail: where nothing was written, and where the value is wrong.
#include "common/harness/measure.hpp"
#include "tests/expect.hpp"

using namespace ladder;

namespace {

std::vector<double> ramp(int64_t first, int64_t count) {
  std::vector<double> values;
  for (int64_t i = first; i < first + count; ++i) values.push_back(1 + static_cast<double>(i));
  return values;
}

std::vector<float> floats(int64_t count) {
  const std::vector<double> values = ramp(0, count);
  return {values.begin(), values.end()};
}

std::string complaint(const Buffer<float>& buffer, int64_t window) {
  return judged(wrong(buffer, window, {.relative = 1e-7}, ramp));
}

}  // namespace

TEST_CASE("measure: right values pass, in one window and in many") {
  const Buffer<float> buffer("buffer", floats(1000));
  for (int64_t window : {1, 10, 1000}) CHECK(complaint(buffer, window) == "");
}

TEST_CASE("measure: a cell that nobody wrote is found wherever it is") {
  for (int64_t hole : {0, 499, 999}) {
    std::vector<float> values = floats(1000);
    values[static_cast<std::size_t>(hole)] = std::bit_cast<float>(0xffffffffu);
    CHECK(complaint(Buffer<float>("buffer", values), 1) == "1 cells were never written");
  }
  const Buffer<float> fresh("fresh", 1000);
  if (device_checks())  // the device itself knows that nobody wrote there
    CHECK(message_of<KernelFault>([&] { complaint(fresh, 10); }).starts_with("uninitialised read of buffer 'fresh'"));
  else
    CHECK(complaint(fresh, 10) == "1000 cells were never written");
}

TEST_CASE("measure: a wrong value in the first or the last window, or in the only one, is found") {
  for (int64_t at : {0, 999}) {
    std::vector<float> values = floats(1000);
    values[static_cast<std::size_t>(at)] += 1;
    for (int64_t window : {1, 10, 1000})
      CHECK(complaint(Buffer<float>("buffer", values), window)
                .starts_with("from element " + std::to_string(exactly(at / window * window))));
  }
}

TEST_CASE("measure: windows that do not fit are no check") {
  const Buffer<float> buffer("buffer", floats(1000));
  for (int64_t window : {0, 3, 2000}) CHECK(complaint(buffer, window) == "the window does not divide the output");
}

TEST_CASE("measure: parts and inputs are what they say") {
  const Buffer<float> buffer("buffer", floats(1000));
  CHECK(part(buffer, 10, 3) == exactly(std::vector<float>{11, 12, 13}));
  const Buffer<float> long_one = normal_buffer("long", 1'000'010, 7);
  CHECK(part(long_one, 1'000'003, 7) == exactly(part(long_one, 0, 7)));  // they start over there
}
