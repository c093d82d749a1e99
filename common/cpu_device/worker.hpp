// One OS thread's machinery: it runs blocks, one after another, and a block's CUDA threads on fibers.
#pragma once

#include <array>
#include <atomic>
#include <boost/context/detail/fcontext.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "common/cpu_device/control.hpp"
#include "common/cpu_device/launch.hpp"
#include "common/cpu_device/memory.hpp"
#include "common/cpu_device/symbols.hpp"
#include "common/cpu_device/warp.hpp"

namespace ladder::cpu_device {

// One launch, shared by the workers that run its blocks.
struct Job {
  const Grid& grid;
  uint64_t blocks;
  uint64_t chunk;  // blocks that a worker takes at a time
  ReturnedThreads returned_threads;
  std::size_t shared_limit;
  std::string_view model;

  std::atomic<uint64_t> next_block{0};
  // The first block with a fault. Later ones need not run, earlier ones do: whatever the workers' pace, it is the first
  // fault in block order that is reported.
  std::atomic<uint64_t> fault_block{std::numeric_limits<uint64_t>::max()};
  std::mutex mutex{};
  std::string fault{};
};

struct Fiber {
  // Boost's bare stack pointer, not its fiber class: that one unwinds a kernel's frames when it is destroyed, and a
  // thread that a fault stopped is abandoned instead. Its stack is used again as if nothing lay there.
  boost::context::detail::fcontext_t context = nullptr;
  char* mapping = nullptr;  // guard, then stack
  std::size_t mapping_bytes = 0;
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  void* sanitizer_stack = nullptr;
};

class Worker {
 public:
  Worker();
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Takes blocks of this launch until there are none.
  void run(Job& job);

  // Called from kernels, on fibers.
  void block_barrier(CallSite site);
  enum class Collective { barrier, shuffle, ballot };
  void warp_collective(unsigned mask, Collective collective, const char* name, CallSite site);
  void thread_returned();
  void access(std::uintptr_t address, std::size_t bytes, bool read, bool write, const void* return_address);
  void atomic_access(const void* address, std::size_t bytes, CallSite site);
  void* dynamic_shared() const { return dynamic_; }

  // Records a fault of the running thread. The block is abandoned after that, in a statement of its own: what is on the
  // stack then is forgotten, and a string there would never be freed. The place is a line of the source, or a return
  // address that is looked up later: debug information is read on the OS thread's own stack, for which a fiber's is too
  // small.
  void fault(std::string what, CallSite place);
  void fault(std::string what, const void* return_address);
  [[noreturn]] void abandon();

  struct Mailbox {
    uint64_t value;  // posted by the lane; then what it receives
    int32_t source_lane;
  };
  Mailbox& mailbox() { return warps_[running.thread / 32].mailboxes[running.thread % 32]; }

  // -fsanitize=bounds found `index` outside an array of `type`, as in "'float [3]'".
  [[noreturn]] void index_out_of_bounds(const char* type, std::ptrdiff_t index, const void* return_address);

  const Fiber* current_fiber() const { return current_; }
  std::string where_running() const;  // "kernel ..., block ..., thread ..."

 private:
  struct Wait {  // where a thread waits, or waited last
    Fiber* fiber;
    const char* name;
    CallSite site;
  };
  struct Group {  // lanes that wait for each other in a warp function
    unsigned mask, arrived;
    Collective collective;
    const char* name;
  };
  struct Warp {
    std::array<Mailbox, 32> mailboxes;
    unsigned present = 0;  // lanes that the block has
    std::vector<Group> groups;
  };

  void run_block(uint64_t block);
  void prepare_block();
  void reset_after_fault();
  std::string describe_fault() const;
  std::string describe_array(const std::string& type, const std::string& index) const;
  std::string describe_deadlock() const;
  std::string describe_block() const;

  Fiber& idle_fiber();
  void start(Fiber& fiber);
  static void enter(boost::context::detail::transfer_t from);
  [[noreturn]] void fiber_body();
  void switch_to(Fiber& fiber);
  void go_on();
  void wait();
  void push_ready(uint32_t thread);
  uint32_t pop_ready();
  void release_block_barrier();
  bool complete(uint32_t warp, const Group& group) const;
  void release_group(uint32_t warp, std::size_t group);

  void access_shared(std::size_t offset, std::size_t bytes, bool write, const void* return_address);
  void out_of_bounds(const Allocation& allocation, std::uintptr_t address, std::size_t bytes, bool write,
                     const void* return_address);
  void out_of_bounds(const std::string& what, std::ptrdiff_t offset, std::size_t bytes, std::size_t element_bytes,
                     bool write, const void* return_address);

  Job* job_ = nullptr;
  uint64_t block_ = 0;
  uint64_t block_serial_ = 0;
  struct Fault {
    std::string what;
    CallSite place{};
    const void* return_address = nullptr;
    std::string array_type{};  // of an array whose name has yet to be found
  };
  Fault fault_record_;
  CallSite atomic_site_{};  // of the atomic function under way; its accesses have no return address of their own
  std::string fault_;       // the report, empty while all is well

  Fiber main_;
  Fiber* current_ = &main_;
  Fiber* previous_ = nullptr;
  std::deque<Fiber> fibers_;
  std::vector<Fiber*> idle_;

  dim3 shape_{0, 0, 0};
  std::vector<uint3> indices_;
  std::vector<Wait> waits_;
  std::vector<Warp> warps_;
  std::vector<uint16_t> at_barrier_;
  std::array<uint16_t, 2048> ready_;  // a ring
  uint32_t ready_head_ = 0;

  Memory& memory_;
  Segment segment_{};
  std::span<const uint16_t> places_;  // segment_places()
  void* dynamic_ = nullptr;
  std::size_t dynamic_bytes_ = 0;
  std::vector<uint64_t> array_serial_;  // the block that last used each shared array
  std::size_t static_bytes_ = 0;        // of the arrays this block has used
  std::vector<Bytes> traffic_;
  std::unique_ptr<char[]> signal_stack_;
};

// What lies at each 4-byte word of the thread-local segment: nothing, a variable that is no shared array, or
// shared_arrays()[value - FIRST_ARRAY].
enum Place : uint16_t { NOTHING = 0, OTHER = 1, FIRST_ARRAY = 2 };
std::span<const uint16_t> segment_places();

inline constinit thread_local Worker* worker = nullptr;
// The calling OS thread's worker, made at its first launch.
Worker& this_worker();

}  // namespace ladder::cpu_device
