// docs/bug_cases.md against the tests: what it calls tested has a test case of that number, and the other way round.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

namespace {

namespace fs = std::filesystem;
using FilesOfCase = std::map<std::string, std::set<std::string>>;

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  REQUIRE_MESSAGE(file, path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

template <class Body>
void for_each_match(const std::string& text, const std::string& pattern, Body body) {
  const std::regex regex(pattern);
  for (std::sregex_iterator match(text.begin(), text.end(), regex), end; match != end; ++match) body(*match);
}

// From the last column: `01_vector_add_test.cu`, relative to tests/.
FilesOfCase documented() {
  FilesOfCase cases;
  for_each_match(text_of("docs/bug_cases.md"), R"(\n\| (BC-\d+) \|.*\| ([^|]*) \|)", [&](const std::smatch& row) {
    std::set<std::string>& files = cases[row[1]];
    for_each_match(row[2], "`([^`]*_test\\.c[a-z]*)`", [&](const std::smatch& file) { files.insert(file[1]); });
  });
  return cases;
}

// From the names of the test cases.
FilesOfCase tested() {
  FilesOfCase cases;
  for (const auto& entry : fs::recursive_directory_iterator("tests")) {
    const std::string name = fs::relative(entry.path(), "tests").generic_string();
    if (name.find("_test.c") == std::string::npos || name == "bug_cases_test.cpp") continue;
    for_each_match(text_of(entry.path()), "TEST_CASE\\(\\s*\"([^\"]*)\"", [&](const std::smatch& test) {
      for_each_match(test[1], R"(BC-\d+)", [&](const std::smatch& id) { cases[id[0]].insert(name); });
    });
  }
  return cases;
}

std::string listed(const std::set<std::string>& files) {
  std::string text;
  for (const std::string& file : files) text += (text.empty() ? "" : ", ") + file;
  return text;
}

}  // namespace

TEST_CASE("docs/bug_cases.md and the tests name the same cases") {
  const FilesOfCase document = documented(), tests = tested();
  CHECK(document.size() == 100);
  for (const auto& entry : document) {
    CAPTURE(entry.first);
    const auto found = tests.find(entry.first);
    CHECK(listed(entry.second) == listed(found == tests.end() ? std::set<std::string>{} : found->second));
  }
  for (const auto& entry : tests) CHECK_MESSAGE(document.contains(entry.first), entry.first);
}
