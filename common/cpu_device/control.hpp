// What a host program may ask of the CPU device. common/harness/device.hpp offers the part that both devices share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/cpu_device/recording.hpp"
#include "common/kernel/stream.hpp"

namespace ladder {

/// The dynamic shared memory, in bytes, that one block may have on the current device model.
std::size_t shared_memory_limit();

namespace cpu_device {

/// The architecture whose limits hold: sm_75, sm_80, sm_86, sm_89 or sm_90, at first sm_90. Throws InvalidArgument for
/// another name.
void set_device_model(std::string_view name);
/// The name of the current one.
std::string_view device_model();

/// What is looked for beyond accesses out of bounds; the first two in a build that sees accesses only.
struct Checks {
  bool uninitialised = false;  ///< Reads of cells that nothing has written.
  /// Accesses of two threads of a block to one cell, at least one of them a write, that no barrier orders.
  bool races = false;
  /// Threads that return from the kernel before a block barrier that others reach. Since sm_70 a barrier waits for the
  /// threads that have not returned; before, this was undefined. Where it is not looked for, the launch goes on, and
  /// at its end a note on stderr says so, once for each kernel.
  bool portability = false;
};
/// For the launches to come. At first uninitialised alone: races cost more than all else. Where the environment's
/// LADDER_CHECKS says "none", "uninitialised", "races", "portability" or "all", that holds, and this changes nothing.
void set_checks(Checks checks);
/// What is looked for now.
Checks checks();

/// In which order the threads of a block, and blocks, take their turns. A right kernel gives the same bits in each.
enum class Order {
  forward,        ///< By their numbers.
  reversed,       ///< The last thread and the last block first.
  warp_reversed,  ///< The last warp first, its lanes forward, blocks forward.
  random          ///< Drawn by a seed: blocks, and threads again after each block barrier.
};
/// The order of the launches to come. At first forward, or what the environment's LADDER_ORDER says in the words of the
/// other set_order.
void set_order(Order order, uint64_t seed = 0);
/// The same in words: "forward", "reversed", "warp-reversed" or "random:SEED". Throws InvalidArgument for other words.
void set_order(std::string_view words);

/// What is recorded of the launches to come, in a build that sees accesses; at first nothing. Forgets what was recorded
/// before. While cells are recorded a launch throws InvalidArgument, before anything runs, when it or a live buffer is
/// too large (MOST_CELLS). Each access takes 16 bytes until its block has ended. While something is recorded only one
/// host thread may launch.
void set_recording(Recording what);
/// One entry for each launch without a fault since then, in order; they are handed over, not copied.
std::vector<LaunchRecord> take_records();

/// OS threads that run blocks: the machine's cores, at most 16, or the environment's LADDER_WORKERS. Throws
/// InvalidArgument, as each launch does, when a variable of the environment has a value that it cannot have.
unsigned workers();

/// True when kernels are compiled with the compiler's access callbacks, so that their loads and stores are seen.
bool checks_accesses();

/// Device memory, filled with the byte 0xff, with inaccessible memory around it. An access outside it is reported in
/// elements of `element_bytes`. Throws std::bad_alloc.
void* allocate(std::size_t bytes, std::size_t element_bytes, std::string name);
/// Frees memory from allocate(); of nullptr, nothing.
void release(void* memory) noexcept;
/// Tells the device that the host has written these bytes.
void mark_initialised(void* memory, std::size_t bytes);
/// Fills these bytes with 0xff, and forgets that anybody has written them.
void poison(void* memory, std::size_t bytes);
/// False when the bytes between the end of this memory and the inaccessible page behind it were written.
bool slack_intact(const void* memory);

/// Bytes that kernels have read from and written to one allocation since reset_traffic().
struct BufferTraffic {
  std::string name;        ///< As allocate() was told.
  uint64_t bytes_read;     ///< Once for each load that the compiler left.
  uint64_t bytes_written;  ///< Once for each store.
};
/// One entry per live allocation, in order of allocation. All zero in a build that does not check accesses.
std::vector<BufferTraffic> traffic();
/// The streams that launches were given since reset_traffic(). A launch has ended when it returns, whatever its stream:
/// what order two streams would leave open is not looked for.
std::set<cudaStream_t> streams_used();
/// Sets bytes to 0 for all buffers, and forgets the streams.
void reset_traffic();
/// Kernels launched so far.
uint64_t kernels_launched();

}  // namespace cpu_device
}  // namespace ladder
