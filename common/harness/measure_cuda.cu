#include <cuda_runtime.h>

#include <memory>

#include "common/harness/measure.hpp"
#include "common/kernel/cuda_device.cuh"

namespace ladder {
namespace {

cudaDeviceProp properties() {
  int device = 0;
  cudaDeviceProp properties{};
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return properties;
}

class Event {
 public:
  Event() {
    cudaEvent_t event = nullptr;
    check_cuda(cudaEventCreate(&event), "cudaEventCreate");
    event_.reset(event);
  }
  cudaEvent_t get() const { return event_.get(); }

 private:
  struct Destroy {
    void operator()(cudaEvent_t event) const noexcept { (void)cudaEventDestroy(event); }
  };
  std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, Destroy> event_;
};

std::string version(int number) { return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10); }

}  // namespace

bool on_gpu() { return true; }

double seconds(const std::function<void()>& body) {
  static const Buffer<char> flush("flush", int64_t{8} * properties().l2CacheSize);
  static const Event start, stop;
  check_cuda(cudaMemsetAsync(flush.data(), 0, static_cast<std::size_t>(flush.size()), nullptr), "cudaMemsetAsync");
  check_cuda(cudaEventRecord(start.get(), nullptr), "cudaEventRecord");
  body();
  check_cuda(cudaEventRecord(stop.get(), nullptr), "cudaEventRecord");
  check_cuda(cudaEventSynchronize(stop.get()), "cudaEventSynchronize");
  float milliseconds = 0;
  check_cuda(cudaEventElapsedTime(&milliseconds, start.get(), stop.get()), "cudaEventElapsedTime");
  return milliseconds * 1e-3;
}

void copy_on_device(void* to, const void* from, std::size_t bytes) {
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, nullptr), "cudaMemcpyAsync on the device");
}

std::vector<std::pair<std::string, std::string>> device_facts() {
  int driver = 0, runtime = 0;
  check_cuda(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  check_cuda(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  return {{"device", device_description()},
          {"cuda_of_the_driver", version(driver)},
          {"cuda_of_the_build", version(runtime)},
          {"l2_bytes", std::to_string(properties().l2CacheSize)}};
}

}  // namespace ladder
