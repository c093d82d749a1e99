#include "common/cpu_device/recorder.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "common/kernel/error.hpp"

namespace ladder::cpu_device {
namespace {

constexpr std::uintptr_t SECTOR_BYTES = 32, BANKS = 32, WORD_BYTES = 4;
constexpr std::size_t WIDEST_ACCESS = 16;  // of one instruction of a lane

// Distinct units of `unit` bytes that the pieces touch, and distinct bytes. Sorts them.
struct Extent {
  uint64_t sectors, bytes;
};
template <class Piece>
Extent extent_of(std::vector<Piece>& pieces) {
  std::ranges::sort(pieces, {}, &Piece::address);
  Extent extent{0, 0};
  std::uintptr_t end = 0, next_sector = 0;  // what is counted already lies before these
  for (const Piece& piece : pieces) {
    const std::uintptr_t piece_end = piece.address + piece.bytes;
    if (piece_end > end) extent.bytes += piece_end - std::max(piece.address, end);
    end = std::max(end, piece_end);
    const std::uintptr_t first = std::max(piece.address / SECTOR_BYTES, next_sector);
    const std::uintptr_t last = (piece_end - 1) / SECTOR_BYTES;
    if (last >= first) {
      extent.sectors += last - first + 1;
      next_sector = last + 1;
    }
  }
  return extent;
}

uint32_t saturated_sum(uint32_t a, uint32_t b) { return a > ~b ? ~0u : a + b; }

}  // namespace

LaunchRecorder::LaunchRecorder(Recording what, LaunchRecord launch) : what_(what), launch_(std::move(launch)) {
  if (!what_.cells) return;
  const auto require = [this](uint64_t count, const std::string& of) {
    if (count > MOST_CELLS)
      throw InvalidArgument("recording of " + launch_.kernel + ": " + of + " is " + std::to_string(count) +
                            ", must be at most " + std::to_string(MOST_CELLS));
  };
  require(launch_.blocks() * launch_.threads(), "the number of threads");
  launch_.accesses.resize(launch_.blocks() * launch_.threads());
  Memory::instance().for_each([&](const Allocation& allocation) {
    if (allocation.shared) return;
    const std::size_t size = (allocation.end - allocation.begin) / allocation.element_bytes;
    require(size, "the size of buffer '" + allocation.name + "'");
    cells_[allocation.serial] = {allocation.name, reinterpret_cast<const void*>(allocation.begin),
                                 allocation.element_bytes, std::vector<Cell>(size)};
  });
}

LaunchRecord LaunchRecorder::take() {
  for (auto& [serial, buffer] : requests_) launch_.buffers.push_back(std::move(buffer));
  for (auto& [name, array] : shared_) launch_.shared.push_back(std::move(array));
  for (auto& [serial, buffer] : cells_) {
    const bool touched = std::ranges::any_of(buffer.cells, [](const Cell& c) { return c.block() != Cell::NOBODY; });
    if (touched) launch_.cells.push_back(std::move(buffer));
  }
  return std::move(launch_);
}

void Recorder::begin_launch(LaunchRecorder* launch, Segment segment, uint32_t threads) {
  launch_ = launch;
  segment_ = segment;
  log_.resize(launch ? threads : 0);
}

void Recorder::begin_block() {
  for (std::vector<Access>& log : log_) log.clear();
}

void Recorder::access(uint32_t thread, std::uintptr_t address, std::size_t bytes, bool write, uint32_t site) {
  // A copy of a large struct is one call of the compiler's, and several instructions of a GPU.
  while (bytes > 0) {
    const std::size_t piece = std::min(bytes, WIDEST_ACCESS);
    log_[thread].push_back({address, site, static_cast<uint16_t>(piece), write});
    address += piece;
    bytes -= piece;
  }
}

void Recorder::add_block(uint64_t block) {
  for (std::vector<Access>& log : log_) merge_pieces(log);
  if (launch_->what_.requests)
    for (std::size_t first = 0; first < log_.size(); first += 32)
      add_requests(std::span(log_).subspan(first, std::min<std::size_t>(32, log_.size() - first)));
  if (launch_->what_.cells) add_cells(block);
}

// The compiler may report one wide access in pieces: g++ makes four of a float4, of one line and column, one behind the
// other. They differ in their call; an access that a loop repeats is the same call again.
void Recorder::merge_pieces(std::vector<Access>& log) const {
  std::size_t merged = 0;
  for (std::size_t first = 0; first < log.size(); ++merged) {
    Access whole = log[first];
    const uint32_t place = places_.at(whole.site);
    std::size_t end = first + 1, bytes = whole.bytes;
    for (; end < log.size() && bytes < WIDEST_ACCESS; ++end) {
      const Access& next = log[end];
      const bool again =
          std::any_of(log.begin() + static_cast<std::ptrdiff_t>(first), log.begin() + static_cast<std::ptrdiff_t>(end),
                      [&](const Access& earlier) { return earlier.site == next.site; });
      if (again || next.write != whole.write || next.address != whole.address + bytes ||
          bytes + next.bytes > WIDEST_ACCESS || places_.at(next.site) != place)
        break;
      bytes += next.bytes;
    }
    if (std::has_single_bit(bytes) && whole.address % bytes == 0) {
      whole.bytes = static_cast<uint16_t>(bytes);
      first = end;
    } else {
      ++first;
    }
    log[merged] = whole;
  }
  log.resize(merged);
}

void Recorder::add_requests(std::span<const std::vector<Access>> warp) {
  lanes_.resize(2 * names_.size());
  for (std::size_t lane = 0; lane < warp.size(); ++lane)
    for (const Access& access : warp[lane])
      lanes_[2 * places_.at(access.site) + access.write][lane].push_back(
          {access.address, access.bytes, static_cast<uint32_t>(lane)});
  std::vector<Piece> request;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    std::size_t executions = 0;
    for (const std::vector<Piece>& pieces : lanes_[i]) executions = std::max(executions, pieces.size());
    for (std::size_t k = 0; k < executions; ++k) {
      request.clear();
      for (const std::vector<Piece>& pieces : lanes_[i])
        if (k < pieces.size()) request.push_back(pieces[k]);
      add_request(request, i % 2 == 1);
    }
    for (std::vector<Piece>& pieces : lanes_[i]) pieces.clear();
  }
}

// A place in the source whose lanes go to several buffers or arrays asks each of them.
void Recorder::add_request(std::span<const Piece> pieces, bool write) {
  const Memory& memory = Memory::instance();
  const auto target_of = [&](const Piece& piece) -> const void* {
    if (const Allocation* allocation = memory.find(piece.address)) return allocation;
    const std::size_t offset = piece.address - segment_.begin;
    const auto after = std::ranges::upper_bound(shared_arrays(), offset, {}, &SharedArray::offset);
    return &*(after - 1);
  };
  std::vector<Piece> rest(pieces.begin(), pieces.end()), request;
  while (!rest.empty()) {
    const void* target = target_of(rest.front());
    request.clear();
    std::erase_if(rest, [&](const Piece& piece) {
      const bool here = target_of(piece) == target;
      if (here) request.push_back(piece);
      return here;
    });
    const Allocation* allocation = memory.find(request.front().address);
    if (!allocation || allocation->shared) {
      add_shared_request(allocation ? allocation->name : static_cast<const SharedArray*>(target)->name, request);
      continue;
    }
    BufferRequests& buffer = requests_[allocation->serial];
    buffer.buffer = allocation->name;
    RequestCounts& counts = write ? buffer.written : buffer.read;
    for (const Piece& piece : request) counts.bytes += piece.bytes;
    const Extent extent = extent_of(request);
    ++counts.requests;
    counts.sectors += extent.sectors;
    counts.ideal_sectors += (extent.bytes + SECTOR_BYTES - 1) / SECTOR_BYTES;
  }
}

void Recorder::add_shared_request(const std::string& array, std::span<const Piece> pieces) {
  SharedRequests& counts = shared_[array];
  counts.array = array;
  ++counts.requests;
  uint32_t widest = 0;
  for (const Piece& piece : pieces) widest = std::max(widest, piece.bytes);
  const uint32_t lanes_at_a_time = widest <= 4 ? 32 : widest <= 8 ? 16 : 8;
  std::vector<std::uintptr_t> words;
  for (uint32_t first = 0; first < 32; first += lanes_at_a_time) {
    words.clear();
    for (const Piece& piece : pieces) {
      if (piece.lane < first || piece.lane >= first + lanes_at_a_time) continue;
      const std::uintptr_t last = (piece.address + piece.bytes - 1) / WORD_BYTES;
      for (std::uintptr_t word = piece.address / WORD_BYTES; word <= last; ++word) words.push_back(word);
    }
    if (words.empty()) continue;
    std::ranges::sort(words);
    words.erase(std::unique(words.begin(), words.end()), words.end());
    std::array<uint64_t, BANKS> in_bank{};
    for (std::uintptr_t word : words) ++in_bank[word % BANKS];
    counts.wavefronts += *std::ranges::max_element(in_bank);
    ++counts.ideal_wavefronts;
  }
}

void Recorder::add_cells(uint64_t block) {
  const auto number = static_cast<uint32_t>(block);
  const std::lock_guard lock(launch_->mutex_);
  for (std::size_t thread = 0; thread < log_.size(); ++thread)
    for (const Access& access : log_[thread]) {
      const Allocation* allocation = Memory::instance().find(access.address);
      if (!allocation || allocation->shared) continue;
      std::vector<Cell>& cells = launch_->cells_.at(allocation->serial).cells;
      const std::size_t offset = access.address - allocation->begin, element = allocation->element_bytes;
      uint32_t& accesses = launch_->launch_.accesses[block * log_.size() + thread];
      for (std::size_t i = offset / element; i <= (offset + access.bytes - 1) / element && i < cells.size(); ++i) {
        Cell& cell = cells[i];
        uint32_t& count = access.write ? cell.writes : cell.reads;
        uint32_t& first = access.write ? cell.writer : cell.reader;
        count = saturated_sum(count, 1);
        first = std::min(first, number);
        accesses = saturated_sum(accesses, 1);
      }
    }
}

void Recorder::end_launch() {
  if (!launch_) return;
  const std::lock_guard lock(launch_->mutex_);
  const auto add = [](RequestCounts& sum, const RequestCounts& counts) {
    sum.bytes += counts.bytes;
    sum.requests += counts.requests;
    sum.sectors += counts.sectors;
    sum.ideal_sectors += counts.ideal_sectors;
  };
  for (const auto& [serial, counts] : std::exchange(requests_, {})) {
    BufferRequests& sum = launch_->requests_[serial];
    sum.buffer = counts.buffer;
    add(sum.read, counts.read);
    add(sum.written, counts.written);
  }
  for (const auto& [name, counts] : std::exchange(shared_, {})) {
    SharedRequests& sum = launch_->shared_[name];
    sum.array = name;
    sum.requests += counts.requests;
    sum.wavefronts += counts.wavefronts;
    sum.ideal_wavefronts += counts.ideal_wavefronts;
  }
  log_.clear();
  launch_ = nullptr;
}

}  // namespace ladder::cpu_device
