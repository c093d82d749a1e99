// Device memory with an owner, a name, poison and guards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/harness/device.hpp"
#include "common/kernel/view.hpp"

namespace ladder {

/// `size` elements of T on the device. Before the first write every float in it is a NaN, so what a kernel skipped
/// shows. A known pattern lies on both sides; guards_intact() tells whether somebody wrote there.
/// (The CPU device catches such a write itself, and also a read, in its checked build.)
template <class T>
class Buffer {
 public:
  /// A buffer that holds poison.
  Buffer(std::string name, int64_t size) : size_(size), memory_(device_allocate(bytes(), sizeof(T), name)) {}
  /// A buffer that holds `values`.
  Buffer(std::string name, const std::vector<T>& values)
      : Buffer(std::move(name), static_cast<int64_t>(values.size())) {
    upload(values);
  }

  /// The first element, on the device: no host code may read it on a GPU.
  T* data() const { return static_cast<T*>(memory_.get()); }
  /// The number of elements.
  int64_t size() const { return size_; }

  /// A contiguous view of these sizes on the first elements; it may reach to the end of the buffer.
  template <class... Sizes>
  View<T, sizeof...(Sizes)> view(Sizes... sizes) const {
    auto view = contiguous(data(), sizes...);
    view.extent = size_;
    return view;
  }

  /// Copies `values` to the device. Throws std::length_error unless there are size() of them.
  void upload(const std::vector<T>& values) {
    if (static_cast<int64_t>(values.size()) != size_)
      throw std::length_error("Buffer::upload: wrong number of elements");
    copy_to_device(data(), values.data(), bytes());
  }
  /// Copies all elements to the host, after the kernels before it have ended.
  std::vector<T> download() const {
    std::vector<T> values(static_cast<std::size_t>(size_));
    copy_from_device(values.data(), data(), bytes());
    return values;
  }
  /// Sets every element to `value`.
  void fill(T value) { upload(std::vector<T>(static_cast<std::size_t>(size_), value)); }
  /// Makes the buffer as it was before its first write.
  void poison() { device_poison(data(), bytes()); }

  /// False when somebody wrote before the first or behind the last element.
  bool guards_intact() const { return device_guards_intact(memory_.get()); }

 private:
  struct Free {
    void operator()(void* memory) const noexcept { device_free(memory); }
  };
  std::size_t bytes() const { return static_cast<std::size_t>(size_) * sizeof(T); }

  int64_t size_ = 0;
  std::unique_ptr<void, Free> memory_;
};

}  // namespace ladder
