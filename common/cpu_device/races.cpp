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

[[gnu::always_inline]] inline bool Races::conflict(Cell& cell, uint32_t thread, const Access& access,
                                                   Conflict& found) const {
  const uint32_t warp = thread / LANES;
  if (cell.write_interval == interval_ && !(access.atomic && cell.atomic_thread != NOBODY)) {
    for (const uint32_t writer : {cell.write_thread, cell.atomic_thread}) {
      if (writer == NOBODY || ordered(thread, writer, cell.write_clock)) continue;
      found = {access.address, writer, cell.write_site, true};
      return true;
    }
  }
  if (!access.write || cell.read_interval != interval_) return false;
  const uint32_t reader_warp = cell.read_thread / LANES;
  if (reader_warp != warp) {
    found = {access.address, cell.read_thread, cell.read_site, false};
    return true;
  }
  if (cell.other_thread != NOBODY) {
    found = {access.address, cell.other_thread, cell.other_site, false};
    return true;
  }
  if (!ordered(thread, cell.read_thread, cell.read_clock)) {
    found = {access.address, cell.read_thread, cell.read_site, false};
    return true;
  }
  for (uint32_t lanes = cell.readers; lanes != 0; lanes &= lanes - 1) {
    const uint32_t reader = warp * LANES + static_cast<uint32_t>(std::countr_zero(lanes));
    if (ordered(thread, reader, cell.read_clock)) continue;
    found = {access.address, reader, cell.read_site, false};
    return true;
  }
  return false;
}

[[gnu::always_inline]] inline void Races::remember_read(Cell& cell, uint32_t thread, const Access& access) const {
  const uint32_t clock = warps_[thread / LANES].own[thread % LANES], lane = thread % LANES;
  if (cell.read_interval != interval_) {
    cell.read_interval = interval_;
    cell.read_clock = clock;
    cell.read_site = access.site;
    cell.readers = 1u << lane;
    cell.read_thread = static_cast<uint16_t>(thread);
    cell.other_thread = NOBODY;
    return;
  }
  if (cell.read_thread / LANES != thread / LANES) {
    cell.other_thread = static_cast<uint16_t>(thread);
    cell.other_site = access.site;
    return;
  }
  if (clock != cell.read_clock) {
    // Readers that this one knows of need no longer be remembered: who is ordered after it is ordered after them. Where
    // some remain, with another clock, the older clock stands for all: no false report, at the price of a missed one
    // when only some lanes take part in a __syncwarp.
    uint32_t unknown = 0;
    for (uint32_t lanes = cell.readers; lanes != 0; lanes &= lanes - 1) {
      const auto reader = static_cast<uint32_t>(std::countr_zero(lanes));
      if (!ordered(thread, thread / LANES * LANES + reader, cell.read_clock)) unknown |= 1u << reader;
    }
    cell.readers = unknown;
    cell.read_clock = unknown == 0 ? clock : std::min(clock, cell.read_clock);
    if ((unknown >> cell.read_thread % LANES & 1) == 0) {
      cell.read_thread = static_cast<uint16_t>(thread);
      cell.read_site = access.site;
    }
  }
  cell.readers |= 1u << lane;
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
      if (access.write) {
        const bool earlier = access.atomic && cell.write_interval == interval_ && cell.write_thread != thread &&
                             !ordered(thread, cell.write_thread, cell.write_clock);
        cell.atomic_thread = !access.atomic ? NOBODY : earlier ? cell.write_thread : static_cast<uint16_t>(thread);
        cell.write_interval = interval_;
        cell.write_clock = warps_[thread / LANES].own[thread % LANES];
        cell.write_site = access.site;
        cell.write_thread = static_cast<uint16_t>(thread);
        cell.read_interval = 0;  // all of them are ordered before this write: who comes after it comes after them
      } else {
        remember_read(cell, thread, access);
      }
    }
  }
  return false;
}

}  // namespace ladder::cpu_device
