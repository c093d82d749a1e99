// Device memory: every allocation in its own slot of one reserved address range, with inaccessible memory around it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace ladder::cpu_device {

// A std::bad_alloc that says what was wanted.
class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(const std::string& what) : what_(what) {}
  const char* what() const noexcept override { return what_.what(); }

 private:
  std::runtime_error what_;  // whose copies do not throw
};

struct Bytes {
  uint64_t read = 0, written = 0;
};

struct Allocation {
  std::uintptr_t begin = 0, end = 0;  // the bytes that were asked for
  std::size_t element_bytes = 1;
  std::string name;
  bool shared = false;      // a block's dynamic shared memory, not a buffer
  std::size_t counter = 0;  // its place in the traffic counters of each OS thread
  uint64_t serial = 0;      // in order of allocation
  std::uintptr_t slot_begin = 0;
  std::size_t slot_bytes = 0;
  Bytes traffic;
  // One byte for each 4 of memory: a bit for each that has been written. None in a build that does not see accesses.
  struct Free {
    void operator()(void* memory) const noexcept;
  };
  std::unique_ptr<uint8_t, Free> initialised{};
};

constexpr uint8_t WORD_INITIALISED = 0xf;
// Marks bytes [offset, offset + bytes) as written, or as not. Two OS threads may write parts of one word.
void set_initialised(uint8_t* words, std::size_t offset, std::size_t bytes, bool value);
// The first byte of them that nothing has written, or offset + bytes. `memory` is where they lie. A struct is copied
// with its padding, which no thread writes: bytes behind others, up to a multiple of an alignment and fewer than that.
// They count as written, and so does what no longer holds the poison: g++ tells of no store that is a call's result.
std::size_t first_uninitialised(const uint8_t* words, std::size_t offset, std::size_t bytes, const uint8_t* memory);

class Memory {
 public:
  static Memory& instance();

  void* allocate(std::size_t bytes, std::size_t element_bytes, std::string name, bool shared = false);
  void release(void* memory) noexcept;
  bool slack_intact(const void* memory) const;
  void set_initialised(const void* memory, std::size_t bytes, bool value);

  // The allocation whose slot holds the address, inside or outside its bounds; nullptr when no slot does. One
  // subtraction and one load: this runs at every access of every kernel.
  Allocation* find(std::uintptr_t address) const {
    const std::uintptr_t offset = address - arena_;
    return offset < ARENA_BYTES ? owners_[offset / GRANULE].load(std::memory_order_relaxed) : nullptr;
  }
  bool in_arena(std::uintptr_t address) const { return address - arena_ < ARENA_BYTES; }

  // Traffic is counted per OS thread while a kernel runs, and added here when it ends.
  std::size_t counters() const { return counters_.load(std::memory_order_relaxed); }
  void add_traffic(const std::vector<Bytes>& traffic);
  template <class Body>
  void for_each(Body&& body) {
    const std::lock_guard lock(mutex_);
    for (auto& [serial, allocation] : allocations_) body(*allocation);
  }

 private:
  Memory();
  ~Memory();

  static constexpr std::size_t GRANULE = std::size_t{16} << 20;       // also the width of the guards
  static constexpr std::size_t ARENA_BYTES = std::size_t{256} << 30;  // reserved, not used
  static constexpr std::size_t GRANULES = ARENA_BYTES / GRANULE;

  std::uintptr_t take_slot(std::size_t bytes);

  std::uintptr_t arena_ = 0;
  std::size_t used_ = 0;
  std::array<std::atomic<Allocation*>, GRANULES> owners_{};
  mutable std::mutex mutex_;
  std::atomic<std::size_t> counters_{0};
  std::vector<std::size_t> free_counters_;
  uint64_t next_serial_ = 0;
  std::map<uint64_t, std::unique_ptr<Allocation>> allocations_;  // by serial
  std::map<std::uintptr_t, Allocation*> by_address_;
  std::multimap<std::size_t, std::uintptr_t> free_slots_;  // by size
};

}  // namespace ladder::cpu_device
