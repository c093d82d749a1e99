#include "common/cpu_device/order.hpp"

#include <algorithm>
#include <numeric>

namespace ladder::cpu_device {
namespace {

// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
uint64_t mix(uint64_t value) {
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
  value = (value ^ value >> 27) * 0x94d049bb133111ebu;
  return value ^ value >> 31;
}

}  // namespace

uint64_t Schedule::draw() { return mix(state_ += 0x9e3779b97f4a7c15u); }

void Schedule::set(Order order, uint64_t seed, uint32_t threads, uint64_t blocks) {
  order_ = order;
  seed_ = seed;
  blocks_ = blocks;
  threads_.resize(order == Order::forward ? 0 : threads);
  std::iota(threads_.begin(), threads_.end(), uint16_t{0});
  if (order == Order::reversed) std::ranges::reverse(threads_);
  if (order == Order::warp_reversed)
    for (uint32_t i = 0; i < threads; ++i) {
      const uint32_t last_warp = (threads - 1) / 32, lanes_of_last = threads - last_warp * 32;
      // The last warp may lack lanes; it comes first, the others follow in falling order.
      threads_[i] = static_cast<uint16_t>(i < lanes_of_last ? last_warp * 32 + i
                                                            : (last_warp - 1 - (i - lanes_of_last) / 32) * 32 +
                                                                  (i - lanes_of_last) % 32);
    }
  if (order == Order::random) {
    state_ = mix(seed);
    first_ = draw() % blocks;
    do step_ = 1 + draw() % blocks;
    while (std::gcd(step_, blocks) != 1);
  }
}

uint64_t Schedule::block_at(uint64_t position) const {
  if (order_ == Order::reversed) return blocks_ - 1 - position;
  if (order_ != Order::random) return position;
  return static_cast<uint64_t>((static_cast<unsigned __int128>(position) * step_ + first_) % blocks_);
}

const uint16_t* Schedule::begin_block(uint64_t block) {
  if (order_ == Order::forward) return nullptr;
  if (order_ == Order::random) {
    state_ = mix(seed_ ^ mix(block + 1));
    std::iota(threads_.begin(), threads_.end(), uint16_t{0});  // from the same start in each block
    shuffle(threads_);
  }
  return threads_.data();
}

void Schedule::shuffle(std::span<uint16_t> threads) {
  for (std::size_t i = threads.size(); i > 1; --i) std::swap(threads[i - 1], threads[draw() % i]);
}

}  // namespace ladder::cpu_device
