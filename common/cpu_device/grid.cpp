// A launch from outside: its checks, the workers that share its blocks, and what a host program may set and ask.
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/cpu_device/environment.hpp"
#include "common/cpu_device/self_check.hpp"
#include "common/cpu_device/worker.hpp"

namespace ladder {
namespace cpu_device {
namespace {

constexpr unsigned MOST_WORKERS = 16;  // 1,024 guarded stacks each: more would meet the system's limit on mappings

struct NamedOrder {
  Order order;
  uint64_t seed;
};
constexpr const char* ORDERS = "forward, reversed, warp-reversed or random:SEED";
std::optional<NamedOrder> order_of(std::string_view words) {
  if (words == "forward") return NamedOrder{Order::forward, 0};
  if (words == "reversed") return NamedOrder{Order::reversed, 0};
  if (words == "warp-reversed") return NamedOrder{Order::warp_reversed, 0};
  const std::string_view random = "random:";
  if (!words.starts_with(random)) return std::nullopt;
  const std::optional<uint64_t> seed = number_of(words.substr(random.size()));
  return seed ? std::optional(NamedOrder{Order::random, *seed}) : std::nullopt;
}

std::optional<Checks> checks_of(std::string_view word) {
  const bool all = word == "all";
  const Checks checks{all || word == "uninitialised", all || word == "races", all || word == "portability"};
  const bool known = word == "none" || checks.uninitialised || checks.races || checks.portability;
  return known ? std::optional(checks) : std::nullopt;
}

std::optional<unsigned> workers_of(std::string_view text) {
  const std::optional<uint64_t> number = number_of(text);
  if (!number || *number < 1 || *number > MOST_WORKERS) return std::nullopt;
  return static_cast<unsigned>(*number);
}

struct Settings {
  const DeviceModel* model = &DEVICE_MODELS.back();
  Checks checks{.uninitialised = true, .races = false, .portability = false};
  bool checks_are_fixed = false;  // by the environment
  NamedOrder order{Order::forward, 0};
  unsigned workers = std::clamp(std::thread::hardware_concurrency(), 1u, MOST_WORKERS);
  Recording recording{};
  std::vector<LaunchRecord> records{};
  std::string environment_error{};  // told when the device is first asked for something: here no caller could catch it

  Settings() {
    try {
      order = from_environment("LADDER_ORDER", ORDERS, order_of).value_or(order);
      workers = from_environment("LADDER_WORKERS", "a number from 1 to " + std::to_string(MOST_WORKERS), workers_of)
                    .value_or(workers);
      if (const auto wanted =
              from_environment("LADDER_CHECKS", "none, uninitialised, races, portability or all", checks_of)) {
        checks = *wanted;
        checks_are_fixed = true;
      }
    } catch (const InvalidArgument& error) {
      environment_error = error.what();
    }
  }
  void require_environment() const {
    if (!environment_error.empty()) throw InvalidArgument(environment_error);
  }
};
Settings settings;
std::atomic<uint64_t> launches{0};
std::mutex streams_mutex;
std::set<cudaStream_t> streams;  // that launches were given since reset_traffic()

// Persistent OS threads. The launching thread works too, so that a small launch wakes nobody.
class Pool {
 public:
  Pool() {
    for (unsigned i = 1; i < settings.workers; ++i) threads_.emplace_back([this] { loop(); });
  }
  ~Pool() {
    {
      const std::lock_guard lock(mutex_);
      end_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  void run(Job& job, bool alone) {
    const std::lock_guard one_launch(launch_mutex_);
    if (alone || threads_.empty()) return this_worker().run(job);
    {
      const std::lock_guard lock(mutex_);
      job_ = &job;
      ++generation_;
      busy_ = threads_.size();
    }
    wake_.notify_all();
    this_worker().run(job);
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return busy_ == 0; });
  }

 private:
  void loop() {
    uint64_t seen = 0;
    for (;;) {
      Job* job = nullptr;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return end_ || generation_ != seen; });
        if (end_) return;
        seen = generation_;
        job = job_;
      }
      this_worker().run(*job);
      const std::lock_guard lock(mutex_);
      if (--busy_ == 0) idle_.notify_one();
    }
  }

  std::mutex launch_mutex_, mutex_;
  std::condition_variable wake_, idle_;
  std::vector<std::thread> threads_;
  Job* job_ = nullptr;
  uint64_t generation_ = 0;
  std::size_t busy_ = 0;
  bool end_ = false;
};

// The pool of this process. A forked child inherits the parent's pool without its threads, and makes one of its own;
// the inherited one is let go as it is, since there is no thread that its destructor could join.
class PoolOfProcess {
 public:
  PoolOfProcess() { Memory::instance(); }  // made before the pool, hence there until the workers have given back theirs
  ~PoolOfProcess() { let_go_in_child(); }
  Pool& get() {
    let_go_in_child();
    if (!pool_) {
      pool_ = std::make_unique<Pool>();
      process_ = getpid();
    }
    return *pool_;
  }

 private:
  void let_go_in_child() {
    if (pool_ && process_ != getpid()) (void)pool_.release();
  }
  std::unique_ptr<Pool> pool_;
  pid_t process_ = 0;
};
Pool& pool() {
  static std::mutex mutex;
  static PoolOfProcess pool;
  const std::lock_guard lock(mutex);
  return pool.get();
}

// Bytes of the kernel's own __shared__ arrays, looked up once. (Those of functions that it calls count when the block
// first touches them: the program's symbols do not say who calls whom.)
std::size_t own_shared_bytes(const void* kernel) {
  static std::mutex mutex;
  static std::unordered_map<const void*, std::size_t> known;
  const std::lock_guard lock(mutex);
  const auto [entry, is_new] = known.try_emplace(kernel, 0);
  if (is_new) {
    const std::string name = function_name(kernel);
    for (const SharedArray& array : shared_arrays())
      if (array.function == name) entry->second += array.bytes;
  }
  return entry->second;
}

// While the device looks at itself, its launches are not counted, and run under the first settings. Other host threads
// wait until it has.
thread_local bool looking_at_itself = false;

#ifdef LADDER_CHECKED
bool reports(float* cell, int64_t index, bool write_shared) {
  try {
    launch_self_check(cell, index, write_shared);
  } catch (const KernelFault&) {
    return true;
  }
  return false;
}

// A store, an access out of bounds and one of shared memory: does the device see them?
bool sees_its_own_kernel() {
  float* const cell = static_cast<float*>(Memory::instance().allocate(sizeof(float), sizeof(float), "self-check"));
  *cell = 0;
  mark_initialised(cell, sizeof(float));
  looking_at_itself = true;
  bool sees = !reports(cell, 0, true);
  Memory::instance().for_each([&](Allocation& allocation) {
    if (allocation.begin == reinterpret_cast<std::uintptr_t>(cell))
      sees = sees && allocation.traffic.read == sizeof(float) && allocation.traffic.written == sizeof(float);
  });
  sees = sees && reports(cell, 1, true) && reports(cell, 0, false);
  looking_at_itself = false;
  Memory::instance().release(cell);
  return sees;
}
#endif

void require_that_accesses_are_seen() {
#ifdef LADDER_CHECKED
  if (looking_at_itself) return;
  static const bool sees = sees_its_own_kernel();
  if (!sees)
    throw InvalidArgument(
        "the CPU device was built to see each access, and does not see those of its own kernel: the compiler has left out "
        "its callbacks, as with -flto. Build without that, or with -DLADDER_CHECKED=OFF");
#endif
}

// A note is worth a line, not one for each launch of a loop.
void print_once(const void* kernel, const std::string& note) {
  static std::mutex mutex;
  static std::set<const void*> noted;
  const std::lock_guard lock(mutex);
  if (noted.insert(kernel).second) std::fprintf(stderr, "%s\n", note.c_str());
}

}  // namespace

void set_device_model(std::string_view name) {
  const auto found = std::ranges::find(DEVICE_MODELS, name, &DeviceModel::name);
  if (found == DEVICE_MODELS.end())
    throw InvalidArgument("set_device_model: name is '" + std::string(name) +
                          "', must be sm_75, sm_80, sm_86, sm_89 or sm_90");
  settings.model = &*found;
}
std::string_view device_model() { return settings.model->name; }
void set_checks(Checks checks) {
  if (!settings.checks_are_fixed) settings.checks = checks;
}
Checks checks() { return settings.checks; }
void set_order(Order order, uint64_t seed) { settings.order = {order, seed}; }
void set_order(std::string_view words) {
  const std::optional<NamedOrder> order = order_of(words);
  if (!order) throw InvalidArgument("the order is '" + std::string(words) + "', must be " + ORDERS);
  settings.order = *order;
}
void set_recording(Recording what) {
  settings.recording = checks_accesses() ? what : Recording{};
  settings.records.clear();
}
std::vector<LaunchRecord> take_records() { return std::exchange(settings.records, {}); }

unsigned workers() {
  settings.require_environment();
  return settings.workers;
}

void* allocate(std::size_t bytes, std::size_t element_bytes, std::string name) {
  return Memory::instance().allocate(bytes, element_bytes, std::move(name));
}
void release(void* memory) noexcept { Memory::instance().release(memory); }
void mark_initialised(void* memory, std::size_t bytes) { Memory::instance().set_initialised(memory, bytes, true); }
void poison(void* memory, std::size_t bytes) {
  std::memset(memory, 0xff, bytes);
  Memory::instance().set_initialised(memory, bytes, false);
}
bool slack_intact(const void* memory) { return Memory::instance().slack_intact(memory); }

std::vector<BufferTraffic> traffic() {
  std::vector<BufferTraffic> all;
  Memory::instance().for_each([&](Allocation& allocation) {
    if (!allocation.shared) all.push_back({allocation.name, allocation.traffic.read, allocation.traffic.written});
  });
  return all;
}
uint64_t kernels_launched() { return launches; }
std::set<cudaStream_t> streams_used() {
  const std::lock_guard lock(streams_mutex);
  return streams;
}
void reset_traffic() {
  {
    const std::lock_guard lock(streams_mutex);
    streams.clear();
  }
  Memory::instance().for_each([](Allocation& allocation) { allocation.traffic = {}; });
}

void run_grid(const Grid& grid) {
  if (std::exchange(running.in_kernel, false)) {
    worker->fault("a kernel launches a kernel, which the CPU device does not offer", __builtin_return_address(0));
    worker->abandon();
  }
  settings.require_environment();
  if (checks_accesses() && other_thread_locals().empty())
    throw InvalidArgument(
        "the CPU device tells shared arrays by the program's symbol table, and this program has none: it was stripped");
  if (checks_accesses() && !grid.seen_or_bare)
    throw InvalidArgument("launch of " + function_name(grid.kernel) +
                          ": its file is compiled without -fsanitize=thread, and its accesses would not be seen; it "
                          "needs the flags of kernel files (ladder_kernel_flags)");
  require_that_accesses_are_seen();
  const std::size_t limit = shared_memory_limit();
  check_launch([&] { return function_name(grid.kernel); }, grid.grid, grid.block, own_shared_bytes(grid.kernel),
               grid.shared_bytes, limit);
  const uint64_t blocks = uint64_t{grid.grid.x} * grid.grid.y * grid.grid.z;
  const uint64_t threads = blocks * (grid.block.x * grid.block.y * grid.block.z);
  std::optional<LaunchRecorder> recorder;
  if (!looking_at_itself && (settings.recording.requests || settings.recording.cells))
    recorder.emplace(settings.recording, LaunchRecord{.kernel = function_name(grid.kernel),
                                                      .grid = {grid.grid.x, grid.grid.y, grid.grid.z},
                                                      .block = {grid.block.x, grid.block.y, grid.block.z},
                                                      .dynamic_shared_bytes = grid.shared_bytes});
  // Several chunks per worker even out their pace; below a few thousand threads, waking another worker costs more.
  Job job{grid,
          blocks,
          std::max<uint64_t>(1, blocks / (uint64_t{workers()} * 16)),
          looking_at_itself   ? Checks{.uninitialised = true}
          : checks_accesses() ? settings.checks
                              : Checks{.portability = settings.checks.portability},
          looking_at_itself ? Order::forward : settings.order.order,
          settings.order.seed,
          limit,
          settings.model->name,
          recorder ? &*recorder : nullptr};
  pool().run(job, blocks == 1 || threads < 4096);
  if (!looking_at_itself) {
    const std::lock_guard lock(streams_mutex);
    streams.insert(grid.stream);
    launches.fetch_add(1, std::memory_order_relaxed);
  }
  if (!job.fault.empty()) throw KernelFault(job.fault);
  if (!job.note.empty()) print_once(grid.kernel, job.note);
  if (recorder) settings.records.push_back(recorder->take());
}

}  // namespace cpu_device

std::size_t shared_memory_limit() { return cpu_device::settings.model->shared_bytes; }

}  // namespace ladder
