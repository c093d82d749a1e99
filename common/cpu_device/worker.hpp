// One OS thread's machinery: it runs blocks, one after another, and a block's CUDA threads on fibers.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "common/cpu_device/context.hpp"
#include "common/cpu_device/control.hpp"
#include "common/cpu_device/launch.hpp"
#include "common/cpu_device/memory.hpp"
#include "common/cpu_device/order.hpp"
#include "common/cpu_device/races.hpp"
#include "common/cpu_device/recorder.hpp"
#include "common/cpu_device/symbols.hpp"
#include "common/cpu_device/warp.hpp"

namespace ladder::cpu_device {

// One launch, shared by the workers that run its blocks.
struct Job {
  const Grid& grid;
  uint64_t blocks;
  uint64_t chunk;  // blocks that a worker takes at a time
  Checks checks;
  Order order;
  uint64_t order_seed;
  std::size_t shared_limit;
  std::string_view model;
  LaunchRecorder* recorder;  // nullptr: nothing is recorded

  std::atomic<uint64_t> next_position{0};
  // The first turn whose block has a fault. Later ones need not run, earlier ones do: whatever the workers' pace, it is
  // the first fault in the order of blocks that is reported.
  std::atomic<uint64_t> fault_position{std::numeric_limits<uint64_t>::max()};
  std::mutex mutex{};
  std::string fault{};
  uint64_t note_position = std::numeric_limits<uint64_t>::max();
  std::string note{};
};

// A bare stack, not one of Boost's fibers: those unwind a kernel's frames when they are destroyed, and a thread that a
// fault stopped is abandoned instead. Its stack is used again as if nothing lay there.
struct Fiber {
  Context context = nullptr;  // where it goes on while no thread waits on it
  char* mapping = nullptr;    // guard, then stack
  std::size_t mapping_bytes = 0;
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  void* sanitizer_stack = nullptr;
};

// A line of the source, or a return address that is looked up later: debug information is read on the OS thread's own
// stack, for which a fiber's is too small.
struct Place {
  CallSite line{};
  const void* return_address = nullptr;
};

std::string index_text(uint3 index, dim3 size);  // "5", or "(5, 0, 1)" where the size has more than one dimension

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
  // An exception is on its way out of the kernel: in a catch block of the thread that has thrown it.
  void exception_left_kernel();
  void access(std::uintptr_t address, std::size_t bytes, bool read, bool write, const void* return_address);
  void atomic_access(const void* address, std::size_t bytes, CallSite site);
  void* dynamic_shared() const { return dynamic_; }

  // Records a fault of the running thread. The block is abandoned after that, in a statement of its own: what is on the
  // stack then is forgotten, and a string there would never be freed. `before` and `other` end the first line.
  void fault(std::string what, CallSite line);
  void fault(std::string what, const void* return_address, std::string before = {}, Place other = {});
  [[noreturn]] void abandon();
  // Leaves this thread where it is, for good, and lets the others go on.
  [[noreturn]] void stop_here();

  struct Mailbox {
    uint64_t value;  // posted by the lane; then what it receives
    int32_t source_lane;
  };
  Mailbox& mailbox() { return warps_[running.thread / 32].mailboxes[running.thread % 32]; }

  // -fsanitize=bounds found `index` outside an array of `type`, as in "'float [3]'".
  [[noreturn]] void index_out_of_bounds(const char* type, std::ptrdiff_t index, const void* return_address);

  // -fsanitize=alignment found an address that its type, as in "'float4'", does not allow.
  [[noreturn]] void misaligned(const char* type, std::size_t alignment, std::uintptr_t address, bool write,
                               const void* return_address);

  const Fiber* current_fiber() const { return current_; }
  std::string where(uint32_t thread) const;  // "kernel ..., block ..., thread ..."

 private:
  // A CUDA thread that waits, in one cache line: a barrier of a thousand threads passes over all of them.
  struct alignas(64) Waiting {
    Context context;
    Fiber* fiber;
    Waiting* next;     // behind it in its queue
    const char* name;  // of the function in which it waits, or waited last
    CallSite site;
    uint3 index;
    uint32_t thread;
  };
  struct Queue {
    Waiting *first, *last;
    uint32_t size;
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
  void note_returned_threads(CallSite site);
  std::string describe_block() const;

  [[gnu::noinline]] Fiber& idle_fiber();
  void start(Fiber& fiber);
  static void enter();
  [[noreturn]] void fiber_body();
  void switch_to(Fiber& fiber, Context context, Context& save);
  void go_on(Context& save);
  void wait(Waiting& waiting);
  void step_to(uint32_t thread, Waiting& waiting);
  [[gnu::noinline]] void leave_step();
  void go_on_as(const Waiting& waiting);
  static void append(Queue& queue, Waiting& waiting);
  void push_ready(uint32_t warp, unsigned lanes);
  Waiting& pop_ready();
  void shuffle(Queue& queue);
  [[gnu::noinline]] void other_barrier(CallSite site);
  [[gnu::noinline]] void release_block_barrier();
  bool all_at_barrier() const;
  bool complete(uint32_t warp, const Group& group) const;
  void release_group(uint32_t warp, std::size_t group);
  std::string why_absent(uint32_t warp, const Group& group, uint32_t source) const;
  [[noreturn]] void absent_lane(uint32_t warp, const Group& group, uint32_t lane);

  void find_shared(std::size_t offset, std::size_t bytes, bool write, const void* return_address);
  void touch(uint8_t* initialised, std::size_t offset, std::uintptr_t address, std::size_t bytes, bool read, bool write,
             const void* return_address);
  uint32_t site_of(const void* return_address);
  std::string name_of_site(uint32_t site) const;
  void record(std::uintptr_t address, std::size_t bytes, bool read, bool write, const void* return_address);
  void watch_race(std::uintptr_t address, std::size_t bytes, bool write, const void* return_address);
  [[noreturn]] void report_race(const Races::Conflict& conflict, std::size_t bytes, bool write,
                                const void* return_address);
  [[noreturn]] void uninitialised_read(std::uintptr_t address, std::size_t bytes, const void* return_address);
  std::string element_at(std::uintptr_t address, std::size_t access_bytes) const;
  void out_of_bounds(const Allocation& allocation, std::uintptr_t address, std::size_t bytes, bool write,
                     const void* return_address);
  void out_of_bounds(const std::string& what, std::ptrdiff_t offset, std::size_t bytes, std::size_t element_bytes,
                     bool write, const void* return_address);

  Job* job_ = nullptr;
  uint64_t block_ = 0;
  uint64_t block_serial_ = 0;
  struct Fault {
    std::string what;
    uint32_t thread = 0;
    Place place{};
    std::string before_other{};  // the words before the place of the other thread
    Place other{};
    std::string array_type{};  // of an array whose name has yet to be found
  };
  Fault fault_record_;
  // A thread that has read what nobody had written stops there, and the others go on: if one of them writes it, what
  // the reader lacked was a barrier, and the race is the better report.
  Fault uninitialised_read_;
  CallSite atomic_site_{};  // of the atomic function under way; its accesses have no return address of their own
  std::string fault_;       // the report, empty while all is well
  std::string note_;        // of the running block: threads that had returned before a barrier

  Fiber main_;
  Fiber* current_ = &main_;
  std::deque<Fiber> fibers_;
  std::vector<Fiber*> idle_;

  dim3 shape_{0, 0, 0};
  std::vector<uint3> indices_;
  std::vector<Waiting> waiting_;
  std::vector<Warp> warps_;
  Queue at_barrier_{}, ready_{};  // the size of ready_ is running.ready
  // Threads in step: all have come to one block barrier, and go from there to the next in the order of their numbers.
  // Thread step_ runs, those before it wait at step_site_, those behind it are ready; the queues are empty. It is how
  // most kernels pass most barriers, without a queue. A thread that does anything else leaves the step first.
  bool in_step_ = false;
  uint32_t step_ = 0;
  CallSite step_site_{};
  Schedule schedule_;
  Races races_;
  Recorder recorder_;
  bool watch_races_ = false, watch_uninitialised_ = false, recording_ = false;

  Memory& memory_;
  Segment segment_{};
  std::uintptr_t program_begin_ = 0;
  const std::vector<SharedArray>* arrays_ = nullptr;  // shared_arrays()
  std::span<const uint16_t> places_;                  // segment_places()
  void* dynamic_ = nullptr;
  std::size_t dynamic_bytes_ = 0;
  std::vector<uint8_t> segment_initialised_;  // as Allocation::initialised, of the thread-local segment
  std::vector<CallSite> atomic_sites_;        // of which races_ and recorder_ know the index
  std::vector<uint64_t> array_serial_;        // the block that last used each shared array
  std::size_t static_bytes_ = 0;              // of the arrays this block has used
  std::vector<Bytes> traffic_;
  std::unique_ptr<char[]> signal_stack_;
};

// What lies at each 4-byte word of the thread-local segment: nothing, a variable that is no shared array, or
// shared_arrays()[value - FIRST_ARRAY].
enum Word : uint16_t { NOTHING = 0, OTHER = 1, FIRST_ARRAY = 2 };
std::span<const uint16_t> segment_places();

inline constinit thread_local Worker* worker = nullptr;
// The calling OS thread's worker, made at its first launch.
Worker& this_worker();

}  // namespace ladder::cpu_device
