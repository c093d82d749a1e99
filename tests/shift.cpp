#include "tests/shift.hpp"

#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "common/harness/compare.hpp"

bool messages_shifted = false;

namespace {

using Case = std::pair<std::string, std::string>;  // file below tests/, name
struct Outcome {
  bool failed = false, compared = false;  // compared: numbers, by means of compare.hpp
};
std::map<Case, Outcome> outcomes;
std::set<Case> skipped;

Case named(const doctest::TestCaseData& test) {
  const std::string file = test.m_file.c_str(), folder = "tests/";
  const auto start = file.rfind("/" + folder);  // nvcc gives the whole path, g++ what is below the repository
  return {file.substr(start == std::string::npos ? folder.size() : start + 1 + folder.size()), test.m_name};
}

// Notes what became of each test case, and prints nothing: nearly all fail.
class Notes : public doctest::IReporter {
 public:
  explicit Notes(const doctest::ContextOptions&) {}
  void test_case_start(const doctest::TestCaseData& test) override {
    current_ = named(test);
    ladder::reference_shift.compared = 0;
  }
  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    outcomes[current_] = {stats.failure_flags != 0, ladder::reference_shift.compared != 0};
  }
  void test_case_skipped(const doctest::TestCaseData& test) override { skipped.insert(named(test)); }
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}

 private:
  Case current_;
};

// tests/shift_exempt.txt: "# reason", then "file" lines, and below each file the names of its cases, indented.
std::set<Case> read_exempt() {
  std::ifstream list("tests/shift_exempt.txt");
  std::set<Case> exempt;
  std::string file;
  for (std::string line; std::getline(list, line);) {
    if (line.empty() || line[0] == '#') continue;
    if (line[0] != ' ')
      file = line;
    else
      exempt.emplace(file, line.substr(line.find_first_not_of(' ')));
  }
  return exempt;
}

void run_cases(const std::string& excluded) {
  doctest::Context context;
  context.setOption("reporters", "notes");
  if (!excluded.empty()) context.setOption("test-case-exclude", excluded.c_str());
  context.run();
}

}  // namespace

REGISTER_REPORTER("notes", 0, Notes);

int run_shifted() {
  ladder::reference_shift.on = true;
  run_cases("");
  ladder::reference_shift.on = false;

  std::map<Case, Outcome> all = outcomes;
  std::string done;  // names that need no second run; a comma would end a name
  for (const auto& [test, outcome] : all) {
    if (!outcome.failed && !outcome.compared) continue;
    if (!done.empty()) done += ',';
    for (char c : test.second) done += c == ',' ? std::string("\\,") : std::string(1, c);
  }
  outcomes.clear();
  messages_shifted = true;
  run_cases(done);
  messages_shifted = false;
  for (const auto& [test, outcome] : outcomes) all[test].failed = outcome.failed;

  const std::set<Case> exempt = read_exempt();
  std::set<std::string> files;
  int wrong = 0;
  const auto complain = [&](const Case& test, const char* what) {
    std::printf("%s: \"%s\" %s\n", test.first.c_str(), test.second.c_str(), what);
    ++wrong;
  };
  for (const auto& [test, outcome] : all) {
    files.insert(test.first);
    if (outcome.failed && exempt.contains(test)) complain(test, "is exempt, but fails: its line must go");
    if (!outcome.failed && !exempt.contains(test))
      complain(test, outcome.compared ? "compares numbers, and passes with wrong ones"
                                      : "passes whatever is expected, and is not in tests/shift_exempt.txt");
  }
  for (const Case& test : exempt) {
    if (!std::filesystem::exists("tests/" + test.first)) complain(test, "is exempt, but there is no such file");
    if (files.contains(test.first) && !all.contains(test) && !skipped.contains(test))
      complain(test, "is exempt, but there is no such test case");
  }
  std::printf("%zu test cases with shifted references: %d complaints\n", all.size(), wrong);
  return wrong == 0 && !all.empty() ? 0 : 1;
}
