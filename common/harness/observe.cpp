#include "common/harness/observe.hpp"

#include <filesystem>
#include <fstream>
#include <iomanip>
#include <sstream>
#include <utility>

#include "common/harness/device.hpp"
#include "common/harness/report.hpp"
#include "common/kernel/error.hpp"

namespace ladder {
using cpu_device::LaunchRecord;
using cpu_device::RequestCounts;

// What the options of this process ask for, and what was observed last.
struct Observed {
  bool counters = false;
  std::string picture;
  std::vector<Tensor> tensors;
  std::vector<LaunchRecord> launches;
  bool wanted() const { return counters || !picture.empty(); }
};
static Observed observed;

static void require_writable(const std::string& path) {
  const bool existed = std::filesystem::exists(path);
  const bool writable = static_cast<bool>(std::ofstream(path, std::ios::app));
  if (!writable) throw InvalidArgument("--picture is \"" + path + "\", must be a file that can be written");
  if (!existed) std::filesystem::remove(path);
}

void ObserveOptions::add_to(CommandLine& command_line) {
  command_line.text("--order", order, "in which order threads and blocks run",
                    "forward, reversed, warp-reversed or random:SEED", "ORDER");
  command_line.flag("--counters", counters, "print the requests to memory, beside the fewest possible");
  command_line.text("--picture", picture, "draw what the rung's kernel touched", "a file to write, as SVG", "FILE");
}

void ObserveOptions::apply() const {
  const auto refuse = [](const std::string& option, const std::string& what) {
    throw InvalidArgument(option + ": only the CPU device " + what + ": ./climb N --device cpu " + option);
  };
  if (!order.empty() && !try_set_order(order)) refuse("--order", "runs threads in an order of your choice");
  if (counters && !device_checks()) refuse("--counters", "in its checked build sees what a kernel asks for");
  if (!picture.empty()) {
    if (!device_checks()) refuse("--picture", "in its checked build sees what a kernel touches");
    require_writable(picture);
  }
  observed = {counters, picture, {}, {}};
}

void observe(std::vector<Tensor> tensors, const std::function<void()>& body) {
  if (!observed.wanted()) return body();
  struct Recorded {
    Recorded() { record_launches({.requests = observed.counters, .cells = !observed.picture.empty()}); }
    ~Recorded() { record_launches({}); }
  } const recorded;
  body();
  observed.launches = recorded_launches();
  observed.tensors = std::move(tensors);
}

void report_observed(std::ostream& out) {
  if (!observed.wanted()) return;
  const char* option = observed.counters ? "--counters" : "--picture";
  if (observed.launches.empty())
    throw InvalidArgument(std::string(option) + ": with these options nothing is launched");
  if (observed.counters)
    for (const LaunchRecord& launch : observed.launches) print_counters(out, launch);
  if (observed.picture.empty()) return;
  std::ofstream file(observed.picture, std::ios::trunc);
  file << picture_of(observed.launches.back(), observed.tensors);
  file.close();
  if (!file) throw InvalidArgument("--picture: \"" + observed.picture + "\" could not be written to its end");
  out << "\nPicture of " << observed.launches.back().kernel << ": " << observed.picture << "\n";
}

void print_counters(std::ostream& out, const LaunchRecord& launch) {
  const auto count = [](uint64_t value) { return grouped(static_cast<int64_t>(value)); };
  // "1.00", "31.97": two digits tell a perfect walk from one that is not.
  const auto ratio = [](uint64_t a, uint64_t b) {
    std::ostringstream text;
    text << std::fixed << std::setprecision(2) << static_cast<double>(a) / static_cast<double>(b);
    return text.str();
  };
  const auto row = [&](const std::string& name, const std::string& access, std::initializer_list<std::string> values) {
    out << "  " << std::left << std::setw(22) << name << std::setw(8) << access << std::right;
    for (const std::string& value : values) out << std::setw(13) << value;
    out << "\n";
  };
  const auto plural = [&](uint64_t n, const char* noun) { return count(n) + " " + noun + (n == 1 ? "" : "s"); };
  out << "\nRequests of " << launch.kernel << ", " << plural(launch.blocks(), "block") << " of "
      << plural(launch.threads(), "thread") << "\n";
  row("buffer", "", {"bytes", "requests", "sectors", "ideal", "per request"});
  for (const auto& buffer : launch.buffers)
    for (const auto& [access, counts] : {std::pair("read", &buffer.read), std::pair("written", &buffer.written)})
      if (counts->requests > 0)
        row(buffer.buffer, access,
            {count(counts->bytes), count(counts->requests), count(counts->sectors), count(counts->ideal_sectors),
             ratio(counts->sectors, counts->requests)});
  if (launch.shared.empty()) return;
  row("shared array", "", {"", "requests", "wavefronts", "ideal", "per request"});
  for (const auto& array : launch.shared)
    row(array.array, "",
        {"", count(array.requests), count(array.wavefronts), count(array.ideal_wavefronts),
         ratio(array.wavefronts, array.requests)});
}
}  // namespace ladder
