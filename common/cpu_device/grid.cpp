// A launch from outside: its checks, the workers that share its blocks, and what a host program may set and ask.
#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "common/cpu_device/worker.hpp"

namespace ladder {
namespace cpu_device {
namespace {

struct Settings {
  const DeviceModel* model = &DEVICE_MODELS.back();
  ReturnedThreads returned_threads = ReturnedThreads::strict;
  Checks checks{.uninitialised = true, .races = false};
  bool checks_are_fixed = false;  // by the environment
  Order order = Order::forward;
  uint64_t order_seed = 0;
  Recording recording{};
  std::vector<LaunchRecord> records{};
  std::string environment_error{};  // told at the first launch: nobody could catch it here

  Settings() {
    try {
      if (const char* words = std::getenv("LADDER_ORDER")) read_order(words);
      if (const char* word = std::getenv("LADDER_CHECKS")) {
        read_checks(word);
        checks_are_fixed = true;
      }
    } catch (const InvalidArgument& error) {
      environment_error = error.what();
    }
  }
  void read_order(std::string_view words) {
    const std::string_view random = "random:";
    uint64_t seed = 0;
    if (words == "forward")
      order = Order::forward;
    else if (words == "reversed")
      order = Order::reversed;
    else if (words == "warp-reversed")
      order = Order::warp_reversed;
    else if (words.starts_with(random) &&
             std::from_chars(words.data() + random.size(), words.data() + words.size(), seed).ptr ==
                 words.data() + words.size() &&
             words.size() > random.size())
      order = Order::random;
    else
      throw InvalidArgument("the order is '" + std::string(words) +
                            "', must be forward, reversed, warp-reversed or random:SEED");
    order_seed = seed;
  }
  void read_checks(std::string_view word) {
    if (word != "none" && word != "uninitialised" && word != "races" && word != "all")
      throw InvalidArgument("LADDER_CHECKS is '" + std::string(word) + "', must be none, uninitialised, races or all");
    checks = {word == "uninitialised" || word == "all", word == "races" || word == "all"};
  }
};
Settings settings;
std::atomic<uint64_t> launches{0};

// Persistent OS threads. The launching thread works too, so that a small launch wakes nobody.
class Pool {
 public:
  Pool() {
    Memory::instance();  // made before the pool, hence there until the workers have given back theirs
    for (unsigned i = 1; i < workers(); ++i) threads_.emplace_back([this] { loop(); });
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
void set_order(Order order, uint64_t seed) {
  settings.order = order;
  settings.order_seed = seed;
}
void set_order(std::string_view words) { settings.read_order(words); }
void set_recording(Recording what) {
  settings.recording = checks_accesses() ? what : Recording{};
  settings.records.clear();
}
std::vector<LaunchRecord> take_records() { return std::exchange(settings.records, {}); }
void set_returned_threads(ReturnedThreads rule) { settings.returned_threads = rule; }

unsigned workers() {
  static const unsigned count = [] {
    const char* wanted = std::getenv("LADDER_WORKERS");
    const unsigned number =
        wanted ? static_cast<unsigned>(std::strtoul(wanted, nullptr, 10)) : std::thread::hardware_concurrency();
    return std::clamp(number, 1u, 16u);  // 1,024 guarded stacks each: more would meet the system's limit on mappings
  }();
  return count;
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
void reset_traffic() {
  Memory::instance().for_each([](Allocation& allocation) { allocation.traffic = {}; });
}

void run_grid(const Grid& grid) {
  if (std::exchange(running.in_kernel, false)) {
    worker->fault("a kernel launches a kernel, which the CPU device does not offer", __builtin_return_address(0));
    worker->abandon();
  }
  if (!settings.environment_error.empty()) throw InvalidArgument(settings.environment_error);
  const std::size_t limit = shared_memory_limit();
  check_launch([&] { return function_name(grid.kernel); }, grid.grid, grid.block, grid.shared_bytes, limit);
  static Pool pool;
  const uint64_t blocks = uint64_t{grid.grid.x} * grid.grid.y * grid.grid.z;
  const uint64_t threads = blocks * (grid.block.x * grid.block.y * grid.block.z);
  std::optional<LaunchRecorder> recorder;
  if (settings.recording.requests || settings.recording.cells)
    recorder.emplace(settings.recording, LaunchRecord{.kernel = function_name(grid.kernel),
                                                      .grid = {grid.grid.x, grid.grid.y, grid.grid.z},
                                                      .block = {grid.block.x, grid.block.y, grid.block.z},
                                                      .dynamic_shared_bytes = grid.shared_bytes});
  // Several chunks per worker even out their pace; below a few thousand threads, waking another worker costs more.
  Job job{grid,
          blocks,
          std::max<uint64_t>(1, blocks / (uint64_t{workers()} * 16)),
          settings.returned_threads,
          checks_accesses() ? settings.checks : Checks{},
          settings.order,
          settings.order_seed,
          limit,
          settings.model->name,
          recorder ? &*recorder : nullptr};
  pool.run(job, blocks == 1 || threads < 4096);
  launches.fetch_add(1, std::memory_order_relaxed);
  if (!job.fault.empty()) throw KernelFault(job.fault);
  if (recorder) settings.records.push_back(recorder->take());
}

}  // namespace cpu_device

std::size_t shared_memory_limit() { return cpu_device::settings.model->shared_bytes; }

}  // namespace ladder
