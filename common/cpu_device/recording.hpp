// What a recorded launch gives: plain data, for whoever prints a table or draws a picture of it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace ladder::cpu_device {

/// What is recorded of each launch.
/// requests: what the warps ask of memory. cells: who touched each element of each buffer, and how much each thread
/// did.
struct Recording {
  bool requests = false, cells = false;
};

/// A request is one access of one place in the source by the lanes of a warp that make it: the k-th time that a lane
/// comes there belongs with the k-th time of the other lanes. A sector is 32 bytes of memory, at a multiple of 32: what
/// a GPU moves at least.
struct RequestCounts {
  uint64_t bytes = 0;  // asked for: an address that all lanes read counts 32 times
  uint64_t requests = 0;
  uint64_t sectors = 0;        // distinct ones of each request
  uint64_t ideal_sectors = 0;  // if the distinct bytes of each request lay together, at a multiple of 32
};
struct BufferRequests {
  std::string buffer;
  RequestCounts read, written;
};

/// Shared memory has 32 banks of 4 bytes. In one wavefront each bank gives one word, to as many lanes as ask for it.
/// A request of 8 bytes a lane takes at least two, a half of the warp at a time, one of 16 bytes four.
struct SharedRequests {
  std::string array;  // its name, or "dynamic shared memory"
  uint64_t requests = 0, wavefronts = 0, ideal_wavefronts = 0;
};

/// What happened to one element of a buffer.
struct Cell {
  static constexpr uint32_t NOBODY = std::numeric_limits<uint32_t>::max();
  uint32_t reads = 0, writes = 0;
  uint32_t writer = NOBODY, reader = NOBODY;  // of the blocks that did, the one with the lowest number

  /// The block that it belongs to: the one that wrote it, else the one that read it.
  uint32_t block() const { return writer != NOBODY ? writer : reader; }
};
struct BufferCells {
  std::string buffer;
  const void* data;
  std::size_t element_bytes;
  std::vector<Cell> cells;
};

struct LaunchRecord {
  std::string kernel;  // "step04::softmax_kernel<2048>"
  std::array<uint32_t, 3> grid{}, block{};
  std::size_t dynamic_shared_bytes = 0;
  std::vector<BufferRequests> buffers{};  // those that the kernel touched, in order of allocation
  std::vector<SharedRequests> shared{};   // likewise, by name
  std::vector<BufferCells> cells{};       // as buffers
  std::vector<uint32_t> accesses{};       // elements of buffers, by [block * threads of a block + thread]

  uint64_t blocks() const { return uint64_t{grid[0]} * grid[1] * grid[2]; }
  uint32_t threads() const { return block[0] * block[1] * block[2]; }
};

/// The largest buffer, in elements, and the largest launch, in threads, of which cells are recorded.
constexpr uint64_t MOST_CELLS = uint64_t{1} << 24;

}  // namespace ladder::cpu_device
