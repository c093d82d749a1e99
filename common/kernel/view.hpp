// What a launcher is told about a tensor: where it lies, its shape, and how far its memory reaches.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace ladder {

/// A tensor in memory that somebody else owns. Sizes, strides and extent count elements, not bytes. The element at
/// (i, j, ...) is data[i * strides[0] + j * strides[1] + ...].
///
/// Without its extent a launcher could not refuse a view
/// that is longer than its memory.
template <class T, int RANK>
struct View {
  T* data = nullptr;                    ///< The element at (0, 0, ...).
  std::array<int64_t, RANK> sizes{};    ///< Elements along each axis.
  std::array<int64_t, RANK> strides{};  ///< Elements from one index of an axis to the next.
  int64_t extent = 0;                   ///< Elements that may be touched from `data` on.

  /// A launcher reads its inputs through View<const float, ...>; any view may be read.
  template <class U>
  requires(!std::is_const_v<T> && std::is_same_v<U, const T>) operator View<U, RANK>() const {
    return {data, sizes, strides, extent};
  }

  /// True when some axis has no elements.
  bool empty() const {
    for (int64_t size : sizes)
      if (size == 0) return true;
    return false;
  }

  /// Elements from `data` to the last one of the view, that one included: the least extent the view needs. 0 when the
  /// view is empty; INT64_MAX when the sum overflows. Needs sizes and strides that are not negative.
  int64_t span() const {
    if (empty()) return 0;
    int64_t last = 0;
    for (int axis = 0; axis < RANK; ++axis) {
      int64_t step = 0;
      if (__builtin_mul_overflow(sizes[axis] - 1, strides[axis], &step) || __builtin_add_overflow(last, step, &last))
        return std::numeric_limits<int64_t>::max();
    }
    return last == std::numeric_limits<int64_t>::max() ? last : last + 1;
  }
};

/// A tensor of shape (n).
template <class T>
using Vector = View<T, 1>;
/// A tensor of shape (rows, columns).
template <class T>
using Matrix = View<T, 2>;
/// A tensor of shape (batch, heads, sequence, head dimension): Q, K, V and O of attention.
template <class T>
using Heads = View<T, 4>;

/// A view of `sizes` elements that lie one behind the other, the last axis fastest, and of nothing beyond them.
template <class T, class... Sizes>
View<T, sizeof...(Sizes)> contiguous(T* data, Sizes... sizes) {
  View<T, sizeof...(Sizes)> view{data, {static_cast<int64_t>(sizes)...}, {}, 0};
  int64_t stride = 1;
  for (int axis = static_cast<int>(sizeof...(Sizes)) - 1; axis >= 0; --axis) {
    view.strides[axis] = stride;
    if (view.sizes[axis] > 0 && __builtin_mul_overflow(stride, view.sizes[axis], &stride))
      stride = std::numeric_limits<int64_t>::max();  // the span then is INT64_MAX too, which no launcher takes
  }
  view.extent = view.span();
  return view;
}

}  // namespace ladder
