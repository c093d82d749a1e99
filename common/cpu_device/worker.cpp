#include "common/cpu_device/worker.hpp"

#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <new>
#include <span>
#include <utility>

#include "common/cpu_device/sanitizers.hpp"

namespace ladder::cpu_device {
namespace {

constexpr std::size_t STACK_BYTES = (ADDRESS_SANITIZER ? 256 : 64) << 10;
// Wide enough that no frame steps over it: kernels are compiled with -fstack-clash-protection, which touches every
// page. Guard and stack together are an odd number of pages: with a power of two the pages in use would compete for a
// few sets of the processor's address translation.
constexpr std::size_t GUARD_BYTES = 68 << 10;
constexpr std::size_t SIGNAL_STACK_BYTES = 1 << 20;  // the report reads debug information there
constexpr int POISON = 0xff;

std::string site_text(CallSite site) { return std::string(site.file) + ":" + std::to_string(site.line); }

std::string mask_text(unsigned mask) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", mask);
  return text;
}

// What a kernel cannot go on from ends the process, but the process says why.
std::string last_words(int signal_number, const char* address, bool in_kernel) {
  if (signal_number == SIGABRT) return in_kernel ? "a kernel calls abort() or std::terminate()" : "";
  if (signal_number == SIGFPE)
    return in_kernel ? "a kernel divides an integer by 0, or the smallest one by -1; a GPU goes on with any value" : "";
  const Fiber* fiber = worker->current_fiber();
  if (fiber->mapping && address >= fiber->mapping && address < fiber->mapping + GUARD_BYTES)
    return "stack overflow: a thread's local variables need more than the " + std::to_string(STACK_BYTES >> 10) +
           " KiB that the CPU device gives each thread";
  const Allocation* near = in_kernel ? Memory::instance().find(reinterpret_cast<std::uintptr_t>(address)) : nullptr;
  if (!near) return "";
  return "out-of-bounds access of buffer '" + near->name + "', byte " +
         std::to_string(reinterpret_cast<std::intptr_t>(address) - static_cast<std::intptr_t>(near->begin)) + " of " +
         std::to_string(near->end - near->begin);
}

void on_fatal_signal(int signal_number, siginfo_t* info, void*) {
  const bool in_kernel = std::exchange(running.in_kernel, false);
  std::string text;
  if (worker) text = last_words(signal_number, static_cast<const char*>(info->si_addr), in_kernel);
  if (text.empty()) {  // not ours: let the default action tell it
    signal(signal_number, SIG_DFL);
    return;
  }
  text += "\n  in " + worker->where(running.thread) + "\n";
  std::fflush(stdout);
  (void)!write(STDERR_FILENO, text.data(), text.size());
  _exit(2);
}

// A handler that the host program has set stays, but for SIGSEGV's: only this one knows of the threads' stacks.
void handle_fatal_signals() {
  struct sigaction action {};
  action.sa_sigaction = on_fatal_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, nullptr);
  for (const int signal_number : {SIGABRT, SIGFPE}) {
    struct sigaction before {};
    sigaction(signal_number, nullptr, &before);
    if ((before.sa_flags & SA_SIGINFO) == 0 && before.sa_handler == SIG_DFL) sigaction(signal_number, &action, nullptr);
  }
}

thread_local std::unique_ptr<Worker> owner;

}  // namespace

std::string index_text(uint3 index, dim3 size) {
  if (size.y == 1 && size.z == 1) return std::to_string(index.x);
  return "(" + std::to_string(index.x) + ", " + std::to_string(index.y) + ", " + std::to_string(index.z) + ")";
}

Worker& this_worker() {
  if (!owner) {
    owner = std::make_unique<Worker>();
    worker = owner.get();
  }
  return *owner;
}

Worker::Worker() : memory_(Memory::instance()) {
  if (checks_accesses()) {
    segment_ = thread_local_segment();
    arrays_ = &shared_arrays();
    places_ = segment_places();
    program_begin_ = program_begin();
    segment_initialised_.resize(segment_.bytes / 4 + 1);
    array_serial_.resize(shared_arrays().size());
  }
  if constexpr (!ADDRESS_SANITIZER) {  // it reports these faults itself
    signal_stack_ = std::make_unique<char[]>(SIGNAL_STACK_BYTES);
    stack_t stack{};
    stack.ss_sp = signal_stack_.get();
    stack.ss_size = SIGNAL_STACK_BYTES;
    sigaltstack(&stack, nullptr);
    handle_fatal_signals();
  }
}

Worker::~Worker() {
  if (dynamic_) memory_.release(dynamic_);
  for (Fiber& fiber : fibers_) {
    unpoison_for_sanitizer(fiber.mapping, fiber.mapping_bytes);  // other memory may lie there next
    munmap(fiber.mapping, fiber.mapping_bytes);
  }
  if (signal_stack_) {
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
  }
  worker = nullptr;
}

// ---- fibers

Fiber& Worker::idle_fiber() {
  if (!idle_.empty()) {
    Fiber& fiber = *idle_.back();
    idle_.pop_back();
    return fiber;
  }
  void* mapping = mmap(nullptr, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (mapping == MAP_FAILED || mprotect(mapping, GUARD_BYTES, PROT_NONE) != 0) {
    std::fputs("CPU device: the system gives no memory for the stacks of a block's threads\n", stderr);
    _exit(2);
  }
  Fiber& fiber = fibers_.emplace_back();
  fiber.mapping = static_cast<char*>(mapping);
  fiber.mapping_bytes = GUARD_BYTES + STACK_BYTES;
  fiber.bottom = fiber.mapping + GUARD_BYTES;
  // Stacks that all ended at the same offset in a page would compete for the same few sets of the cache.
  fiber.bytes = STACK_BYTES - fibers_.size() * 5 % 61 * 64;
  start(fiber);
  return fiber;
}

// Gives the fiber a fresh context on its stack. Whatever lay there is forgotten, not unwound.
void Worker::start(Fiber& fiber) {
  char* stack = fiber.mapping + GUARD_BYTES;
  unpoison_for_sanitizer(stack, fiber.bytes);
  fiber.context = make_context<enter>(stack + fiber.bytes, fiber.bytes);
  fiber.sanitizer_stack = nullptr;
}

void Worker::enter() {
  // The sanitizer tells which stack was left. The first time it is main_'s, which nobody else could tell.
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  enter_stack(nullptr, &bottom, &bytes);
  if (!worker->main_.bottom) {
    worker->main_.bottom = bottom;
    worker->main_.bytes = bytes;
  }
  worker->fiber_body();
}

void Worker::fiber_body() {
  for (;;) {
    job_->grid.run_threads(job_->grid.call);
    idle_.push_back(current_);
    go_on(current_->context);
  }
}

// Inlined, as are go_on and wait: each frame less is a cache line less that a barrier of a thousand threads touches.
[[gnu::always_inline]] inline void Worker::switch_to(Fiber& fiber, Context context, Context& save) {
  Fiber& from = *current_;
  current_ = &fiber;
  leave_stack(&from.sanitizer_stack, fiber.bottom, fiber.bytes);
  switch_context(save, context);
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  enter_stack(from.sanitizer_stack, &bottom, &bytes);
}

// The next thread's registers and frames come from the second-level cache while this one runs.
[[gnu::always_inline]] inline void prefetch(Context context) {
  __builtin_prefetch(context);
  __builtin_prefetch(static_cast<const char*>(context) + 64);
}

[[gnu::always_inline]] inline void Worker::append(Queue& queue, Waiting& waiting) {
  (queue.size++ == 0 ? queue.first : queue.last->next) = &waiting;
  queue.last = &waiting;
}

[[gnu::always_inline]] inline Worker::Waiting& Worker::pop_ready() {
  Waiting& waiting = *ready_.first;
  if (--running.ready != 0) {
    ready_.first = waiting.next;
    prefetch(ready_.first->context);
  }
  return waiting;
}

void Worker::push_ready(uint32_t warp, unsigned lanes) {
  std::array<uint16_t, 32> threads;
  std::size_t count = 0;
  for (; lanes != 0; lanes &= lanes - 1)
    threads[count++] = static_cast<uint16_t>(warp * 32 + static_cast<uint32_t>(std::countr_zero(lanes)));
  if (job_->order == Order::reversed) std::reverse(threads.begin(), threads.begin() + count);
  if (job_->order == Order::random) schedule_.shuffle({threads.data(), count});
  ready_.size = running.ready;
  for (std::size_t i = 0; i < count; ++i) append(ready_, waiting_[threads[i]]);
  running.ready = ready_.size;
}

void Worker::shuffle(Queue& queue) {
  std::vector<uint16_t> threads;
  for (const Waiting* waiting = queue.first; threads.size() < queue.size; waiting = waiting->next)
    threads.push_back(static_cast<uint16_t>(waiting->thread));
  schedule_.shuffle(threads);
  queue.size = 0;
  for (uint16_t thread : threads) append(queue, waiting_[thread]);
}

// Lets another thread of the block run: one that may go on, else a fresh one. Nobody left: back to run_block.
[[gnu::always_inline]] inline void Worker::go_on(Context& save) {
  if (in_step_) leave_step();
  const bool fresh = running.started != running.threads;
  if (running.ready != 0 && !(schedule_.random() && fresh && schedule_.coin())) [[likely]] {
    const Waiting& next = pop_ready();
    if (&next.context != &save) switch_to(*next.fiber, next.context, save);  // else it is this thread's turn again
  } else {
    Fiber& fiber = fresh ? idle_fiber() : main_;
    if (&fiber != current_) switch_to(fiber, fiber.context, save);
  }
}

// The running thread is in a queue; returns when its turn has come.
[[gnu::always_inline]] inline void Worker::wait(Waiting& waiting) {
  waiting.fiber = current_;
  go_on(waiting.context);
  go_on_as(waiting);
}

[[gnu::always_inline]] inline void Worker::go_on_as(const Waiting& waiting) {
  running.thread = waiting.thread;
  threadIdx = waiting.index;
}

// ---- threads in step

// The running thread, `waiting`, gives its turn to another.
[[gnu::always_inline]] inline void Worker::step_to(uint32_t thread, Waiting& waiting) {
  Waiting& next = waiting_[thread];
  if (thread + 2 < running.threads) prefetch((&next)[2].context);
  if (&next != &waiting) switch_to(*next.fiber, next.context, waiting.context);
  go_on_as(waiting);
}

void Worker::leave_step() {
  in_step_ = false;
  for (uint32_t thread = 0; thread < step_; ++thread) {
    waiting_[thread].name = "__syncthreads";
    waiting_[thread].site = step_site_;
    append(at_barrier_, waiting_[thread]);
  }
  ready_.size = 0;
  for (uint32_t thread = step_ + 1; thread < running.threads; ++thread) append(ready_, waiting_[thread]);
  running.ready = ready_.size;
  if (at_barrier_.size == 0) return;
  ++running.collectives;
  if (all_at_barrier()) release_block_barrier();  // the running thread has returned, and was the last one awaited
}

// Threads that have returned are not waited for: since sm_70 a barrier asks for those that have not (CUDA C++
// Programming Guide, "Synchronization Functions"). The portability check waits for all.
bool Worker::all_at_barrier() const {
  return at_barrier_.size + (job_->checks.portability ? 0 : running.done) == running.threads;
}

// ---- barriers and warp functions

void Worker::other_barrier(CallSite site) {
  const Waiting& first = *at_barrier_.first;
  if (std::strcmp(first.site.file, site.file) == 0 && first.site.line == site.line) return;
  fault("divergent barrier: thread " + index_text(first.index, shape_) + " waits in __syncthreads at " +
            site_text(first.site) +
            ", and this thread comes to another; all threads of a block must reach the same one",
        site);
  abandon();
}

[[gnu::always_inline]] inline void Worker::block_barrier(CallSite site) {
  Waiting& waiting = waiting_[running.thread];
  if (in_step_) [[likely]] {
    if (step_ == 0) step_site_ = site;
    if (site.line == step_site_.line && site.file == step_site_.file) [[likely]] {
      if (++step_ == running.threads) {
        step_ = 0;
        if (watch_races_) races_.block_barrier();
      }
      return step_to(step_, waiting);
    }
    leave_step();
  }
  if (at_barrier_.size != 0) {
    const CallSite& first = at_barrier_.first->site;
    if (first.line != site.line || first.file != site.file) [[unlikely]]
      other_barrier(site);
  }
  waiting.name = "__syncthreads";
  waiting.site = site;
  append(at_barrier_, waiting);
  if (at_barrier_.size == 1) ++running.collectives;
  if (all_at_barrier()) release_block_barrier();
  if (!in_step_) return wait(waiting);
  waiting.fiber = current_;
  step_to(0, waiting);
}

void Worker::release_block_barrier() {
  --running.collectives;
  if (watch_races_) races_.block_barrier();
  if (running.done != 0) {
    if (note_.empty()) note_returned_threads(at_barrier_.first->site);
  } else if (job_->order == Order::forward) {
    in_step_ = true;
    step_ = 0;
    at_barrier_.size = 0;
    return;
  }
  if (schedule_.random()) shuffle(at_barrier_);
  // All of them, in the order in which they came. No other thread is ready: those that have not returned wait here.
  ready_ = at_barrier_;
  running.ready = at_barrier_.size;
  at_barrier_.size = 0;
}

void Worker::warp_collective(unsigned mask, Collective collective, const char* name, CallSite site) {
  if (in_step_) leave_step();
  const uint32_t thread = running.thread, lane = thread % 32;
  Warp& warp = warps_[thread / 32];
  const unsigned bit = 1u << lane;
  if ((mask & bit) == 0) {
    fault(std::string(name) + ": lane " + std::to_string(lane) + " calls it, but is not in its mask " + mask_text(mask),
          site);
    abandon();
  }
  std::size_t index = warp.groups.size();
  for (std::size_t i = 0; i < warp.groups.size(); ++i) {
    const Group& group = warp.groups[i];
    if (group.mask == mask && (group.name == name || std::strcmp(group.name, name) == 0) &&
        (group.arrived & bit) == 0) {
      index = i;
    } else if ((group.mask & bit) != 0 && (group.arrived & mask) != 0) {  // each waits for the other
      fault("divergent warp: lane " + std::to_string(lane) + " calls " + name + " with mask " + mask_text(mask) +
                " while lane " + std::to_string(std::countr_zero(group.arrived)) + " of its warp waits in " +
                group.name + " with mask " + mask_text(group.mask),
            site);
      abandon();
    }
  }
  if (index == warp.groups.size()) {
    warp.groups.push_back({mask, 0, collective, name});
    ++running.collectives;
  }
  warp.groups[index].arrived |= bit;
  Waiting& waiting = waiting_[thread];
  waiting.name = name;
  waiting.site = site;
  if (complete(thread / 32, warp.groups[index])) release_group(thread / 32, index);
  wait(waiting);
}

// Lanes that have returned are not waited for (CUDA C++ Programming Guide: all non-exited threads named in the mask).
bool Worker::complete(uint32_t warp, const Group& group) const {
  return (group.mask & warps_[warp].present & ~running.returned_lanes[warp] & ~group.arrived) == 0;
}

void Worker::release_group(uint32_t index, std::size_t group_index) {
  Warp& warp = warps_[index];
  const Group group = warp.groups[group_index];
  warp.groups.erase(warp.groups.begin() + static_cast<std::ptrdiff_t>(group_index));
  --running.collectives;
  // A shuffle or a vote moves values between lanes, and orders none of their accesses to memory.
  if (watch_races_ && group.collective == Collective::barrier) races_.warp_barrier(index, group.arrived);
  if (group.collective == Collective::shuffle) {
    std::array<uint64_t, 32> posted;
    for (std::size_t lane = 0; lane < 32; ++lane) posted[lane] = warp.mailboxes[lane].value;
    for (unsigned lanes = group.arrived; lanes != 0; lanes &= lanes - 1) {
      const auto lane = static_cast<uint32_t>(std::countr_zero(lanes));
      Mailbox& box = warp.mailboxes[lane];
      if ((group.arrived >> box.source_lane & 1) == 0) absent_lane(index, group, lane);
      box.value = posted[static_cast<std::size_t>(box.source_lane)];
    }
  } else if (group.collective == Collective::ballot) {
    uint64_t ballot = 0;
    for (unsigned lanes = group.arrived; lanes != 0; lanes &= lanes - 1) {
      const int lane = std::countr_zero(lanes);
      ballot |= warp.mailboxes[static_cast<std::size_t>(lane)].value << lane;
    }
    for (unsigned lanes = group.arrived; lanes != 0; lanes &= lanes - 1)
      warp.mailboxes[static_cast<std::size_t>(std::countr_zero(lanes))].value = ballot;
  }
  push_ready(index, group.arrived);
}

std::string Worker::why_absent(uint32_t warp, const Group& group, uint32_t source) const {
  if ((group.mask >> source & 1) == 0) return "it is not in the mask " + mask_text(group.mask);
  if ((warps_[warp].present >> source & 1) == 0) return "the block has no such lane";
  return "it has returned from the kernel";
}

// CUDA leaves the value undefined. A number in its place would hide what is missing, whatever the number.
void Worker::absent_lane(uint32_t index, const Group& group, uint32_t lane) {
  const auto source = static_cast<uint32_t>(warps_[index].mailboxes[lane].source_lane);
  running.thread = index * 32 + lane;
  fault(std::string(group.name) + ": lane " + std::to_string(lane) + " receives from lane " + std::to_string(source) +
            ", which takes no part: " + why_absent(index, group, source),
        waiting_[running.thread].site);
  abandon();
}

void Worker::thread_returned() {
  const uint32_t index = running.thread / 32;
  for (std::size_t i = 0; i < warps_[index].groups.size(); ++i)
    if (complete(index, warps_[index].groups[i])) {
      release_group(index, i);
      break;
    }
  if (at_barrier_.size != 0 && all_at_barrier()) release_block_barrier();
}

// A switch to another thread would lose the exception: the fault is recorded here, and the block abandoned once it has
// been caught.
void Worker::exception_left_kernel() {
  running.in_kernel = false;
  std::string what = "of a type that is no std::exception";
  try {
    throw;
  } catch (const std::exception& exception) {
    what = exception.what();
  } catch (...) {
  }
  fault("an exception leaves the kernel: " + what, CallSite{});
}

// ---- blocks

void Worker::run(Job& job) {
  job_ = &job;
  const Grid& grid = job.grid;
  traffic_.assign(memory_.counters(), {});
  if (dynamic_bytes_ != grid.shared_bytes) {  // an exact size, so that one byte too far is seen
    if (dynamic_) memory_.release(dynamic_);
    dynamic_ = grid.shared_bytes == 0 ? nullptr : memory_.allocate(grid.shared_bytes, 1, "dynamic shared memory", true);
    dynamic_bytes_ = grid.shared_bytes;
    traffic_.resize(memory_.counters());
  }
  if (std::memcmp(&shape_, &grid.block, sizeof shape_) != 0) prepare_block();
  schedule_.set(job.order, job.order_seed, static_cast<uint32_t>(indices_.size()), job.blocks);
  watch_races_ = job.checks.races;
  watch_uninitialised_ = job.checks.uninitialised;
  recorder_.begin_launch(job.recorder, segment_, static_cast<uint32_t>(indices_.size()));
  recording_ = recorder_.on();
  blockDim = grid.block;
  gridDim = grid.grid;
  for (;;) {
    const uint64_t first = job.next_position.fetch_add(job.chunk, std::memory_order_relaxed);
    const uint64_t end = std::min(first + job.chunk, job.blocks);
    for (uint64_t position = first; position < end; ++position) {
      if (position >= job.fault_position.load(std::memory_order_relaxed)) break;
      run_block(schedule_.block_at(position));
      if (fault_.empty() && note_.empty()) continue;
      const std::lock_guard lock(job.mutex);
      if (!fault_.empty() && position < job.fault_position) {
        job.fault_position = position;
        job.fault = std::move(fault_);
      }
      if (!note_.empty() && position < job.note_position) {
        job.note_position = position;
        job.note = std::move(note_);
      }
      fault_.clear();
    }
    if (end >= job.blocks || end >= job.fault_position.load(std::memory_order_relaxed)) break;
  }
  if (checks_accesses()) memory_.add_traffic(traffic_);
  recorder_.end_launch();
  job_ = nullptr;
}

void Worker::prepare_block() {
  shape_ = job_->grid.block;
  const uint32_t threads = shape_.x * shape_.y * shape_.z;
  indices_.resize(threads);
  for (uint32_t i = 0; i < threads; ++i) indices_[i] = {i % shape_.x, i / shape_.x % shape_.y, i / shape_.x / shape_.y};
  waiting_.assign(threads, {});
  for (uint32_t i = 0; i < threads; ++i) {
    waiting_[i].index = indices_[i];
    waiting_[i].thread = i;
  }
  warps_.resize((threads + 31) / 32);
  for (uint32_t warp = 0; warp < warps_.size(); ++warp) {
    const uint32_t lanes = std::min(32u, threads - warp * 32);
    warps_[warp].present = lanes == 32 ? ~0u : (1u << lanes) - 1;
  }
}

void Worker::run_block(uint64_t block) {
  block_ = block;
  ++block_serial_;
  const dim3 grid = job_->grid.grid;
  blockIdx = {static_cast<unsigned>(block % grid.x), static_cast<unsigned>(block / grid.x % grid.y),
              static_cast<unsigned>(block / grid.x / grid.y)};
  static_bytes_ = 0;
  if (checks_accesses() && dynamic_) {
    std::memset(dynamic_, POISON, dynamic_bytes_);
    memory_.set_initialised(dynamic_, dynamic_bytes_, false);
  }
  if (watch_races_) races_.begin_block(static_cast<uint32_t>(warps_.size()));
  if (recording_) recorder_.begin_block();
  running.threads = static_cast<uint32_t>(indices_.size());
  running.started = running.ready = running.done = running.collectives = 0;
  running.indices = indices_.data();
  running.order = schedule_.begin_block(block);
  std::fill_n(running.returned_lanes, warps_.size(), 0u);
  at_barrier_.size = 0;
  in_step_ = false;
  note_.clear();
  Fiber& fiber = idle_fiber();
  switch_to(fiber, fiber.context, main_.context);
  if (!uninitialised_read_.what.empty()) fault_record_ = std::exchange(uninitialised_read_, {});  // it came first
  if (!fault_record_.what.empty())
    fault_ = describe_fault();
  else if (running.done != running.threads)
    fault_ = describe_deadlock();
  if (!fault_.empty())
    reset_after_fault();
  else if (recording_)
    recorder_.end_block(block, [this](uint32_t site) { return name_of_site(site); });
}

void Worker::reset_after_fault() {
  fault_record_ = {};
  for (Warp& warp : warps_) warp.groups.clear();
  idle_.clear();
  for (Fiber& fiber : fibers_) {
    start(fiber);
    idle_.push_back(&fiber);
  }
}

void Worker::fault(std::string what, CallSite line) {
  fault_record_ = {std::move(what), running.thread, {line, nullptr}};
}
void Worker::fault(std::string what, const void* return_address, std::string before, Place other) {
  fault_record_ = {std::move(what), running.thread, {atomic_site_, return_address}, std::move(before), other};
}
void Worker::index_out_of_bounds(const char* type, std::ptrdiff_t index, const void* return_address) {
  fault_record_ = {"index " + std::to_string(index), running.thread, {{}, return_address}, {}, {}, type};
  abandon();
}

// Leaves the fiber for good.
void Worker::abandon() {
  switch_to(main_, main_.context, current_->context);
  __builtin_unreachable();
}

void Worker::stop_here() {
  go_on(current_->context);
  __builtin_unreachable();
}

std::string Worker::describe_block() const {
  return "kernel " + function_name(job_->grid.kernel) + ", block " + index_text(blockIdx, job_->grid.grid);
}
std::string Worker::where(uint32_t thread) const {
  return describe_block() + ", thread " + index_text(indices_[thread], shape_);
}
std::string Worker::describe_fault() const {
  const Fault& record = fault_record_;
  const auto text = [](const Place& place) {
    return place.return_address ? source_line(place.return_address) : site_text(place.line);
  };
  std::string what = record.array_type.empty() ? record.what : describe_array(record.array_type, record.what);
  if (!record.before_other.empty()) what += record.before_other + text(record.other);
  const bool has_place = record.place.return_address || record.place.line.file;
  return what + "\n  in " + where(record.thread) + (has_place ? ", at " + text(record.place) : "");
}

// The compiler knows the type of the array, "'float [3]'", and not its name. Of the running kernel's shared arrays,
// usually one alone fits the extents.
std::string Worker::describe_array(const std::string& type, const std::string& index) const {
  std::size_t elements = 1, first_extent = 0;
  for (std::size_t open = type.find('['); open != std::string::npos; open = type.find('[', open + 1)) {
    const std::size_t extent = std::strtoull(type.c_str() + open + 1, nullptr, 10);
    if (first_extent == 0) first_extent = extent;
    elements *= extent;
  }
  std::string type_name = type;  // g++ writes 'float [3]', clang 'float[3]'
  if (const std::size_t space = type_name.find(" ["); space != std::string::npos) type_name.erase(space, 1);
  const std::string kernel = function_name(job_->grid.kernel);
  std::string names;
  for (const SharedArray& array : shared_arrays())
    if (array.function == kernel && elements != 0 && array.bytes % elements == 0)
      names += (names.empty() ? "'" : " or '") + array.name + "'";
  return "out-of-bounds index into " + (names.empty() ? "an" : "shared array " + names + ", or a local") +
         " array of type " + type_name + ": " + index + ", size " + std::to_string(first_extent);
}

std::string Worker::describe_deadlock() const {
  std::map<std::string, std::vector<uint32_t>> groups;
  for (uint32_t thread = 0; thread < running.threads; ++thread) {
    const Waiting& wait = waiting_[thread];
    const bool returned = running.returned_lanes[thread / 32] >> thread % 32 & 1;
    groups[returned ? "" : std::string("in ") + wait.name + " at " + site_text(wait.site)].push_back(thread);
  }
  std::string text = at_barrier_.size + running.done == running.threads
                         ? "portability: threads return before a barrier that others reach; it waits for the others "
                           "since sm_70, and before, this was undefined"
                         : "barrier that not all threads reach: no thread of the block can go on";
  for (const auto& [place, threads] : groups) {
    const bool one = threads.size() == 1;
    text += "\n    " + std::to_string(threads.size()) + (one ? " thread " : " threads ");
    text += place.empty() ? (one ? "has returned from the kernel" : "have returned from the kernel")
                          : (one ? "waits " : "wait ") + place;
    text += (one ? ": " : ": first ") + index_text(indices_[threads.front()], shape_);
    if (!one) text += ", last " + index_text(indices_[threads.back()], shape_);
  }
  return text + "\n  in " + describe_block();
}

void Worker::note_returned_threads(CallSite site) {
  note_ = "note: " + std::to_string(running.done) + (running.done == 1 ? " thread had" : " threads had") +
          " returned when the other " + std::to_string(at_barrier_.size) + " met in __syncthreads at " +
          site_text(site) + "; before sm_70 this was undefined\n  in " + describe_block();
}

// ---- what kernels call

void block_barrier(CallSite site) {
  const OutsideKernel outside;
  worker->block_barrier(site);
}
void warp_barrier(unsigned mask, CallSite site) {
  const OutsideKernel outside;
  worker->warp_collective(mask, Worker::Collective::barrier, "__syncwarp", site);
}
uint64_t warp_shuffle(unsigned mask, uint64_t value, int source_lane, int width, const char* name, CallSite site) {
  const OutsideKernel outside;
  if (width < 1 || width > 32 || !std::has_single_bit(static_cast<unsigned>(width))) {
    worker->fault(std::string(name) + ": width is " + std::to_string(width) + ", must be a power of two from 1 to 32",
                  site);
    worker->abandon();
  }
  worker->mailbox() = {value, source_lane};
  worker->warp_collective(mask, Worker::Collective::shuffle, name, site);
  return worker->mailbox().value;
}
unsigned warp_ballot(unsigned mask, bool predicate, const char* name, CallSite site) {
  const OutsideKernel outside;
  worker->mailbox() = {predicate, 0};
  worker->warp_collective(mask, Worker::Collective::ballot, name, site);
  return static_cast<unsigned>(worker->mailbox().value);
}
void thread_returned() { worker->thread_returned(); }
void exception_left_kernel() {
  worker->exception_left_kernel();
  running.faulty = true;
}
void abandon_thread() { worker->abandon(); }
int lane() { return static_cast<int>(running.thread % 32); }
void* dynamic_shared_memory() { return worker->dynamic_shared(); }

}  // namespace ladder::cpu_device

// What glibc's assert() calls. This one takes the place of the C library's own in the whole program, which a failed
// assertion of the host still reaches.
extern "C" [[noreturn]] void __assert_fail(const char* expression, const char* file, unsigned line,
                                           const char* function) noexcept {
  using namespace ladder::cpu_device;
  if (std::exchange(running.in_kernel, false)) {
    worker->fault("assertion failed: " + std::string(expression), CallSite{file, static_cast<int>(line)});
    worker->abandon();
  }
  const auto real = reinterpret_cast<decltype(&__assert_fail)>(dlsym(RTLD_NEXT, "__assert_fail"));
  if (real) real(expression, file, line, function);
  std::abort();
}
