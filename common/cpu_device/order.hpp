// In which order the threads of a block and the blocks of a grid take their turns. A GPU promises none; a kernel that
// is right gives the same bits in all of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/cpu_device/control.hpp"

namespace ladder::cpu_device {

// One OS thread's view of the order. Draws of the random one depend on the seed and the block alone, so that a run can
// be had again whatever the number of workers.
class Schedule {
 public:
  void set(Order order, uint64_t seed, uint32_t threads, uint64_t blocks);

  // The block whose turn it is at `position`.
  uint64_t block_at(uint64_t position) const;

  // The order in which fresh threads of this block begin, or nullptr when it is that of their numbers.
  const uint16_t* begin_block(uint64_t block);

  bool random() const { return order_ == Order::random; }
  bool coin() { return (draw() & 1) != 0; }
  void shuffle(std::span<uint16_t> threads);

 private:
  uint64_t draw();

  Order order_ = Order::forward;
  uint64_t seed_ = 0, state_ = 0, blocks_ = 1;
  uint64_t step_ = 1, first_ = 0;  // the random order of blocks: first_ + position * step_, modulo blocks_
  std::vector<uint16_t> threads_;
};

}  // namespace ladder::cpu_device
