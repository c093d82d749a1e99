// What one launch touched, as an SVG: each buffer as a grid of cells, and how much each thread did.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/cpu_device/recording.hpp"
#include "common/kernel/view.hpp"

namespace ladder {
/// The shape of a contiguous tensor that begins at `data`. A picture shows all axes but the last as rows.
struct Tensor {
  const void* data;            ///< Its first element, on the device.
  std::vector<int64_t> sizes;  ///< Its shape.

  /// Where a view lies, and its sizes. Its strides are not looked at.
  template <class T, int RANK>
  Tensor(const View<T, RANK>& view) : data(view.data), sizes(view.sizes.begin(), view.sizes.end()) {}
};

/// Rows x columns cells, each of which is of some kind; what merge_equal makes of them.
struct Tile {
  int64_t row;      ///< Its uppermost row.
  int64_t column;   ///< Its leftmost column.
  int64_t rows;     ///< Its height, in cells.
  int64_t columns;  ///< Its width, in cells.
  uint32_t kind;    ///< What its cells have in common, as the caller numbers it.
};
/// Rectangles of equal kind that cover each cell once, by rows. Equal neighbours in a row are merged, and equal runs
/// of neighbouring rows.
std::vector<Tile> merge_equal(const std::vector<uint32_t>& kinds, int64_t columns);

/// A picture drawn from the accesses of `launch` and from nothing else. A tensor of one axis is folded into rows as
/// wide as the block; a buffer without a tensor counts as one of one axis. Rows past the 4,096th, or of a folded tensor
/// past the 32nd, are drawn as one band, with the first and the last five apart; and a buffer that would take more than
/// 500 rectangles in bins of several cells. A band or a bin whose cells differ is marked as such.
std::string picture_of(const cpu_device::LaunchRecord& launch, const std::vector<Tensor>& tensors);
}  // namespace ladder
