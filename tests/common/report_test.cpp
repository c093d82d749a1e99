// The report's page to the letter, its exit status, and the frame of a main around it.
#include "common/harness/report.hpp"

#include <doctest/doctest.h>

#include <iostream>
#include <limits>
#include <new>
#include <sstream>
#include <stdexcept>

#include "common/harness/program.hpp"
#include "tests/expect.hpp"

using namespace ladder;

static const std::string TITLE = "title, on device\n";

// What `body` prints below the title.
template <class Body>
static std::string printed(Body&& body) {
  std::ostringstream out;
  Report report(out, "title", "device");
  body(report);
  REQUIRE(out.str().starts_with(TITLE));
  return judged(out.str().substr(TITLE.size()));
}

TEST_CASE("numbers") {
  CHECK(judged(grouped(0)) == "0");
  CHECK(judged(grouped(999)) == "999");
  CHECK(judged(grouped(1000)) == "1,000");
  CHECK(judged(grouped(1048576)) == "1,048,576");
  CHECK(judged(grouped(-999)) == "-999");
  CHECK(judged(grouped(-123456)) == "-123,456");
  CHECK(judged(grouped(std::numeric_limits<int64_t>::max())) == "9,223,372,036,854,775,807");
  CHECK(judged(grouped(std::numeric_limits<int64_t>::min())) == "-9,223,372,036,854,775,808");
  CHECK(judged(significant(0.0097812)) == "0.00978");
  CHECK(judged(significant(1.19209e-7)) == "1.19e-07");
  CHECK(judged(significant(0.125, 2)) == "0.12");
  CHECK(judged(significant(0)) == "0");
  CHECK(judged(significant(std::numeric_limits<double>::infinity())) == "inf");
}

TEST_CASE("any number without its commas is the number") {
  CHECK_PROPERTY([](int64_t value) {
    std::string text = grouped(value);
    for (std::size_t i = text.size(), digits = 0; i-- > 0; ++digits)
      RC_ASSERT((text[i] == ',') == (digits % 4 == 3 && text[i] != '-'));
    std::erase(text, ',');
    RC_ASSERT(judged(text) == std::to_string(value));
  });
}

TEST_CASE("a verdict reads as in the article, its columns aligned") {
  CHECK(printed([](Report& report) {
          report.verdict("Buggy softmax matches reference (n_cols=2000)", false, "max abs diff 0.00978", false);
          report.verdict("Buggy softmax matches reference (n_cols=5)", true, "max abs diff 1.5e-08");
          report.verdict("Rows add up to 1", true, "");
        }) ==
        "Buggy softmax matches reference (n_cols=2000)?  False   max abs diff 0.00978\n"
        "Buggy softmax matches reference (n_cols=5)?     True    max abs diff 1.5e-08\n"
        "Rows add up to 1?                               True\n");
}

TEST_CASE("what the ladder does not say is loud and fails the program; what it says does not") {
  for (bool holds : {false, true})
    for (bool expected : {false, true}) {
      std::ostringstream out;
      Report report(out, "title", "device");
      CHECK(report.exit_status() == 0);
      report.verdict("claim", holds, "detail", expected);
      CHECK(report.exit_status() == (holds == expected ? 0 : 1));
      CHECK((out.str().find("UNEXPECTED") != std::string::npos) == (holds != expected));
      report.verdict("claim", true, "a later success does not make up for it", true);
      CHECK(report.exit_status() == (holds == expected ? 0 : 1));
    }
  CHECK(printed([](Report& report) {
          report.verdict("claim", true, "", false);
        }).ends_with("\n*** UNEXPECTED: the ladder says False here ***\n"));
  CHECK(printed([](Report& report) {
          report.verdict("claim", false, "");
        }).ends_with("\n*** UNEXPECTED: the ladder says True here ***\n"));
}

TEST_CASE("values stand in a column, with their units") {
  CHECK(printed([](Report& report) {
          report.value("rows", "1,024");
          report.value("bandwidth", "4,242", "GB/s");
        }) ==
        "  rows                      1,024\n"
        "  bandwidth                 4,242 GB/s\n");
}

TEST_CASE("paragraphs and the lesson stand apart") {
  CHECK(printed([](Report& report) {
          report.paragraph("One  thing,\n  then another.");
          report.lesson("Test the shape you did not think of.");
        }) == "\nOne thing, then another.\n\nLesson: Test the shape you did not think of.\n");
}

TEST_CASE("a quotation keeps its lines") {
  CHECK(printed([](Report& report) { report.quote("out of bounds\n  block 3"); }) ==
        "    | out of bounds\n    |   block 3\n");
}

TEST_CASE("no line is wider than 100 columns, and no word is lost") {
  CHECK_PROPERTY([] {
    const auto lengths = *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(1, 40));
    std::string text;
    for (std::size_t length : lengths) text += (text.empty() ? "" : " ") + std::string(length, 'w');
    const std::string page = printed([&](Report& report) {
      report.paragraph(text);
      report.verdict("claim", true, text);
    });
    std::istringstream lines(page), words(page);
    for (std::string line; std::getline(lines, line);) {
      RC_ASSERT(line.size() <= 100);
      RC_ASSERT(line.empty() || line.back() != ' ');
    }
    std::size_t found = 0;
    for (std::string word; words >> word;) found += word[0] == 'w';
    RC_ASSERT(found == 2 * lengths.size());
  });
  const std::string half(49, 'w');
  CHECK(printed([&](Report& report) { report.paragraph(half + " " + half + "w"); }) ==
        "\n" + half + " " + half + "w\n");
  CHECK(printed([&](Report& report) { report.paragraph(half + " " + half + "ww"); }) ==
        "\n" + half + "\n" + half + "ww\n");
}

TEST_CASE("traffic: what each buffer moved, as the device counted it") {
  const Launches launches{2, {{"x", 8'000'000, 0}, {"out", 4, 8'000'000}}};
  CHECK(printed([&](Report& report) { report.traffic(launches); }) ==
        "  kernels launched          2\n"
        "  bytes moved               16,000,004 (counted by the device)\n"
        "    buffer                            bytes read       bytes written\n"
        "    x                                  8,000,000                   0\n"
        "    out                                        4           8,000,000\n");
  CHECK(printed([](Report& report) {
          report.traffic({1, {}});
        }) ==
        "  kernels launched          1\n"
        "  bytes moved               not counted by this device\n");
}

// What `body` leaves on stderr.
template <class Body>
static std::string on_stderr(Body&& body) {
  std::ostringstream text;
  std::streambuf* const before = std::cerr.rdbuf(text.rdbuf());
  body();
  std::cerr.rdbuf(before);
  return judged(text.str());
}

TEST_CASE("a program returns what its body returns, and 2 with one line when the body throws") {
  const char* const argv[] = {"program"};
  const auto run = [&](auto body) {
    CommandLine command_line("03_softmax_buggy", "summary");
    return run_program(command_line, 1, argv, body);
  };
  for (int status : {0, 1}) CHECK(on_stderr([&] { CHECK(run([&] { return status; }) == status); }).empty());
  CHECK(on_stderr([&] { CHECK(run([]() -> int { throw KernelFault("out of bounds\nblock 3\n"); }) == 2); }) ==
        "03_softmax_buggy: error: out of bounds; block 3\n");
  CHECK(on_stderr([&] { CHECK(run([]() -> int { throw std::bad_alloc(); }) == 2); }) ==
        "03_softmax_buggy: error: std::bad_alloc\n");
}

TEST_CASE("a program with a wrong option, or asked for help, does not run") {
  bool ran = false;
  CommandLine command_line("01_vector_add", "summary");
  const char* const wrong[] = {"program", "--what"};
  CHECK(on_stderr([&] { CHECK(run_program(command_line, 2, wrong, [&] { return ran = true, 0; }) == 2); }) ==
        "01_vector_add: error: The following argument was not expected: --what\n");
  CHECK_FALSE(ran);
}
