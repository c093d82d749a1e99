// The rungs against what PyTorch and Triton gave, from the files in tests/golden that make.py there has written. Which
// there are stands in versions.json: inputs, PyTorch's results in float64 and float32, and Triton's where a GPU made
// them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <stdexcept>

#include "common/harness/buffer.hpp"
#include "common/harness/compare.hpp"
#include "steps/01_vector_add/vector_add.cuh"
#include "steps/01_vector_add/vectorized.cuh"
#include "steps/02_relu_dropout/relu_dropout.cuh"
#include "steps/03_softmax_buggy/softmax.cuh"
#include "steps/04_softmax_fixed/softmax.cuh"
#include "steps/05_attention/attention.cuh"
#include "tests/expect.hpp"

namespace {

using namespace ladder;

const std::filesystem::path FOLDER = "tests/golden";

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path.string() + " is missing or cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Array {
  std::vector<int64_t> sizes;
  std::vector<double> values;

  std::vector<float> floats() const { return {values.begin(), values.end()}; }
};

template <class T>
std::vector<double> numbers(const std::string& data) {
  std::vector<T> values(data.size() / sizeof(T));
  std::memcpy(values.data(), data.data(), values.size() * sizeof(T));
  return {values.begin(), values.end()};
}

// Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html. Version 1.0, little-endian float32
// and float64 in C order: what make.py writes, and nothing else.
Array parse_npy(const std::string& bytes) {
  const auto require = [](bool holds, const std::string& what) {
    if (!holds) throw std::runtime_error("not an array as make.py writes it: " + what);
  };
  require(bytes.size() >= 10 && bytes.starts_with("\x93NUMPY\x01"), "no header of version 1");
  const std::size_t header_bytes = static_cast<unsigned char>(bytes[8]) + 256u * static_cast<unsigned char>(bytes[9]);
  require(bytes.size() >= 10 + header_bytes, "the header is cut off");
  const std::string header = bytes.substr(10, header_bytes), data = bytes.substr(10 + header_bytes);
  std::smatch match;
  const std::regex format(R"(\{'descr': '<f([48])', 'fortran_order': False, 'shape': \(([0-9, ]*)\), \}\s*)");
  require(std::regex_match(header, match, format), "the header is " + header);
  Array array;
  std::size_t bytes_needed = match[1] == "4" ? 4 : 8;
  const std::string shape = match[2];
  const std::regex number("[0-9]+");
  for (std::sregex_iterator size(shape.begin(), shape.end(), number), end; size != end; ++size) {
    array.sizes.push_back(std::stoll(size->str()));
    bytes_needed *= static_cast<std::size_t>(array.sizes.back());
  }
  require(data.size() == bytes_needed,
          std::to_string(data.size()) + " bytes of data, must be " + std::to_string(bytes_needed));
  array.values = match[1] == "4" ? numbers<float>(data) : numbers<double>(data);
  return array;
}

Array golden(const std::string& name) { return parse_npy(bytes_of(FOLDER / (name + ".npy"))); }

// Names as versions.json lists them, sorted.
std::vector<std::string> listed_files() {
  const std::string text = bytes_of(FOLDER / "versions.json");
  std::vector<std::string> files;
  const std::regex name(R"rx("(\w+\.\w+\.npy)")rx");
  for (std::sregex_iterator match(text.begin(), text.end(), name), end; match != end; ++match)
    files.push_back((*match)[1]);
  std::ranges::sort(files);
  return files;
}

// What is stored as the result of a case, and how close to it float32 arithmetic comes when float64's result is
// reached within `tolerance`: two float32 results may be off to either side, and Triton's exp and division are
// approximate (2 units in the last place each) on top.
struct Peer {
  std::string file;
  Array result;
  Tolerance tolerance;
};
std::vector<Peer> peers(const std::string& name, Tolerance tolerance) {
  std::vector<Peer> found;
  const std::vector<std::string> files = listed_files();
  for (const auto& [peer, factor] : {std::pair("torch_float64", 1.0), {"torch_float32", 2.0}, {"triton", 4.0}}) {
    const std::string stem = name + "." + peer;
    if (std::ranges::find(files, stem + ".npy") != files.end())
      found.push_back({stem, golden(stem), {factor * tolerance.absolute, factor * tolerance.relative}});
  }
  REQUIRE_MESSAGE(!found.empty(), name);
  return found;
}

void check_against(const std::vector<Peer>& peers, const std::vector<float>& actual) {
  for (const Peer& peer : peers) {
    const Comparison difference = compare(actual, peer.result.values, peer.result.sizes, peer.tolerance);
    CHECK_MESSAGE(difference.matches(), peer.file, ": ", difference.describe());
  }
}

template <class Softmax>
std::vector<float> run_softmax(const std::string& name, Softmax softmax) {
  const Array x = golden(name + ".input");
  const Buffer<float> input("input", x.floats());
  Buffer<float> output("output", input.size());
  output.fill(0.0f);
  softmax(input.view(x.sizes[0], x.sizes[1]), output.view(x.sizes[0], x.sizes[1]), nullptr);
  CHECK(output.guards_intact());
  return output.download();
}

// An exp of -104 is a denormal, and off by a unit of those.
constexpr Tolerance SOFTMAX_TOLERANCE{.absolute = 1.5e-45, .relative = 2e-6};
constexpr Tolerance ATTENTION_TOLERANCE{.absolute = 2e-6, .relative = 1e-5};

}  // namespace

TEST_CASE("golden: the files are those that versions.json lists") {
  std::string listed, there;
  for (const std::string& file : listed_files()) listed += file + "\n";
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(FOLDER))
    if (entry.path().extension() == ".npy") files.push_back(entry.path().filename().string());
  std::ranges::sort(files);
  for (const std::string& file : files) there += file + "\n";
  MESSAGE("Golden files:\n", there);
  CHECK(judged(there) == listed);
}

TEST_CASE("golden: the reader refuses what it does not read") {
  const std::string good = bytes_of(FOLDER / "softmax_5.input.npy");
  const auto refusal = [](const std::string& bytes) {
    return message_of<std::runtime_error>([&] { parse_npy(bytes); });
  };
  CHECK(parse_npy(good).sizes == exactly(std::vector<int64_t>{4, 5}));
  CHECK(refusal(good.substr(0, 5)) == "not an array as make.py writes it: no header of version 1");
  CHECK(refusal(good.substr(0, 20)) == "not an array as make.py writes it: the header is cut off");
  CHECK(refusal(good + "x") == "not an array as make.py writes it: 81 bytes of data, must be 80");
  CHECK(refusal(good.substr(0, good.size() - 1)) == "not an array as make.py writes it: 79 bytes of data, must be 80");
  std::string fortran = good;
  fortran.replace(fortran.find("False"), 5, "True ");
  CHECK(refusal(fortran).starts_with("not an array as make.py writes it: the header is {'descr': '<f4'"));
}

TEST_CASE("golden: 01 is x + y, bit for bit") {
  const Array x = golden("vector_add.x"), y = golden("vector_add.y");
  const Buffer<float> x_buffer("x", x.floats()), y_buffer("y", y.floats());
  const int64_t n = x_buffer.size();
  for (const auto launcher : {step01::vector_add, step01::vector_add_vectorized}) {
    const Buffer<float> out("out", n);
    launcher(x_buffer.view(n), y_buffer.view(n), out.view(n), nullptr);
    for (const Peer& peer : peers("vector_add", {})) {
      const Comparison difference = compare_bits(out.download(), peer.result.floats(), {n});
      CHECK_MESSAGE(difference.matches(), peer.file, ": ", difference.describe());
    }
  }
}

TEST_CASE("golden: 02 has the masks of tl.rand, and divides as PyTorch does") {
  for (const auto& [name, first_counter] :
       {std::pair("relu_dropout", uint64_t{0}), {"relu_dropout_2e31", (uint64_t{1} << 31) - 500}}) {
    const Buffer<float> x("x", golden(name + std::string(".x")).floats());
    const Buffer<float> out("out", x.size());
    step02::relu_dropout(x.view(x.size()), out.view(x.size()), 0.3f, 7, first_counter);
    std::vector<Peer> results = peers(name, {});
    for (Peer& peer : results)  // Triton's division is approximate: an ulp is at most 2^-23 of the value
      if (peer.file.ends_with("triton")) peer.tolerance.relative = std::ldexp(1.0, -23);
    check_against(results, out.download());
  }
}

TEST_CASE("golden: 03 is right up to 1024 columns") {
  for (const char* name : {"softmax_5", "softmax_special", "softmax_1000"})
    check_against(peers(name, SOFTMAX_TOLERANCE), run_softmax(name, step03::softmax));
}

TEST_CASE("golden: 03 at 2000 columns is the softmax of the first 1024, as Triton's is, and nowhere PyTorch's") {
  const std::vector<float> actual = run_softmax("softmax_2000", step03::softmax);
  check_against(peers("softmax_2000_bug", SOFTMAX_TOLERANCE), actual);
  const Array right = golden("softmax_2000.torch_float64");
  CHECK(compare(actual, right.values, right.sizes, SOFTMAX_TOLERANCE).mismatched == exactly(int64_t{2000}));
}

TEST_CASE("golden: 04 is right") {
  for (const char* name : {"softmax_5", "softmax_special", "softmax_1000", "softmax_2000"})
    check_against(peers(name, SOFTMAX_TOLERANCE), run_softmax(name, step04::softmax));
}

TEST_CASE("golden: 05 is right, causal too") {
  for (const std::string name :
       {"attention_5_15", "attention_1_10", "attention_causal", "attention_causal_more_queries"}) {
    const Array q = golden(name + ".q"), k = golden(name + ".k"), v = golden(name + ".v");
    const Buffer<float> q_buffer("q", q.floats()), k_buffer("k", k.floats()), v_buffer("v", v.floats());
    const Buffer<float> out("out", q_buffer.size());
    const auto view = [](const Buffer<float>& buffer, const Array& array) {
      return buffer.view(array.sizes[0], array.sizes[1], array.sizes[2], array.sizes[3]);
    };
    const bool causal = name.find("causal") != std::string::npos;
    step05::attention(view(q_buffer, q), view(k_buffer, k), view(v_buffer, v), view(out, q), causal);
    check_against(peers(name, ATTENTION_TOLERANCE), out.download());
  }
}
