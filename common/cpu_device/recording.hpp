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
struct Recording {
  bool requests = false;  ///< What the warps ask of memory.
  bool cells = false;     ///< Who touched each element of each buffer, and how much each thread did.
};

/// A request is one access of one place in the source by the lanes of a warp that make it: the k-th time that a lane
/// comes there belongs with the k-th time of the other lanes. A sector is 32 bytes of memory, at a multiple of 32: what
/// a GPU moves at least.
struct RequestCounts {
  uint64_t bytes = 0;          ///< Asked for: an address that all lanes read counts 32 times.
  uint64_t requests = 0;       ///< How many.
  uint64_t sectors = 0;        ///< Distinct ones of each request, summed.
  uint64_t ideal_sectors = 0;  ///< If the distinct bytes of each request lay together, at a multiple of 32.
};
/// The requests to one buffer.
struct BufferRequests {
  std::string buffer;     ///< Its name.
  RequestCounts read;     ///< Loads.
  RequestCounts written;  ///< Stores.
};

/// Shared memory has 32 banks of 4 bytes. In one wavefront each bank gives one word, to as many lanes as ask for it.
/// A request of 8 bytes a lane takes at least two, a half of the warp at a time, one of 16 bytes four.
struct SharedRequests {
  std::string array;              ///< Its name, or "dynamic shared memory".
  uint64_t requests = 0;          ///< Loads and stores.
  uint64_t wavefronts = 0;        ///< Those that they take.
  uint64_t ideal_wavefronts = 0;  ///< Those that they would take if no two words lay in one bank.
};

/// What happened to one element of a buffer.
struct Cell {
  static constexpr uint32_t NOBODY = std::numeric_limits<uint32_t>::max();  ///< No block.
  uint32_t reads = 0;                                                       ///< How often it was read.
  uint32_t writes = 0;                                                      ///< How often it was written.
  uint32_t writer = NOBODY;  ///< Of the blocks that wrote it, the one with the lowest number.
  uint32_t reader = NOBODY;  ///< Of the blocks that read it, likewise.

  /// The block that it belongs to: the one that wrote it, else the one that read it.
  uint32_t block() const { return writer != NOBODY ? writer : reader; }
};
/// The elements of one buffer.
struct BufferCells {
  std::string buffer;         ///< Its name.
  const void* data;           ///< Where it begins.
  std::size_t element_bytes;  ///< The size of an element.
  std::vector<Cell> cells;    ///< One for each element.
};

/// What one launch gave.
struct LaunchRecord {
  std::string kernel;                     ///< "step04::softmax_kernel<2048>"
  std::array<uint32_t, 3> grid{};         ///< Blocks along x, y and z.
  std::array<uint32_t, 3> block{};        ///< Threads of a block along x, y and z.
  std::size_t dynamic_shared_bytes = 0;   ///< Of each block.
  std::vector<BufferRequests> buffers{};  ///< Those that the kernel touched, in order of allocation.
  std::vector<SharedRequests> shared{};   ///< Likewise, by name.
  std::vector<BufferCells> cells{};       ///< As buffers.
  std::vector<uint32_t> accesses{};       ///< Elements of buffers, by [block * threads of a block + thread].

  /// Blocks of the grid.
  uint64_t blocks() const { return uint64_t{grid[0]} * grid[1] * grid[2]; }
  /// Threads of a block.
  uint32_t threads() const { return block[0] * block[1] * block[2]; }
};

/// The largest buffer, in elements, and the largest launch, in threads, of which cells are recorded.
constexpr uint64_t MOST_CELLS = uint64_t{1} << 24;

}  // namespace ladder::cpu_device
