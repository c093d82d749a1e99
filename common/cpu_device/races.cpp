#include "common/cpu_device/races.hpp"

#include <algorithm>
#include <bit>

namespace ladder::cpu_device {
namespace {

constexpr std::size_t LINE_BYTES = 256;
// Lines of this many are kept over to the next block, which often touches the same; more are let go.
constexpr std::size_t LINES_KEPT = 128;

}  // namespace

void Races::forget() {
  std::ranges::fill(table_, Entry{});
  recent_ = {};
  used_ = 0;
}

void Races::begin_block(uint32_t warps) {
  if (used_ > LINES_KEPT) forget();
  if (warps_.size() < warps) warps_.resize(warps);
  block_barrier();
}

void Races::block_barrier() {
  if (++interval_ == 0) {  // 2^32 barriers later: old cells would look new
    forget();
    lines_.clear();
    interval_ = 1;
  }
  for (WarpClock& warp : warps_)
    if (warp.events != 0) warp = {};
}

void Races::warp_barrier(uint32_t warp_index, uint32_t mask) {
  WarpClock& warp = warps_[warp_index];
  const uint32_t event = ++warp.events;
  std::array<uint32_t, LANES> all{};
  for (uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1) {
    const auto& known = warp.known[static_cast<std::size_t>(std::countr_zero(lanes))];
    for (uint32_t other = 0; other < LANES; ++other) all[other] = std::max(all[other], known[other]);
  }
  for (uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1)
    all[static_cast<std::size_t>(std::countr_zero(lanes))] = event;
  for (uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(lanes));
    warp.known[lane] = all;
    warp.own[lane] = event;
  }
}

// An access carries the clock of its lane, the lane's last event; who knows of a later event knows of the access.
inline bool Races::ordered(uint32_t thread, uint32_t other_thread, uint32_t other_clock) const {
  if (thread == other_thread) return true;
  if (thread / LANES != other_thread / LANES) return false;
  return warps_[thread / LANES].known[thread % LANES][other_thread % LANES] > other_clock;
}

Races::Line& Races::insert(std::uintptr_t key) {
  if (2 * (used_ + 1) > table_.size()) {
    std::vector<Entry> old(table_.size() * 2);
    old.swap(table_);
    for (const Entry& entry : old)
      if (entry.key != 0) {
        std::size_t at = entry.key * 0x9e3779b97f4a7c15u >> (64 - std::countr_zero(table_.size()));
        while (table_[at].key != 0) at = (at + 1) % table_.size();
        table_[at] = entry;
      }
  }
  if (used_ == lines_.size()) lines_.push_back(std::make_unique<Line>());
  Line& line = *lines_[used_++];
  line.bytes = nullptr;
  std::size_t at = key * 0x9e3779b97f4a7c15u >> (64 - std::countr_zero(table_.size()));
  while (table_[at].key != 0) at = (at + 1) % table_.size();
  table_[at] = {key, &line};
  return line;
}

[[gnu::always_inline]] inline Races::Line& Races::line_at(std::uintptr_t address) {
  const std::uintptr_t key = address / LINE_BYTES + 1;
  Entry& recent = recent_[key % recent_.size()];
  if (recent.key != key) [[unlikely]]
    recent = {key, &find(key)};
  return *recent.line;
}

Races::Line& Races::find(std::uintptr_t key) {
  std::size_t at = key * 0x9e3779b97f4a7c15u >> (64 - std::countr_zero(table_.size()));
  while (table_[at].key != key) {
    if (table_[at].key == 0) return insert(key);
    at = (at + 1) % table_.size();
  }
  return *table_[at].line;
}

void Races::split(Line& line) {
  line.bytes = std::make_unique<std::array<Cell, LINE_WORDS * 4>>();
  for (std::size_t byte = 0; byte < line.bytes->size(); ++byte) (*line.bytes)[byte] = line.words[byte / 4];
}

// True when one of them is not ordered before `thread`: that one is found.
[[gnu::always_inline]] inline bool Races::unordered(const Touched& touched, uint32_t thread, Conflict& found) const {
  if (touched.interval != interval_) return false;
  const uint32_t warp = thread / LANES;
  if (touched.thread / LANES != warp || !ordered(thread, touched.thread, touched.clock)) {
    found.thread = touched.thread;
    found.site = touched.site;
    return true;
  }
  if (touched.other_thread != NOBODY) {
    found.thread = touched.other_thread;
    found.site = touched.other_site;
    return true;
  }
  for (uint32_t lanes = touched.lanes; lanes != 0; lanes &= lanes - 1) {
    const uint32_t other = warp * LANES + static_cast<uint32_t>(std::countr_zero(lanes));
    if (ordered(thread, other, touched.clock)) continue;
    found.thread = other;
    found.site = touched.site;
    return true;
  }
  return false;
}

[[gnu::always_inline]] inline bool Races::conflict(const Cell& cell, uint32_t thread, const Access& access,
                                                   Conflict& found) const {
  found.write = true;
  if (cell.write_interval == interval_ && !ordered(thread, cell.write_thread, cell.write_clock)) {
    found.thread = cell.write_thread;
    found.site = cell.write_site;
    return true;
  }
  if (!access.atomic && unordered(cell.atomics, thread, found)) return true;
  found.write = false;
  return access.write && unordered(cell.reads, thread, found);
}

[[gnu::always_inline]] inline void Races::remember(Touched& touched, uint32_t thread, uint32_t site) const {
  const uint32_t clock = warps_[thread / LANES].own[thread % LANES], lane = thread % LANES;
  if (touched.interval != interval_) {
    touched = {interval_, clock, site, 1u << lane, static_cast<uint16_t>(thread), NOBODY, 0};
    return;
  }
  if (touched.thread / LANES != thread / LANES) {
    touched.other_thread = static_cast<uint16_t>(thread);
    touched.other_site = site;
    return;
  }
  if (clock != touched.clock) {
    // Those that this thread knows of need no longer be remembered: who is ordered after it is ordered after them.
    // Where some remain, with another clock, the older clock stands for all: no false report, at the price of a missed
    // one when only some lanes take part in a __syncwarp.
    uint32_t unknown = 0;
    for (uint32_t lanes = touched.lanes; lanes != 0; lanes &= lanes - 1) {
      const auto other = static_cast<uint32_t>(std::countr_zero(lanes));
      if (!ordered(thread, thread / LANES * LANES + other, touched.clock)) unknown |= 1u << other;
    }
    touched.lanes = unknown;
    touched.clock = unknown == 0 ? clock : std::min(clock, touched.clock);
    if ((unknown >> touched.thread % LANES & 1) == 0) {
      touched.thread = static_cast<uint16_t>(thread);
      touched.site = site;
    }
  }
  touched.lanes |= 1u << lane;
}

bool Races::access(uint32_t thread, const Access& access, Conflict& found) {
  std::uintptr_t address = access.address;
  const std::uintptr_t end = address + access.bytes;
  while (address < end) {
    Line& line = line_at(address);
    const std::uintptr_t line_end = std::min(end, (address / LINE_BYTES + 1) * LINE_BYTES);
    if (!line.bytes && (address % 4 != 0 || line_end % 4 != 0)) split(line);
    Cell* const cells = line.bytes ? line.bytes->data() : line.words.data();
    const std::size_t cell_bytes = line.bytes ? 1 : 4;
    for (; address < line_end; address += cell_bytes) {
      Cell& cell = cells[address % LINE_BYTES / cell_bytes];
      if (conflict(cell, thread, access, found)) {
        found.address = address;
        return true;
      }
      if (access.atomic) {
        remember(cell.atomics, thread, access.site);
      } else if (access.write) {
        cell.write_interval = interval_;
        cell.write_clock = warps_[thread / LANES].own[thread % LANES];
        cell.write_site = access.site;
        cell.write_thread = thread;
        cell.reads.interval = cell.atomics.interval = 0;
      } else {
        remember(cell.reads, thread, access.site);
      }
    }
  }
  return false;
}

}  // namespace ladder::cpu_device
