// The picture shows what was recorded, cell by cell: its rectangles are read back.
#include "common/harness/picture.hpp"

#include <map>
#include <sstream>

#include "common/harness/observe.hpp"
#include "tests/cpu_device/expect_fault.hpp"

namespace {

const bool needs = needs_device_checks = true;

using cpu_device::LaunchRecord;

// One block for each row; one cell may be left out.
__global__ void copy_rows(const float* x, float* out, int columns, int skipped) {
  for (int c = static_cast<int>(threadIdx.x); c < columns; c += 32) {
    const int i = static_cast<int>(blockIdx.x) * columns + c;
    if (i != skipped) out[i] = x[i];
  }
}

struct Drawn {
  std::string svg;
  LaunchRecord record;
};
Drawn draw(int rows, int columns, int skipped) {
  const Buffer<float> x("x", std::vector<float>(static_cast<std::size_t>(rows * columns))), out("out", rows * columns);
  record_launches({.cells = true});
  launch(copy_rows, dim3(static_cast<unsigned>(rows)), dim3(32), 0, nullptr, x.data(), out.data(), columns, skipped);
  LaunchRecord record = recorded_launches().at(0);
  record_launches({});
  return {judged(picture_of(record, {x.view(rows, columns), out.view(rows, columns)})), record};
}

double attribute(const std::string& element, const std::string& name) {
  const std::size_t at = element.find(" " + name + "=\"");
  REQUIRE(at != std::string::npos);
  return std::stod(element.substr(at + name.size() + 3));
}

struct Rectangle {
  std::string style;
  double x, y, width, height;
};
// Of the panel of `buffer`: what is drawn between its name and the next one.
std::vector<Rectangle> rectangles_of(const std::string& svg, const std::string& buffer) {
  const std::string mark = "class=\"name\">";
  const std::size_t begin = svg.find(mark + buffer + "<");
  REQUIRE(begin != std::string::npos);
  std::istringstream lines(svg.substr(begin, svg.find(mark, begin + 1) - begin));
  std::vector<Rectangle> rectangles;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("<rect class=\"")) continue;
    const std::string style = line.substr(13, line.find('"', 13) - 13);
    if (style == "block" || style == "frame") continue;
    rectangles.push_back(
        {style, attribute(line, "x"), attribute(line, "y"), attribute(line, "width"), attribute(line, "height")});
  }
  return rectangles;
}

// The style of each cell of a picture without bins. A cell that two rectangles cover has both.
std::vector<std::string> cells_of(const std::string& svg, const std::string& buffer, int rows, int columns) {
  const std::vector<Rectangle> all = rectangles_of(svg, buffer);
  double left = 1e9, top = 1e9, right = 0, bottom = 0;
  for (const Rectangle& r : all) {
    left = std::min(left, r.x);
    top = std::min(top, r.y);
    right = std::max(right, r.x + r.width);
    bottom = std::max(bottom, r.y + r.height);
  }
  std::vector<std::string> cells(static_cast<std::size_t>(rows * columns));
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; ++column) {  // whose rectangles hold the middle of the cell
      const double x = left + (column + 0.5) * (right - left) / columns, y = top + (row + 0.5) * (bottom - top) / rows;
      for (const Rectangle& r : all)
        if (x > r.x && x < r.x + r.width && y > r.y && y < r.y + r.height)
          cells[static_cast<std::size_t>(row * columns + column)] += r.style;
    }
  return cells;
}

}  // namespace

TEST_CASE("a kernel that skips one cell changes exactly that cell") {
  struct Shape {
    int rows, columns;
  };
  for (const auto& [rows, columns] : {Shape{3, 2000}, Shape{5, 7}, Shape{1, 1}, Shape{40, 64}, Shape{200, 3}})
    for (int skipped : {-1, 0, rows * columns / 2, rows * columns - 1}) {
      const Drawn drawn = draw(rows, columns, skipped);
      std::vector<std::string> read(static_cast<std::size_t>(rows * columns), "read"), written(read.size(), "written");
      if (skipped >= 0)
        read[static_cast<std::size_t>(skipped)] = written[static_cast<std::size_t>(skipped)] = "untouched";
      if (rows * columns == 1 && skipped == 0) continue;  // nothing at all is touched then
      CHECK(cells_of(drawn.svg, "x", rows, columns) == read);
      CHECK(cells_of(drawn.svg, "out", rows, columns) == written);
    }
}

TEST_CASE("the page around it: names, shapes, counts, blocks, threads") {
  const Drawn drawn = draw(2, 40, 41);
  for (const char* text :
       {"(anonymous namespace)::copy_rows", "2 blocks of 32 threads; x (2, 40), out (2, 40)", ">block 0<", ">block 1<",
        "(2, 40); 80 cells of 4 bytes: 79 read, 1 never read", "80 cells of 4 bytes: 79 written, 1 never written",
        "64: 15 busy with 4 accesses to buffers each, 49 with fewer", "<title>row 1, column 1: never touched</title>",
        "prefers-color-scheme: dark"}) {
    INFO(text);
    CHECK(contains(drawn.svg, text));
  }
  CHECK(drawn.svg.starts_with("<svg xmlns="));
  CHECK(drawn.svg.ends_with("</svg>\n"));
}

TEST_CASE("rows past the 4,096th are one band, and it tells when one cell of it differs") {
  for (int skipped : {-1, 2700 * 8 + 3}) {
    const Drawn drawn = draw(5000, 8, skipped);
    std::map<std::string, double> width;  // of the band, by style: its rectangles are 28 pixels high
    for (const Rectangle& r : rectangles_of(drawn.svg, "out"))
      if (r.height == 28) width[r.style] += r.width;
    CHECK(contains(drawn.svg, ">4,990 rows, drawn as one<"));
    if (skipped < 0)
      CHECK(width == std::map<std::string, double>{{"written", 8 * 20}});
    else
      CHECK(width == std::map<std::string, double>{{"written", 7 * 20}, {"several", 20}});
  }
}

TEST_CASE("too many rectangles: bins, said so, and small all the same") {
  LaunchRecord record;
  record.kernel = "a < b && c";
  record.grid = record.block = {1, 1, 1};
  record.accesses = {1};
  std::vector<cpu_device::Cell> cells(1000 * 1000);
  for (std::size_t i = 0; i < cells.size(); ++i) cells[i].reads = (i * 2654435761u >> 7) & 1;
  record.cells.push_back({"noise", nullptr, 4, cells});
  const std::string svg =
      judged(picture_of(record, {View<const float, 2>{nullptr, {1000, 1000}, {1000, 1}, 1'000'000}}));
  CHECK(svg.size() < 100'000);
  CHECK(contains(svg, "drawn in bins of "));
  CHECK(contains(svg, "a &lt; b &amp;&amp; c"));
  for (const Rectangle& r : rectangles_of(svg, "noise")) CHECK(r.style == "several");
}

TEST_CASE("merge_equal: each cell once, of its own kind, and no two equal neighbours in a row") {
  CHECK_PROPERTY([] {
    const auto columns = *rc::gen::inRange<int64_t>(1, 12), rows = *rc::gen::inRange<int64_t>(0, 12);
    const auto kinds = *rc::gen::container<std::vector<uint32_t>>(static_cast<std::size_t>(rows * columns),
                                                                  rc::gen::inRange<uint32_t>(0, 3));
    std::vector<int> covered(kinds.size());
    std::vector<std::size_t> owner(kinds.size());
    const std::vector<Tile> tiles = merge_equal(kinds, columns);
    for (std::size_t t = 0; t < tiles.size(); ++t)
      for (int64_t r = tiles[t].row; r < tiles[t].row + tiles[t].rows; ++r)
        for (int64_t c = tiles[t].column; c < tiles[t].column + tiles[t].columns; ++c) {
          const auto i = static_cast<std::size_t>(r * columns + c);
          RC_ASSERT(kinds[i] == tiles[t].kind);
          ++covered[i];
          owner[i] = t;
        }
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      RC_ASSERT(covered[i] == exactly(1));
      if (i % static_cast<std::size_t>(columns) != 0 && kinds[i] == kinds[i - 1]) RC_ASSERT(owner[i] == owner[i - 1]);
    }
  });
  CHECK(merge_equal(std::vector<uint32_t>(12, 7), 4).size() == exactly(std::size_t{1}));
}

TEST_CASE("the tables of --counters, to the letter") {
  LaunchRecord record;
  record.kernel = "step04::softmax_kernel<2048>";
  record.grid = {4, 1, 1};
  record.block = {512, 1, 1};
  record.buffers = {{"input", {32'000, 252, 1000, 1000}, {}}, {"output", {}, {4, 1, 1, 1}}};
  record.shared = {{"partial", 8, 256, 8}};
  std::ostringstream out;
  print_counters(out, record);
  CHECK(judged(out.str()) == R"(
Requests of step04::softmax_kernel<2048>, 4 blocks of 512 threads
  buffer                                bytes     requests      sectors        ideal  per request
  input                 read           32,000          252        1,000        1,000         3.97
  output                written             4            1            1            1         1.00
  shared array                                    requests   wavefronts        ideal  per request
  partial                                                8          256            8        32.00
)");
}
