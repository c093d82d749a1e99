// One OS thread's record of a launch: each access while a block runs, and what they add up to when it has ended.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/cpu_device/memory.hpp"
#include "common/cpu_device/recording.hpp"
#include "common/cpu_device/symbols.hpp"

namespace ladder::cpu_device {

// The record of one launch, to which all workers add.
class LaunchRecorder {
 public:
  // Throws InvalidArgument, naming the kernel, when a buffer or the launch is too large for its cells.
  LaunchRecorder(Recording what, LaunchRecord launch);
  Recording what() const { return what_; }
  LaunchRecord take();  // when the kernel has ended

 private:
  friend class Recorder;
  Recording what_;
  LaunchRecord launch_;
  std::mutex mutex_{};
  std::map<uint64_t, BufferRequests> requests_{};  // by the buffer's serial
  std::map<std::string, SharedRequests> shared_{};
  std::map<uint64_t, BufferCells> cells_{};
};

class Recorder {
 public:
  // nullptr: nothing is recorded. `segment` is the OS thread's own thread-local segment.
  void begin_launch(LaunchRecorder* launch, Segment segment, uint32_t threads);
  bool on() const { return launch_ != nullptr; }
  void begin_block();
  // A thread of the block that runs touches a buffer or shared memory.
  // `site` tells the places of accesses apart; two of the same number are the same place.
  void access(uint32_t thread, std::uintptr_t address, std::size_t bytes, bool write, uint32_t site);
  // Runs on the OS thread's own stack, not on a fiber: it reads debug information. `name_of(site)` says
  // "file:line:column".
  template <class NameOf>
  void end_block(uint64_t block, NameOf&& name_of) {
    for (const std::vector<Access>& log : log_)
      for (const Access& access : log)
        if (!places_.contains(access.site)) {
          const auto [name, unused] = names_.try_emplace(name_of(access.site), static_cast<uint32_t>(names_.size()));
          places_.emplace(access.site, name->second);
        }
    add_block(block);
  }
  void end_launch();

 private:
  struct Access {
    std::uintptr_t address;
    uint32_t site;
    uint16_t bytes;
    bool write;
  };
  struct Piece {  // one lane's part of a request
    std::uintptr_t address;
    uint32_t bytes, lane;
  };
  // What one warp does at one place: each lane's accesses, in the order in which it made them.
  using Lanes = std::array<std::vector<Piece>, 32>;

  void add_block(uint64_t block);
  void add_requests(std::span<const std::vector<Access>> warp);
  void merge_pieces(std::vector<Access>& log) const;
  void add_request(std::span<const Piece> pieces, bool write);
  void add_shared_request(const std::string& array, std::span<const Piece> pieces);
  void add_cells(uint64_t block);

  LaunchRecorder* launch_ = nullptr;
  Segment segment_{};
  std::vector<std::vector<Access>> log_;             // of the running block, by thread
  std::unordered_map<uint32_t, uint32_t> places_;    // site: its place in the source
  std::unordered_map<std::string, uint32_t> names_;  // "file:line:column": place
  std::vector<Lanes> lanes_;                         // by [2 * place + write]
  std::map<uint64_t, BufferRequests> requests_;      // as in LaunchRecorder, of this OS thread
  std::map<std::string, SharedRequests> shared_;
};

}  // namespace ladder::cpu_device
