#include "common/harness/picture.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>
#include <utility>

#include "common/harness/report.hpp"

namespace ladder {
using cpu_device::BufferCells;
using cpu_device::Cell;
using cpu_device::LaunchRecord;

std::vector<Tile> merge_equal(const std::vector<uint32_t>& kinds, int64_t columns) {
  std::vector<Tile> tiles;
  std::vector<std::size_t> above, here;  // tiles that reach down to the last row, and to this one
  for (int64_t begin = 0, row = 0; begin < static_cast<int64_t>(kinds.size()); begin += columns, ++row) {
    here.clear();
    std::size_t candidate = 0;
    for (int64_t column = 0; column < columns;) {
      const auto kind_at = [&](int64_t c) { return kinds[static_cast<std::size_t>(begin + c)]; };
      int64_t end = column + 1;
      while (end < columns && kind_at(end) == kind_at(column)) ++end;
      while (candidate < above.size() && tiles[above[candidate]].column < column) ++candidate;
      Tile* const up = candidate < above.size() ? &tiles[above[candidate]] : nullptr;
      if (up && up->column == column && up->columns == end - column && up->kind == kind_at(column)) {
        ++up->rows;
        here.push_back(above[candidate]);
      } else {
        here.push_back(tiles.size());
        tiles.push_back({row, column, 1, end - column, kind_at(column)});
      }
      column = end;
    }
    std::swap(above, here);
  }
  return tiles;
}

namespace {

// Lengths are in pixels of the picture at its own size.
constexpr double WIDTH = 960, LEFT = 84, RIGHT = 96, PLOT = WIDTH - LEFT - RIGHT;
constexpr double LARGEST_CELL = 20, PLOT_HEIGHT = 200, BAND_HEIGHT = 28, EDGE_ROW_HEIGHT = 15;
constexpr int64_t MOST_ROWS = 4096, MOST_FOLDED_ROWS = 32, EDGE_ROWS = 5;
constexpr std::size_t MOST_TILES = 500, MOST_TOOLTIPS = 60;

// The kinds of cells and of threads; NOTHING is where a folded tensor has no cell. Each is a class of the style sheet.
enum Kind : uint32_t { NOTHING, UNTOUCHED, READ, READ_AGAIN, WRITTEN, BOTH, SEVERAL, IDLE, PARTLY_BUSY, BUSY, KINDS };
constexpr std::array<const char*, KINDS> CLASSES{"",     "untouched", "read", "again",  "written",
                                                 "both", "several",   "idle", "partly", "busy"};
constexpr std::array<const char*, KINDS> MEANINGS{
    "",     "never touched", "read once", "read more than once", "written", "read and written", "of several kinds",
    "idle", "partly busy",   "busy"};

Kind kind_of(const Cell& cell) {
  if (cell.reads > 0 && cell.writes > 0) return BOTH;
  if (cell.writes > 0) return WRITTEN;
  return cell.reads == 0 ? UNTOUCHED : cell.reads == 1 ? READ : READ_AGAIN;
}

constexpr const char* STYLE = R"svg(<style>
svg { --paper: #ffffff; --ink: #1f2328; --quiet: #59636e; --read: #a6cee3; --again: #3f8fc5; --written: #f0a04b;
  --both: #8f6bb3; --busy: #7d8590; --partly: #c3c9d0; --hatch: #8c959f; }
@media (prefers-color-scheme: dark) {
  svg { --paper: #0d1117; --ink: #e6edf3; --quiet: #9198a1; --read: #27567a; --again: #5aa9e0; --written: #d9822b;
    --both: #a884d1; --busy: #656d76; --partly: #3d444d; --hatch: #6e7681; } }
text { font: 13px "DejaVu Sans", Verdana, sans-serif; fill: var(--ink); }
.title { font-size: 17px; font-weight: bold; }
.name { font-weight: bold; }
.quiet { fill: var(--quiet); font-size: 12px; }
.middle { text-anchor: middle; } .end { text-anchor: end; }
.paper { fill: var(--paper); }
.read { fill: var(--read); } .again { fill: var(--again); } .written { fill: var(--written); } .both { fill: var(--both); }
.busy { fill: var(--busy); } .partly { fill: var(--partly); }
.untouched, .idle { fill: url(#hatch); stroke: var(--hatch); stroke-width: 0.75; }
.several { fill: url(#mixed); }
.block { fill: none; stroke: var(--ink); stroke-width: 0.75; }
.frame { fill: none; stroke: var(--hatch); stroke-width: 0.75; }
.tick { stroke: var(--quiet); stroke-width: 0.75; }
</style>
<defs>
<pattern id="hatch" width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
<rect width="7" height="7" fill="var(--paper)"/><rect width="1.2" height="7" fill="var(--hatch)"/></pattern>
<pattern id="mixed" width="8" height="8" patternUnits="userSpaceOnUse">
<rect width="8" height="8" fill="var(--paper)"/><path d="M0 0h4v4h-4zM4 4h4v4h-4z" fill="var(--hatch)"/></pattern>
</defs>
)svg";

std::string number(double value) {  // "84", "84.25": at most two digits behind the point
  std::ostringstream text;
  text << std::round(value * 100) / 100;
  return text.str();
}

std::string escaped(const std::string& text) {
  std::string result;
  for (char c : text) result += c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : std::string(1, c);
  return result;
}

std::string range_text(const char* noun, int64_t first, int64_t count) {
  return count == 1 ? std::string(noun) + " " + grouped(first)
                    : std::string(noun) + "s " + grouped(first) + " to " + grouped(first + count - 1);
}

std::string plural(int64_t count, const std::string& noun) {
  return grouped(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string sizes_text(const std::vector<int64_t>& sizes) {
  std::string text;
  for (int64_t size : sizes) text += (text.empty() ? "(" : ", ") + grouped(size);
  return text + ")";
}

class Drawing {
 public:
  double y = 0;  // what is drawn next goes below it

  void text(double x, double at, const std::string& text, const std::string& style = "") {
    out_ << "<text x=\"" << number(x) << "\" y=\"" << number(at) << "\""
         << (style.empty() ? "" : " class=\"" + style + "\"") << ">" << escaped(text) << "</text>\n";
  }
  void rectangle(double x, double at, double width, double height, const std::string& style,
                 const std::string& tooltip = "") {
    out_ << "<rect class=\"" << style << "\" x=\"" << number(x) << "\" y=\"" << number(at) << "\" width=\""
         << number(width) << "\" height=\"" << number(height) << "\""
         << (tooltip.empty() ? "/>" : "><title>" + escaped(tooltip) + "</title></rect>") << "\n";
  }
  void line(double x0, double y0, double x1, double y1) {
    out_ << "<path class=\"tick\" d=\"M" << number(x0) << " " << number(y0) << "L" << number(x1) << " " << number(y1)
         << "\"/>\n";
  }
  std::string finish() const {
    const std::string size = number(WIDTH) + " " + number(y);
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + size + "\" width=\"" + number(WIDTH) +
           "\" height=\"" + number(y) + "\">\n" + STYLE + "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n" +
           out_.str() + "</svg>\n";
  }

 private:
  std::ostringstream out_;
};

// Rows x columns of cells or of threads.
struct Grid {
  int64_t rows, columns;
  int64_t cells;  // fewer than rows * columns where the last row ends early
  std::vector<uint32_t> kinds, blocks;
  bool of_cells, folded;
  const char *row_noun, *column_noun;

  uint32_t kind(int64_t row, int64_t column) const {
    const int64_t i = row * columns + column;
    return i < cells ? kinds[static_cast<std::size_t>(i)] : NOTHING;
  }
  // Of a bin. Cells that do not exist do not count.
  uint32_t kind(int64_t row, int64_t row_end, int64_t column, int64_t column_end) const {
    uint32_t found = NOTHING;
    for (int64_t r = row; r < row_end; ++r)
      for (int64_t c = column; c < column_end; ++c) {
        const uint32_t one = kind(r, c);
        if (one == NOTHING || one == found) continue;
        if (found != NOTHING) return SEVERAL;
        found = one;
      }
    return found;
  }
};

// A part of the grid that is drawn at one scale: `step` rows of it become one row of rectangles.
struct Band {
  int64_t begin, end, step;
  double height;  // of one row of rectangles
};

std::vector<Band> bands_of(const Grid& grid, double row_height) {
  const int64_t most = grid.folded ? MOST_FOLDED_ROWS : MOST_ROWS;
  if (grid.rows <= most) return {{0, grid.rows, 1, row_height}};
  const int64_t tail = grid.rows - EDGE_ROWS;
  return {{0, EDGE_ROWS, 1, EDGE_ROW_HEIGHT},
          {EDGE_ROWS, tail, tail - EDGE_ROWS, BAND_HEIGHT},
          {tail, grid.rows, 1, EDGE_ROW_HEIGHT}};
}

// The tiles of one band, in rows and columns of the grid.
std::vector<Tile> tiles_of(const Grid& grid, const Band& band, int64_t step) {
  std::vector<uint32_t> kinds;
  const int64_t columns = (grid.columns + step - 1) / step;
  for (int64_t row = band.begin; row < band.end; row += band.step)
    for (int64_t c = 0; c < columns; ++c)
      kinds.push_back(
          grid.kind(row, std::min(row + band.step, band.end), c * step, std::min((c + 1) * step, grid.columns)));
  std::vector<Tile> tiles = merge_equal(kinds, columns);
  std::erase_if(tiles, [](const Tile& tile) { return tile.kind == NOTHING; });
  for (Tile& tile : tiles) {
    const int64_t row_end = std::min(band.begin + (tile.row + tile.rows) * band.step, band.end);
    const int64_t column_end = std::min((tile.column + tile.columns) * step, grid.columns);
    tile.row = band.begin + tile.row * band.step;
    tile.column *= step;
    tile.rows = row_end - tile.row;
    tile.columns = column_end - tile.column;
  }
  return tiles;
}

int64_t power_of_two_from(double value) {
  int64_t power = 1;
  while (static_cast<double>(power) < value) power *= 2;
  return power;
}

void draw_grid(Drawing& drawing, const Grid& grid, std::array<bool, KINDS>& used) {
  const double cell_width = std::min(LARGEST_CELL, PLOT / static_cast<double>(grid.columns));
  const double plot_width = cell_width * static_cast<double>(grid.columns);
  std::vector<Band> bands = bands_of(grid, std::min(LARGEST_CELL, PLOT_HEIGHT / static_cast<double>(grid.rows)));

  // Coarser bins until the rectangles are few enough.
  int64_t step = 1;
  std::vector<std::vector<Tile>> tiles;
  for (;;) {
    std::size_t count = 0;
    tiles.clear();
    for (const Band& band : bands) count += tiles.emplace_back(tiles_of(grid, band, step)).size();
    const bool rows_left = bands.size() == 1 && bands[0].step < grid.rows;
    if (count <= MOST_TILES || (step >= grid.columns && !rows_left)) break;
    step = std::min(2 * step, grid.columns);
    if (rows_left) {
      bands[0].step *= 2;
      bands[0].height *= 2;
    }
  }
  std::size_t count = 0;
  for (const auto& part : tiles) count += part.size();

  const double top = drawing.y;
  double label_below = 0;  // block labels do not run into each other
  for (std::size_t b = 0; b < bands.size(); ++b) {
    const Band& band = bands[b];
    const double row_height = band.height / static_cast<double>(band.step);
    const auto y_of = [&](int64_t row) { return drawing.y + static_cast<double>(row - band.begin) * row_height; };
    // Last what is hatched: its outline keeps even a single cell plain to see.
    for (bool hatched : {false, true})
      for (const Tile& tile : tiles[b]) {
        if ((tile.kind == UNTOUCHED || tile.kind == IDLE) != hatched) continue;
        used[tile.kind] = true;
        drawing.rectangle(LEFT + static_cast<double>(tile.column) * cell_width, y_of(tile.row),
                          static_cast<double>(tile.columns) * cell_width, static_cast<double>(tile.rows) * row_height,
                          CLASSES[tile.kind],
                          count > MOST_TOOLTIPS ? ""
                                                : range_text(grid.row_noun, tile.row, tile.rows) + ", " +
                                                      range_text(grid.column_noun, tile.column, tile.columns) + ": " +
                                                      MEANINGS[tile.kind]);
      }
    const bool exact = band.step == 1;
    if (exact && !grid.blocks.empty()) {
      const auto first = grid.blocks.begin() + band.begin * grid.columns;
      std::vector<uint32_t> owners(first, grid.blocks.begin() + std::min(band.end * grid.columns, grid.cells));
      owners.resize(static_cast<std::size_t>((band.end - band.begin) * grid.columns), Cell::NOBODY);
      std::vector<Tile> blocks = merge_equal(owners, grid.columns);
      std::erase_if(blocks, [&](const Tile& tile) {
        return tile.kind == Cell::NOBODY || static_cast<double>(tile.rows) * row_height < 3 ||
               static_cast<double>(tile.columns) * cell_width < 3;
      });
      if (blocks.size() <= MOST_TILES)
        for (const Tile& block : blocks) {
          const double height = static_cast<double>(block.rows) * row_height;
          drawing.rectangle(LEFT + static_cast<double>(block.column) * cell_width, y_of(band.begin + block.row),
                            static_cast<double>(block.columns) * cell_width, height, "block");
          const double at = y_of(band.begin + block.row) + height / 2 + 4;
          if (!grid.of_cells || block.column != 0 || at - 13 < label_below) continue;
          drawing.text(LEFT + plot_width + 8, at, "block " + grouped(block.kind), "quiet");
          label_below = at;
        }
    }
    const double height =
        exact || bands.size() == 1 ? static_cast<double>(band.end - band.begin) * row_height : band.height;
    if (bands.size() > 1 && band.step > 1)
      drawing.text(LEFT + plot_width / 2, drawing.y + height / 2 + 4,
                   grouped(band.end - band.begin) + " " + grid.row_noun + "s, drawn as one", "middle");
    // Row numbers, so that at least 18 pixels lie between them.
    const int64_t every = power_of_two_from(18 / row_height);
    if (bands.size() == 1 || exact)
      for (int64_t row = band.begin; row < band.end; ++row) {
        const bool last_of_all = row == grid.rows - 1 && bands.size() > 1;
        const bool shown = bands.size() == 1 ? row % every == 0 : row == band.begin || last_of_all;
        if (shown && !(b > 0 && row == band.begin))
          drawing.text(LEFT - 8, y_of(row) + std::max(row_height / 2, 5.0) + 4, grouped(row), "quiet end");
      }
    drawing.y += height;
  }
  drawing.text(LEFT - 8, top - 7, grid.row_noun, "quiet end");
  if (grid.cells == grid.rows * grid.columns) drawing.rectangle(LEFT, top, plot_width, drawing.y - top, "frame");

  const int64_t every = power_of_two_from(static_cast<double>(grid.columns) / std::max(2.0, plot_width / 90));
  for (int64_t column = 0; column < grid.columns; column += every) {
    const double x = LEFT + static_cast<double>(column) * cell_width;
    drawing.line(x, drawing.y + 1, x, drawing.y + 5);
    drawing.text(cell_width > 12 ? x + cell_width / 2 : x, drawing.y + 17, grouped(column), "quiet middle");
  }
  drawing.text(LEFT + plot_width + 8, drawing.y + 17, grid.column_noun, "quiet");
  if (step > 1 || (bands.size() == 1 && bands[0].step > 1)) {
    drawing.y += 16;
    drawing.text(
        LEFT, drawing.y + 17,
        "drawn in bins of " + grouped(bands.size() == 1 ? bands[0].step : 1) + " x " + grouped(step) + " cells",
        "quiet");
  }
  drawing.y += 40;
}

// "6,000 cells: 3,072 written, 2,928 never written"
std::string counts_text(const BufferCells& buffer) {
  int64_t read = 0, written = 0;
  uint32_t fewest = Cell::NOBODY, most = 0;
  for (const Cell& cell : buffer.cells) {
    read += cell.reads > 0;
    written += cell.writes > 0;
    fewest = std::min(fewest, cell.reads);
    most = std::max(most, cell.reads);
  }
  const auto cells = static_cast<int64_t>(buffer.cells.size());
  std::string text = grouped(cells) + " cells of " + std::to_string(buffer.element_bytes) + " bytes: ";
  const auto share = [&](int64_t count, const std::string& what, bool tell_rest) {
    if (count == cells) return "all " + what;
    return grouped(count) + " " + what + (tell_rest ? ", " + grouped(cells - count) + " never " + what : "");
  };
  if (written > 0) text += share(written, "written", true);
  if (written > 0 && read > 0) text += "; ";
  if (read > 0) text += share(read, "read", written == 0);
  if (most > 1) text += fewest == most ? ", each " + grouped(most) + " times" : ", up to " + grouped(most) + " times";
  return text;
}

Grid grid_of_cells(const BufferCells& buffer, const std::vector<int64_t>& sizes, int64_t fold) {
  Grid grid{0,     sizes.back(), static_cast<int64_t>(buffer.cells.size()), {}, {}, true, sizes.size() == 1,
            "row", "column"};
  if (grid.folded) grid.columns = std::min(fold, grid.cells);
  grid.rows = (grid.cells + grid.columns - 1) / grid.columns;
  for (const Cell& cell : buffer.cells) {
    grid.kinds.push_back(kind_of(cell));
    grid.blocks.push_back(cell.block());
  }
  return grid;
}

void draw_threads(Drawing& drawing, const LaunchRecord& launch, std::array<bool, KINDS>& used) {
  const auto threads = static_cast<int64_t>(launch.threads()), blocks = static_cast<int64_t>(launch.blocks());
  Grid grid{blocks, threads, blocks * threads, {}, {}, false, true, "block", "thread"};
  const uint32_t most = *std::ranges::max_element(launch.accesses);
  int64_t idle = 0, partly = 0;
  for (uint32_t accesses : launch.accesses) {
    const Kind kind = accesses == 0 ? IDLE : accesses < most ? PARTLY_BUSY : BUSY;
    idle += kind == IDLE;
    partly += kind == PARTLY_BUSY;
    grid.kinds.push_back(kind);
    grid.blocks.push_back(static_cast<uint32_t>(static_cast<int64_t>(grid.blocks.size()) / threads));
  }
  std::string counts = grouped(grid.cells) + ": " + grouped(grid.cells - idle - partly) + " busy with " +
                       grouped(most) + (most == 1 ? " access" : " accesses") + " to buffers each";
  if (partly > 0) counts += ", " + grouped(partly) + " with fewer";
  if (idle > 0) counts += ", " + grouped(idle) + " idle";
  drawing.text(LEFT, drawing.y, "threads", "name");
  drawing.text(LEFT + 77, drawing.y, counts);
  drawing.y += 10;
  draw_grid(drawing, grid, used);
}

void draw_legend(Drawing& drawing, const std::array<bool, KINDS>& used, bool blocks) {
  double x = LEFT;
  const auto entry = [&](const std::string& style, const std::string& meaning) {
    const double width = 40 + 7.2 * static_cast<double>(meaning.size());
    if (x + width > WIDTH - 20) {
      x = LEFT;
      drawing.y += 22;
    }
    drawing.rectangle(x, drawing.y - 11, 20, 13, style);
    drawing.text(x + 26, drawing.y, meaning, "quiet");
    x += width;
  };
  for (uint32_t kind = UNTOUCHED; kind < KINDS; ++kind)
    if (used[kind]) entry(CLASSES[kind], MEANINGS[kind]);
  if (blocks) entry("block", "cells of one block; of several, the first");
  drawing.y += 22;
}

}  // namespace

std::string picture_of(const LaunchRecord& launch, const std::vector<Tensor>& tensors) {
  const auto shape_of = [&](const BufferCells& buffer) {
    const auto found = std::ranges::find(tensors, buffer.data, &Tensor::data);
    const auto size = static_cast<int64_t>(buffer.cells.size());
    if (found == tensors.end()) return std::vector<int64_t>{size};
    int64_t elements = 1;
    for (int64_t n : found->sizes) elements *= n;
    return elements == size ? found->sizes : std::vector<int64_t>{size};
  };
  std::string shapes;
  for (const BufferCells& buffer : launch.cells)
    shapes += (shapes.empty() ? "" : ", ") + buffer.buffer + " " + sizes_text(shape_of(buffer));

  // The body first: it says which kinds the legend has to explain.
  Drawing drawing;
  drawing.text(LEFT, drawing.y += 36, launch.kernel, "title");
  drawing.text(LEFT, drawing.y += 22,
               "What one launch touched: " + plural(static_cast<int64_t>(launch.blocks()), "block") + " of " +
                   plural(launch.threads(), "thread") + "; " + shapes);
  drawing.y += 34;
  std::array<bool, KINDS> used{};
  for (const BufferCells& buffer : launch.cells) {
    const std::vector<int64_t> sizes = shape_of(buffer);
    const Grid grid = grid_of_cells(buffer, sizes, launch.threads());
    drawing.text(LEFT, drawing.y, buffer.buffer, "name");
    drawing.text(
        LEFT + 14 + 9 * static_cast<double>(buffer.buffer.size()), drawing.y,
        sizes_text(sizes) + (grid.folded ? ", in rows of " + grouped(grid.columns) : "") + "; " + counts_text(buffer));
    drawing.y += 10;
    draw_grid(drawing, grid, used);
  }
  if (!launch.accesses.empty()) draw_threads(drawing, launch, used);
  drawing.y += 6;
  draw_legend(drawing, used, true);
  return drawing.finish();
}
}  // namespace ladder
