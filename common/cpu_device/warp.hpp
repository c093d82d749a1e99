// Barriers, shuffles and votes, as CUDA defines them (CUDA C++ Programming Guide, "Warp Shuffle Functions"; PTX,
// "shfl.sync"). Each remembers where it was called, for the reports.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "common/cpu_device/vocabulary.hpp"

namespace ladder::cpu_device {

/// Where in the source a barrier or a warp function was called.
struct CallSite {
  const char* file;  ///< As the compiler was told of it.
  int line;          ///< Counted from 1.
};

/// `__syncthreads`, called there.
void block_barrier(CallSite site);
/// `__syncwarp`, called there.
void warp_barrier(unsigned mask, CallSite site);
/// A shuffle within segments of `width` lanes: posts `value` and returns what lane `source_lane` posted. A width that
/// is no power of two up to 32 is a fault, and so is a lane that has posted nothing. `name` is CUDA's, for reports.
uint64_t warp_shuffle(unsigned mask, uint64_t value, int source_lane, int width, const char* name, CallSite site);
/// A vote: bit i of the result is what lane i says; 0 for lanes outside `mask`, and for those that have returned.
unsigned warp_ballot(unsigned mask, bool predicate, const char* name, CallSite site);
/// The running thread's place in its warp, 0 to 31.
int lane();

/// The same for a value of 4 or 8 bytes.
template <class T>
T shuffle(unsigned mask, T value, int source_lane, int width, const char* name, CallSite site) {
  static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "CUDA shuffles 4 or 8 bytes");
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  const uint64_t received = warp_shuffle(mask, std::bit_cast<Bits>(value), source_lane, width, name, site);
  return std::bit_cast<T>(static_cast<Bits>(received));
}

/// The first lane of the running thread's segment. `width` cuts the warp into segments that a shuffle stays inside.
inline int segment_start(int width) { return lane() & ~(width - 1); }

}  // namespace ladder::cpu_device

/// Waits until all threads of the block have come here. What they wrote before it, all of them see behind it.
inline void __syncthreads(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  ladder::cpu_device::block_barrier({file, line});
}
/// The same for the lanes of the warp that `mask` names; the caller must be one of them.
inline void __syncwarp(unsigned mask = 0xffffffffu, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  ladder::cpu_device::warp_barrier(mask, {file, line});
}

/// `value` of lane `source_lane`. It counts from the start of the segment and wraps in it: -1 is the segment's last
/// lane.
template <class T>
T __shfl_sync(unsigned mask, T value, int source_lane, int width = warpSize, const char* file = __builtin_FILE(),
              int line = __builtin_LINE()) {
  using namespace ladder::cpu_device;
  return shuffle(mask, value, segment_start(width) | (source_lane & (width - 1)), width, "__shfl_sync", {file, line});
}
/// `value` of the lane `delta` lanes before. Where that is before the segment, the lane keeps its own value.
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize, const char* file = __builtin_FILE(),
                 int line = __builtin_LINE()) {
  using namespace ladder::cpu_device;
  const int source = lane() - static_cast<int>(delta & 31);
  return shuffle(mask, value, source < segment_start(width) ? lane() : source, width, "__shfl_up_sync", {file, line});
}
/// `value` of the lane `delta` lanes behind. Where that is behind the segment, the lane keeps its own value.
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize, const char* file = __builtin_FILE(),
                   int line = __builtin_LINE()) {
  using namespace ladder::cpu_device;
  const int source = lane() + static_cast<int>(delta & 31);
  return shuffle(mask, value, source >= segment_start(width) + width ? lane() : source, width, "__shfl_down_sync",
                 {file, line});
}
/// `value` of the lane whose number differs in the bits of `lane_mask`. Where that is behind the segment, the lane
/// keeps its own value; one in an earlier segment is read, as the hardware does.
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = warpSize, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  using namespace ladder::cpu_device;
  const int source = lane() ^ (lane_mask & 31);
  return shuffle(mask, value, source >= segment_start(width) + width ? lane() : source, width, "__shfl_xor_sync",
                 {file, line});
}

/// Bit i of the result: what lane i says.
inline unsigned __ballot_sync(unsigned mask, int predicate, const char* file = __builtin_FILE(),
                              int line = __builtin_LINE()) {
  return ladder::cpu_device::warp_ballot(mask, predicate != 0, "__ballot_sync", {file, line});
}
/// Whether some lane of `mask` says yes.
inline int __any_sync(unsigned mask, int predicate, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return ladder::cpu_device::warp_ballot(mask, predicate != 0, "__any_sync", {file, line}) != 0;
}
/// Whether every lane of `mask` says yes. Lanes that have returned do not count, as on the GPU: their absence is no
/// vote against.
inline int __all_sync(unsigned mask, int predicate, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return ladder::cpu_device::warp_ballot(mask, predicate == 0, "__all_sync", {file, line}) == 0;
}
