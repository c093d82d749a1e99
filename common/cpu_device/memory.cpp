#include "common/cpu_device/memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>

#include "common/cpu_device/control.hpp"
#include "common/cpu_device/sanitizers.hpp"

namespace ladder::cpu_device {
namespace {

constexpr int POISON = 0xff;            // four of these bytes are a NaN, and an int of -1
constexpr std::size_t ALIGNMENT = 256;  // what cudaMalloc promises

std::size_t round_up(std::size_t value, std::size_t multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace

void Allocation::Free::operator()(void* memory) const noexcept { std::free(memory); }

void set_initialised(uint8_t* words, std::size_t offset, std::size_t bytes, bool value) {
  const std::size_t end = offset + bytes;
  while (offset < end) {
    if (offset % 4 == 0 && end - offset >= 4) {
      const std::size_t whole = (end - offset) / 4;
      std::memset(words + offset / 4, value ? WORD_INITIALISED : 0, whole);
      offset += whole * 4;
    } else {
      const std::atomic_ref<uint8_t> word(words[offset / 4]);
      const auto bit = static_cast<uint8_t>(1u << offset % 4);
      if (value)
        word.fetch_or(bit, std::memory_order_relaxed);
      else
        word.fetch_and(static_cast<uint8_t>(~bit), std::memory_order_relaxed);
      ++offset;
    }
  }
}

std::size_t first_uninitialised(const uint8_t* words, std::size_t offset, std::size_t bytes, const uint8_t* memory) {
  const std::size_t end = offset + bytes;
  const auto written = [&](std::size_t byte) {
    return (words[byte / 4] >> byte % 4 & 1) != 0 || memory[byte - offset] != POISON;
  };
  const bool piece =
      !std::has_single_bit(bytes);  // perhaps of a struct, which clang copies without what it has changed
  for (std::size_t at = offset; at < end;) {
    if (written(at)) {
      ++at;
      continue;
    }
    const std::size_t first = at;
    while (at < end && !written(at)) ++at;
    const auto after = reinterpret_cast<std::uintptr_t>(memory) + (at - offset);
    const std::size_t alignment = std::min<std::size_t>(16, after & -after);
    const bool inside = first != offset || (piece && (at != end || bytes % 4 != 0));
    if (!inside || at - first >= alignment) return first;
  }
  return end;
}

Memory& Memory::instance() {
  static Memory memory;
  return memory;
}

Memory::Memory() {
  void* arena = mmap(nullptr, ARENA_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (arena == MAP_FAILED)
    throw OutOfMemory("the CPU device reserves " + std::to_string(ARENA_BYTES >> 30) +
                      " GiB of addresses for its buffers, and the system refuses (ulimit -v, or vm.overcommit_memory)");
  arena_ = reinterpret_cast<std::uintptr_t>(arena);
}
Memory::~Memory() { munmap(reinterpret_cast<void*>(arena_), ARENA_BYTES); }

std::uintptr_t Memory::take_slot(std::size_t bytes) {
  if (const auto slot = free_slots_.find(bytes); slot != free_slots_.end()) {
    const std::uintptr_t begin = slot->second;
    free_slots_.erase(slot);
    return begin;
  }
  if (bytes > ARENA_BYTES - used_)
    throw OutOfMemory("the buffers take more than the " + std::to_string(ARENA_BYTES >> 30) +
                      " GiB of addresses that the CPU device reserves");
  used_ += bytes;
  return arena_ + used_ - bytes;
}

void* Memory::allocate(std::size_t bytes, std::size_t element_bytes, std::string name, bool shared) {
  const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  // The poison touches every page, and a system that promised more than it has would end the process.
  const std::size_t most = std::min(ARENA_BYTES / 2, page * static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)));
  const auto refuse = [&](const std::string& why) {
    throw OutOfMemory("buffer '" + name + "': " + std::to_string(bytes) + " bytes, " + why);
  };
  if (bytes > most) refuse("must be at most " + std::to_string(most) + ", the memory of this machine");
  auto allocation = std::make_unique<Allocation>();
  if (checks_accesses()) {  // zero pages, of which only those that are touched take memory
    allocation->initialised.reset(static_cast<uint8_t*>(std::calloc(bytes / 4 + 1, 1)));
    if (!allocation->initialised) refuse("and the system has no memory for them");
  }
  const std::lock_guard lock(mutex_);
  const std::size_t body = round_up(std::max<std::size_t>(bytes, 1), ALIGNMENT);
  const std::size_t open = round_up(body, page);  // the pages that can be touched
  const std::size_t slot_bytes = round_up(open + 2 * GRANULE, GRANULE);
  const std::uintptr_t slot = take_slot(slot_bytes);
  const auto pages = reinterpret_cast<void*>(slot + GRANULE);
  if (mprotect(pages, open, PROT_READ | PROT_WRITE) != 0) {
    free_slots_.emplace(slot_bytes, slot);
    refuse("and the system has no memory for them");
  }
  std::memset(pages, POISON, open);

  // The end lies as close to the inaccessible page behind it as the alignment allows.
  allocation->begin = slot + GRANULE + open - body;
  allocation->end = allocation->begin + bytes;
  allocation->element_bytes = element_bytes;
  allocation->name = std::move(name);
  allocation->shared = shared;
  allocation->serial = next_serial_++;
  if (free_counters_.empty()) {
    allocation->counter = counters_.fetch_add(1, std::memory_order_relaxed);
  } else {
    allocation->counter = free_counters_.back();
    free_counters_.pop_back();
  }
  allocation->slot_begin = slot;
  allocation->slot_bytes = slot_bytes;
  poison_for_sanitizer(pages, open);
  unpoison_for_sanitizer(reinterpret_cast<void*>(allocation->begin), bytes);
  for (std::size_t granule = (slot - arena_) / GRANULE; granule < (slot - arena_ + slot_bytes) / GRANULE; ++granule)
    owners_[granule].store(allocation.get(), std::memory_order_relaxed);
  by_address_[allocation->begin] = allocation.get();
  void* memory = reinterpret_cast<void*>(allocation->begin);
  const uint64_t serial = allocation->serial;
  allocations_[serial] = std::move(allocation);
  return memory;
}

void Memory::release(void* memory) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = by_address_.find(reinterpret_cast<std::uintptr_t>(memory));
  if (found == by_address_.end()) return;
  const Allocation& allocation = *found->second;
  const std::uintptr_t slot = allocation.slot_begin;
  const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t open = round_up(std::max(allocation.end, allocation.begin + 1), page) - (slot + GRANULE);
  unpoison_for_sanitizer(reinterpret_cast<void*>(slot + GRANULE), open);
  // Fresh, inaccessible pages: the memory goes back to the system, and a use after this is a fault.
  mmap(reinterpret_cast<void*>(slot), allocation.slot_bytes, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  for (std::size_t granule = (slot - arena_) / GRANULE; granule < (slot - arena_ + allocation.slot_bytes) / GRANULE;
       ++granule)
    owners_[granule].store(nullptr, std::memory_order_relaxed);
  free_slots_.emplace(allocation.slot_bytes, slot);
  free_counters_.push_back(allocation.counter);
  const uint64_t serial = allocation.serial;
  by_address_.erase(found);
  allocations_.erase(serial);
}

bool Memory::slack_intact(const void* memory) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_address_.find(reinterpret_cast<std::uintptr_t>(memory));
  if (found == by_address_.end()) return false;
  const Allocation& allocation = *found->second;
  const auto intact = [](std::uintptr_t begin, std::uintptr_t end) {
    const ReadableForSanitizer readable(reinterpret_cast<void*>(begin), end - begin);
    return std::all_of(reinterpret_cast<const unsigned char*>(begin), reinterpret_cast<const unsigned char*>(end),
                       [](unsigned char byte) { return byte == POISON; });
  };
  const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return intact(allocation.slot_begin + GRANULE, allocation.begin) &&
         intact(allocation.end, round_up(std::max(allocation.end, allocation.begin + 1), page));
}

void Memory::set_initialised(const void* memory, std::size_t bytes, bool value) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  Allocation* allocation = find(address);
  if (allocation && allocation->initialised)
    cpu_device::set_initialised(allocation->initialised.get(), address - allocation->begin, bytes, value);
}

void Memory::add_traffic(const std::vector<Bytes>& traffic) {
  for_each([&](Allocation& allocation) {
    if (allocation.counter >= traffic.size()) return;
    allocation.traffic.read += traffic[allocation.counter].read;
    allocation.traffic.written += traffic[allocation.counter].written;
  });
}

}  // namespace ladder::cpu_device
