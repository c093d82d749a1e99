// The checks a launcher makes before it launches anything. Each throws InvalidArgument in one line that names the
// function, the argument, its value and the limit.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>

#include "common/kernel/error.hpp"
#include "common/kernel/view.hpp"

namespace ladder {

/// Throws InvalidArgument with the text `<function>: <argument> is <value>, must be <limit>`.
[[noreturn]] inline void refuse(const std::string& function, const std::string& argument, const std::string& value,
                                const std::string& limit) {
  throw InvalidArgument(function + ": " + argument + " is " + value + ", must be " + limit);
}

/// Refuses unless `value` lies in [lowest, highest].
inline void require_range(const char* function, const std::string& argument, int64_t value, int64_t lowest,
                          int64_t highest) {
  if (value < lowest) refuse(function, argument, std::to_string(value), "at least " + std::to_string(lowest));
  if (value > highest) refuse(function, argument, std::to_string(value), "at most " + std::to_string(highest));
}

/// Refuses a view with a negative size or stride, one that reaches past its extent, and a null pointer to anything.
template <class T, int RANK>
void require_view(const char* function, const std::string& name, const View<T, RANK>& view) {
  const auto axis_name = [&](const char* member, int axis) {
    return name + "." + member + "[" + std::to_string(axis) + "]";
  };
  for (int axis = 0; axis < RANK; ++axis) {
    if (view.sizes[axis] < 0)
      refuse(function, axis_name("sizes", axis), std::to_string(view.sizes[axis]), "at least 0");
    if (view.strides[axis] < 0)
      refuse(function, axis_name("strides", axis), std::to_string(view.strides[axis]), "at least 0");
  }
  if (view.empty()) return;
  if (view.span() > view.extent)
    refuse(function, name + ".extent", std::to_string(view.extent),
           "at least " + std::to_string(view.span()) + ", which its sizes and strides reach");
  constexpr int64_t LARGEST = std::numeric_limits<std::ptrdiff_t>::max() / static_cast<int64_t>(sizeof(T));
  if (view.span() > LARGEST)  // from here on, byte counts fit in 64 bits
    refuse(function, "the span of " + name, std::to_string(view.span()), "at most " + std::to_string(LARGEST));
  if (view.data == nullptr)
    refuse(function, name + ".data", "null", "a pointer to " + std::to_string(view.span()) + " elements");
  const std::uintptr_t off = reinterpret_cast<std::uintptr_t>(view.data) % alignof(T);
  if (off != 0)
    refuse(function, name + ".data", std::to_string(off) + " bytes off its alignment",
           "at a multiple of " + std::to_string(alignof(T)) + " bytes");
}

/// Refuses unless both views have the same shape.
template <class A, class B, int RANK>
void require_same_sizes(const char* function, const std::string& name, const View<A, RANK>& view,
                        const std::string& other_name, const View<B, RANK>& other) {
  for (int axis = 0; axis < RANK; ++axis)
    if (view.sizes[axis] != other.sizes[axis])
      refuse(function, name + ".sizes[" + std::to_string(axis) + "]", std::to_string(view.sizes[axis]),
             std::to_string(other.sizes[axis]) + ", as of " + other_name);
}

/// Refuses a last axis whose elements do not lie one behind the other. The stride of an axis of size 0 or 1 means
/// nothing.
template <class T, int RANK>
void require_unit_last_stride(const char* function, const std::string& name, const View<T, RANK>& view) {
  if (view.sizes[RANK - 1] > 1 && view.strides[RANK - 1] != 1)
    refuse(function, name + ".strides[" + std::to_string(RANK - 1) + "]", std::to_string(view.strides[RANK - 1]), "1");
}

/// Refuses a matrix that require_view refuses, whose rows are not contiguous, or whose rows share cells.
template <class T>
void require_rows(const char* function, const std::string& name, const View<T, 2>& view) {
  require_view(function, name, view);
  require_unit_last_stride(function, name, view);
  if (view.sizes[0] > 1 && view.strides[0] < view.sizes[1])
    refuse(function, name + ".strides[0]", std::to_string(view.strides[0]),
           "at least " + std::to_string(view.sizes[1]) + ", the number of columns");
}

/// Refuses an output in which two elements share a cell, as with a stride of 0 or rows that overlap: each cell must
/// have one owner. Judged axis by axis from the narrowest stride to the widest: each must step over all that the
/// narrower ones span.
template <class T, int RANK>
void require_distinct_cells(const char* function, const std::string& name, const View<T, RANK>& view) {
  if (view.empty()) return;
  std::array<int, RANK> axes{};
  std::iota(axes.begin(), axes.end(), 0);
  std::sort(axes.begin(), axes.end(), [&](int a, int b) { return view.strides[a] < view.strides[b]; });
  int64_t reach = 1;  // cells that the axes so far span
  for (int axis : axes) {
    if (view.sizes[axis] == 1) continue;
    if (view.strides[axis] < reach)
      refuse(function, name + ".strides[" + std::to_string(axis) + "]", std::to_string(view.strides[axis]),
             "at least " + std::to_string(reach) + ", or its elements would share cells");
    reach += (view.sizes[axis] - 1) * view.strides[axis];
  }
}

/// True when `output` and `input` are the same cells under the same indices.
template <class A, class B, int RANK>
bool same_cells(const View<A, RANK>& output, const View<B, RANK>& input) {
  if (static_cast<const void*>(output.data) != static_cast<const void*>(input.data)) return false;
  for (int axis = 0; axis < RANK; ++axis)
    if (output.sizes[axis] > 1 && output.strides[axis] != input.strides[axis]) return false;
  return output.sizes == input.sizes;
}

/// True when the memory between the first and the last element of both views has a byte in common.
template <class A, int RANK_A, class B, int RANK_B>
bool spans_overlap(const View<A, RANK_A>& a, const View<B, RANK_B>& b) {
  if (a.empty() || b.empty()) return false;
  const auto first_a = reinterpret_cast<std::uintptr_t>(a.data), first_b = reinterpret_cast<std::uintptr_t>(b.data);
  return first_a < first_b + static_cast<std::uintptr_t>(b.span()) * sizeof(B) &&
         first_b < first_a + static_cast<std::uintptr_t>(a.span()) * sizeof(A);
}

/// Refuses an output that shares memory with an input, unless it is that input exactly. Memory is judged from the first
/// element of a view to its last, so interleaved views are refused although no element is shared.
template <class A, class B, int RANK>
void require_no_partial_overlap(const char* function, const std::string& output_name, const View<A, RANK>& output,
                                const std::string& input_name, const View<B, RANK>& input) {
  if (spans_overlap(output, input) && !same_cells(output, input))
    refuse(function, output_name + ".data", "inside " + input_name, "apart from it, or the same view");
}

/// Refuses an output that shares memory with an input, the same view included: for a kernel that reads an input after
/// it has begun to write. Memory is judged as above.
template <class A, class B, int RANK>
void require_no_overlap(const char* function, const std::string& output_name, const View<A, RANK>& output,
                        const std::string& input_name, const View<B, RANK>& input) {
  if (spans_overlap(output, input)) refuse(function, output_name + ".data", "inside " + input_name, "apart from it");
}

}  // namespace ladder
