// Barriers, shuffles and votes, as CUDA defines them (CUDA C++ Programming Guide, "Warp Shuffle Functions"; PTX,
// "shfl.sync"). Each remembers where it was called, for the reports.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace ladder::cpu_device {

// Where in the source a barrier or a warp function was called.
struct CallSite {
  const char* file;
  int line;
};

void block_barrier(CallSite site);
void warp_barrier(unsigned mask, CallSite site);
uint64_t warp_shuffle(unsigned mask, uint64_t value, int source_lane, const char* name, CallSite site);
unsigned warp_ballot(unsigned mask, bool predicate, const char* name, CallSite site);
int lane();

template <class T>
T shuffle(unsigned mask, T value, int source_lane, const char* name, CallSite site) {
  static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "CUDA shuffles 4 or 8 bytes");
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  const uint64_t received = warp_shuffle(mask, std::bit_cast<Bits>(value), source_lane, name, site);
  return std::bit_cast<T>(static_cast<Bits>(received));
}

// The warp is cut into segments of `width` lanes; a shuffle stays inside the caller's segment.
inline int segment_start(int width) { return lane() & ~(width - 1); }

}  // namespace ladder::cpu_device

inline void __syncthreads(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  ladder::cpu_device::block_barrier({file, line});
}
inline void __syncwarp(unsigned mask = 0xffffffffu, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  ladder::cpu_device::warp_barrier(mask, {file, line});
}

// The source lane counts from the start of the segment and wraps in it: -1 is the segment's last lane.
template <class T>
T __shfl_sync(unsigned mask, T value, int source_lane, int width = warpSize, const char* file = __builtin_FILE(),
              int line = __builtin_LINE()) {
  using namespace ladder::cpu_device;
  return shuffle(mask, value, segment_start(width) | (source_lane & (width - 1)), "__shfl_sync", {file, line});
}
// A source before the segment: the lane keeps its own value.
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize, const char* file = __builtin_FILE(),
                 int line = __builtin_LINE()) {
  using namespace ladder::cpu_device;
  const int source = lane() - static_cast<int>(delta & 31);
  return shuffle(mask, value, source < segment_start(width) ? lane() : source, "__shfl_up_sync", {file, line});
}
// A source behind the segment: the lane keeps its own value.
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize, const char* file = __builtin_FILE(),
                   int line = __builtin_LINE()) {
  using namespace ladder::cpu_device;
  const int source = lane() + static_cast<int>(delta & 31);
  return shuffle(mask, value, source >= segment_start(width) + width ? lane() : source, "__shfl_down_sync",
                 {file, line});
}
// A source behind the segment keeps its own value; one in an earlier segment is read, as the hardware does.
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = warpSize, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  using namespace ladder::cpu_device;
  const int source = lane() ^ (lane_mask & 31);
  return shuffle(mask, value, source >= segment_start(width) + width ? lane() : source, "__shfl_xor_sync",
                 {file, line});
}

inline unsigned __ballot_sync(unsigned mask, int predicate, const char* file = __builtin_FILE(),
                              int line = __builtin_LINE()) {
  return ladder::cpu_device::warp_ballot(mask, predicate != 0, "__ballot_sync", {file, line});
}
inline int __any_sync(unsigned mask, int predicate, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return ladder::cpu_device::warp_ballot(mask, predicate != 0, "__any_sync", {file, line}) != 0;
}
// Lanes that have returned do not count, as on the GPU: their absence is no vote against.
inline int __all_sync(unsigned mask, int predicate, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return ladder::cpu_device::warp_ballot(mask, predicate == 0, "__all_sync", {file, line}) == 0;
}
