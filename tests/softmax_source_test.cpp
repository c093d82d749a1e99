// The fix is one line: rungs 03 and 04 are compared as text.
#include <doctest/doctest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  REQUIRE_MESSAGE(file, path);
  return (std::ostringstream() << file.rdbuf()).str();
}

// From the kernel's template line to its closing brace, comments included.
std::string kernel_of(const std::string& text) {
  const auto start = text.find("template <int BLOCK_SIZE>\n__global__"), end = text.find("\n}\n", start);
  REQUIRE(end != std::string::npos);
  return text.substr(start, end - start);
}

// The lines without comments and white space; a line of nothing else is none. The two namespaces count as one.
std::vector<std::string> code_of(std::string text) {
  for (std::size_t at; (at = text.find("step03")) != std::string::npos;) text.replace(at, 6, "step04");
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    line.erase(std::min(line.find("//"), line.size()));
    std::erase_if(line, [](char c) { return c == ' '; });
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

}  // namespace

TEST_CASE("rungs 03 and 04: one kernel to the letter, and one line of the launcher") {
  const std::string buggy = text_of("steps/03_softmax_buggy/softmax.cuh"),
                    fixed = text_of("steps/04_softmax_fixed/softmax.cuh");
  CHECK(kernel_of(buggy).size() > 1000);
  CHECK(kernel_of(buggy) == kernel_of(fixed));
  const std::vector<std::string> before = code_of(buggy), after = code_of(fixed);
  REQUIRE(before.size() == after.size());
  std::vector<std::pair<std::string, std::string>> changed;
  for (std::size_t i = 0; i < before.size(); ++i)
    if (before[i] != after[i]) changed.emplace_back(before[i], after[i]);
  REQUIRE(changed.size() == 1);
  CHECK(changed[0].first == "constint64_tBLOCK_SIZE=1024;");
  CHECK(changed[0].second == "constint64_tBLOCK_SIZE=ladder::next_power_of_2(n_cols);");
  CHECK(buggy.starts_with("// WRONG ON PURPOSE: the launcher at the end fixes BLOCK_SIZE = 1024"));
}
