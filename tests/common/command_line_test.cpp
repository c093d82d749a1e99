// Options: what is taken, and that everything else is refused in one line with the option, the value and the limits.
#include "common/harness/command_line.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <iostream>
#include <limits>
#include <sstream>

#include "tests/expect.hpp"

using namespace ladder;

namespace {

constexpr int64_t LARGEST = std::numeric_limits<int64_t>::max();

struct Outcome {
  std::optional<int> status;
  int64_t rows = 1024, seed = 42;
  uint64_t key = 7;
  std::string file{};
  double p = 0.1;
  bool wall = false;
  std::string model = "sm_90", out, err;
};

Outcome parse(std::vector<const char*> arguments) {
  Outcome outcome;
  CommandLine command_line("02_relu_dropout", "ReLU and dropout in one trip through memory.");
  command_line.integer("--rows", outcome.rows, "height of the input", "rows", 0, 1'000'000);
  command_line.integer("--seed", outcome.seed, "seed of the generator", "words", -LARGEST - 1, LARGEST);
  command_line.seed("--key", outcome.key, "seed of 64 bits");
  command_line.text("--file", outcome.file, "draw it", "a file to write", "FILE");
  command_line.real("--p", outcome.p, "probability of dropping", 0, 1);
  command_line.flag("--wall", outcome.wall, "go on until shared memory is full");
  command_line.choice("--model", outcome.model, "device model", {"sm_75", "sm_90"});
  arguments.insert(arguments.begin(), "program");
  std::ostringstream out, err;
  std::streambuf* const out_before = std::cout.rdbuf(out.rdbuf());
  std::streambuf* const err_before = std::cerr.rdbuf(err.rdbuf());
  outcome.status = command_line.parse(static_cast<int>(arguments.size()), arguments.data());
  std::cout.rdbuf(out_before);
  std::cerr.rdbuf(err_before);
  outcome.out = judged(out.str());
  outcome.err = judged(err.str());
  return outcome;
}

// Refused: status 2, nothing on stdout, and this text in one line.
void check_refused(std::vector<const char*> arguments, const std::string& text) {
  const Outcome outcome = parse(arguments);
  CHECK(outcome.status == 2);
  CHECK(outcome.out == "");
  CHECK(outcome.err == "02_relu_dropout: error: " + text + "\n");
}

}  // namespace

TEST_CASE("without options the defaults stay, and the program runs") {
  const Outcome outcome = parse({});
  CHECK_FALSE(outcome.status);
  CHECK(outcome.rows == exactly(1024));
  CHECK(outcome.p == exactly(0.1));
  CHECK_FALSE(outcome.wall);
  CHECK(outcome.model == "sm_90");
  CHECK(outcome.out == "");
  CHECK(outcome.err == "");
}

TEST_CASE("options in any order, with a space or =") {
  const Outcome outcome = parse({"--wall", "--p=0.25", "--rows", "7", "--model", "sm_75", "--seed=-3"});
  CHECK_FALSE(outcome.status);
  CHECK(outcome.rows == exactly(7));
  CHECK(outcome.seed == exactly(-3));
  CHECK(outcome.p == exactly(0.25));
  CHECK(outcome.wall);
  CHECK(outcome.model == "sm_75");
}

TEST_CASE("both ends of a range are inside") {
  CHECK(parse({"--rows", "0"}).rows == exactly(0));
  CHECK(parse({"--rows", "1000000"}).rows == exactly(1'000'000));
  CHECK(parse({"--p", "0"}).p == exactly(0));
  CHECK(parse({"--p", "1"}).p == exactly(1));
  CHECK(parse({"--seed", "9223372036854775807"}).seed == exactly(LARGEST));
  CHECK(parse({"--seed", "-9223372036854775808"}).seed == exactly(-LARGEST - 1));
}

TEST_CASE("numbers are decimal: a leading 0 is no octal, reals take exponents") {
  CHECK(parse({"--rows", "010"}).rows == exactly(10));
  CHECK(parse({"--p", "1e-3"}).p == exactly(1e-3));
  CHECK(parse({"--p", ".5"}).p == exactly(0.5));
  const Outcome negative_zero = parse({"--p", "-0.0"});  // BC-015: taken as 0
  CHECK_FALSE(negative_zero.status);
  CHECK(negative_zero.p == exactly(0));
}

TEST_CASE("help prints every option with its unit, range and default, and exits with 0") {
  for (const char* option : {"--help", "-h"}) {
    const Outcome outcome = parse({"--rows", "5", option});
    CHECK(outcome.status == 0);
    CHECK(outcome.err == "");
    for (const char* text :
         {"02_relu_dropout", "ReLU and dropout in one trip through memory.",
          "height of the input: an integer number of rows from 0 to 1000000, default 1024",
          "probability of dropping: a number from 0 to 1, default 0.1",
          "device model: one of sm_75, sm_90, default sm_90", "--wall", "go on until shared memory is full"}) {
      CAPTURE(text);
      CHECK(outcome.out.find(text) != std::string::npos);
    }
  }
}

TEST_CASE("an integer that is malformed, out of range or too long is refused") {
  for (const std::string value : {"12abc", "1e3", "", " 1", "1 ", "+5", "0x10", "1.5", "nan", "--", "-1", "1000001",
                                  "1,000", "[1]", "99999999999999999999999", "--wall"}) {
    CAPTURE(value);
    check_refused({"--rows", value.c_str()},
                  "--rows is \"" + value + "\", must be an integer number of rows from 0 to 1000000");
  }
  check_refused({"--seed", "9223372036854775808"},
                "--seed is \"9223372036854775808\", must be an integer number of words from -9223372036854775808 to "
                "9223372036854775807");
}

TEST_CASE("BC-015: a probability that is malformed, NaN, infinite or out of range is refused") {
  for (const std::string value : {"-0.1", "-10", "1.0000001", "2", "nan", "NaN", "-nan", "inf", "-inf", "infinity",
                                  "1e999", "-1e999", "1e-999", "0.5x", "", "0,5", "0x1p-1"}) {
    CAPTURE(value);
    check_refused({"--p", value.c_str()}, "--p is \"" + value + "\", must be a number from 0 to 1");
  }
}

TEST_CASE("a choice that is not offered is refused") {
  for (const std::string value : {"sm_80", "SM_90", "sm_9", "sm_75,sm_90", ""}) {
    CAPTURE(value);
    check_refused({"--model", value.c_str()}, "--model is \"" + value + "\", must be one of sm_75, sm_90");
  }
}

TEST_CASE("unknown, repeated and incomplete options are refused, each by name") {
  check_refused({"--what"}, "The following argument was not expected: --what");
  check_refused({"--what=3"}, "The following argument was not expected: --what=3");
  check_refused({"7"}, "The following argument was not expected: 7");
  check_refused({"--wall", "1"}, "The following argument was not expected: 1");
  check_refused({"--rows"}, "--rows: 1 required VALUE missing");
  check_refused({"--rows="}, "--rows: 1 required VALUE missing");
  for (std::vector<const char*> arguments :
       {std::vector{"--rows", "1", "--rows", "2"}, {"--row", "1"}, {"-r", "1"}, {"--wall=perhaps"}}) {
    const Outcome outcome = parse(arguments);
    CHECK(outcome.status == 2);
    CHECK(outcome.out == "");
    CHECK(outcome.err.find(std::string(arguments[0]).substr(0, 5)) != std::string::npos);
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  }
}

TEST_CASE("a refusal stays one line even when the value holds line breaks") {
  check_refused({"--rows", "1\n2"}, "--rows is \"1; 2\", must be an integer number of rows from 0 to 1000000");
}

TEST_CASE("after any refusal the values are the defaults or what was rightly given before") {
  CHECK(parse({"--rows", "5", "--p", "7"}).p == exactly(0.1));
  CHECK(parse({"--rows", "12abc"}).rows == exactly(1024));
}

TEST_CASE("an integer is taken exactly when it is in range") {
  CHECK_PROPERTY([](int64_t value) {
    const std::string text = std::to_string(value);
    const Outcome seed = parse({"--seed", text.c_str()}), rows = parse({"--rows", text.c_str()});
    RC_ASSERT(!seed.status && seed.seed == value);
    const bool inside = value >= 0 && value <= 1'000'000;
    RC_ASSERT(rows.status.has_value() != inside);
    RC_ASSERT(rows.rows == exactly(inside ? value : 1024));
  });
}

TEST_CASE("a seed has 64 bits, and an option of a file asks for a file") {
  CHECK(parse({"--key", "18446744073709551615"}).key == exactly(std::numeric_limits<uint64_t>::max()));
  check_refused({"--key", "18446744073709551616"},
                "--key is \"18446744073709551616\", must be an integer from 0 to 18446744073709551615");
  check_refused({"--key=-1"}, "--key is \"-1\", must be an integer from 0 to 18446744073709551615");
  check_refused({"--file"}, "--file: 1 required FILE missing");
}
