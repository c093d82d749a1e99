// Two threads of a block, one cell, at least one write, and nothing that orders the two: a race, whatever the order in
// which they happened to run here.
//
// __syncthreads orders the whole block, __syncwarp(mask) the lanes of its mask; shuffles and votes order nothing. So
// time is told in two clocks. An interval is what lies between two block barriers. Within it each __syncwarp is an
// event of its warp, and every lane remembers up to which event it knows of each other lane: a vector clock (Lamport
// 1978; Fidge 1988), of 32 entries, since lanes of different warps are never ordered within an interval.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace ladder::cpu_device {

class Races {
 public:
  struct Access {
    std::uintptr_t address;
    uint32_t bytes;
    bool write;
    bool atomic;    // atomics do not race with each other
    uint32_t site;  // what the caller knows the place by
  };
  struct Conflict {
    std::uintptr_t address;  // of the cell
    uint32_t thread, site;   // of the other access
    bool write;              // the other was a write
  };

  // What no thread of the new block has touched.
  void begin_block(uint32_t warps);
  // All threads have reached a block barrier.
  void block_barrier();
  // The lanes of `mask` in `warp` have reached a __syncwarp.
  void warp_barrier(uint32_t warp, uint32_t mask);

  // Remembers an access of `thread`. True when it conflicts with an earlier one, `found`.
  bool access(uint32_t thread, const Access& access, Conflict& found);

 private:
  static constexpr uint32_t LANES = 32;
  static constexpr uint32_t LINE_WORDS = 64;
  static constexpr uint16_t NOBODY = 0xffff;

  // Threads that have touched a cell in one way since the last block barrier; in an interval that has passed, none.
  struct Touched {
    uint32_t interval, clock, site;
    uint32_t lanes;  // of the warp of `thread`
    uint16_t thread;
    uint16_t other_thread;  // one in another warp: then every thread has one in a warp not its own
    uint32_t other_site;
  };
  // 4 bytes; one byte where a kernel's accesses are narrower. A plain write is ordered after all that was there, else
  // it is reported, and stands for it. An atomic one does not: others need not be ordered with it, and with what it
  // would stand for they must be.
  struct Cell {
    uint32_t write_interval, write_clock, write_site;  // of the last plain write
    uint32_t write_thread;
    Touched reads, atomics;  // since then
  };
  struct Line {
    std::array<Cell, LINE_WORDS> words;
    std::unique_ptr<std::array<Cell, LINE_WORDS * 4>> bytes;  // takes the place of words once it is there
  };
  struct Entry {
    std::uintptr_t key;  // address / bytes of a line, plus 1; 0 is free
    Line* line;
  };
  struct WarpClock {
    uint32_t events = 0;
    std::array<uint32_t, LANES> own{};                       // the lane's last event
    std::array<std::array<uint32_t, LANES>, LANES> known{};  // [lane][other]: accesses before this event are known
  };

  Line& line_at(std::uintptr_t address);
  Line& find(std::uintptr_t key);
  Line& insert(std::uintptr_t key);
  void forget();
  static void split(Line& line);
  bool ordered(uint32_t thread, uint32_t other_thread, uint32_t other_clock) const;
  bool unordered(const Touched& touched, uint32_t thread, Conflict& found) const;
  bool conflict(const Cell& cell, uint32_t thread, const Access& access, Conflict& found) const;
  void remember(Touched& touched, uint32_t thread, uint32_t site) const;

  uint32_t interval_ = 1;
  std::vector<WarpClock> warps_;
  std::vector<Entry> table_ = std::vector<Entry>(1024);  // open addressing, a power of two
  std::size_t used_ = 0;
  std::array<Entry, 16> recent_{};            // lines found last, by the last bits of their key
  std::vector<std::unique_ptr<Line>> lines_;  // handed out in order; stale cells speak of intervals that have passed
};

}  // namespace ladder::cpu_device
