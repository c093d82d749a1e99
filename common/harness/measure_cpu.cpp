#include <chrono>

#include "common/harness/measure.hpp"

namespace ladder {

bool on_gpu() { return false; }

double seconds(const std::function<void()>& body) {  // launches on the CPU device have ended when they return
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The CPU device hands out host memory; through the harness it also learns that `to` is written.
void copy_on_device(void* to, const void* from, std::size_t bytes) { copy_to_device(to, from, bytes); }

std::vector<std::pair<std::string, std::string>> device_facts() {
  return {{"device", device_description()},
          {"note", "times of a CPU that plays a GPU: they say nothing about a GPU's"}};
}

}  // namespace ladder
