#include <cuda_runtime.h>

#include <algorithm>
#include <cstdlib>
#include <new>
#include <vector>

#include "common/cpu_device/environment.hpp"
#include "common/harness/device.hpp"
#include "common/kernel/cuda_device.cuh"

namespace ladder {
namespace {

constexpr int POISON = 0xff;

// 256 keeps the alignment of cudaMalloc. With LADDER_BARE_BUFFERS set there are no guards and no poison:
// compute-sanitizer then knows the exact bounds, and which cells nobody wrote.
bool bare_buffers() {
  static const bool bare = environment_switch("LADDER_BARE_BUFFERS");
  return bare;
}
std::size_t guard_bytes() { return bare_buffers() ? 0 : 256; }

struct Header {  // stands in host memory; found again by the address that the user has
  unsigned char* begin;
  std::size_t bytes;
};
std::vector<Header>& allocations() {
  static std::vector<Header> all;
  return all;
}

}  // namespace

std::optional<std::string> device_missing() {
  int devices = 0;
  const cudaError_t status = cudaGetDeviceCount(&devices);
  if (status == cudaSuccess && devices > 0) return std::nullopt;
  return std::string("no CUDA device: ") + (status == cudaSuccess ? "none is installed" : cudaGetErrorString(status));
}

std::string device_description() {
  int device = 0;
  cudaDeviceProp properties{};
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return std::string(properties.name) + " (sm_" + std::to_string(properties.major) + std::to_string(properties.minor) +
         ", " + std::to_string(properties.multiProcessorCount) + " multiprocessors)";
}

bool device_checks() { return false; }

bool try_set_device_model(std::string_view) { return false; }

bool try_set_order(std::string_view) { return false; }
void record_launches(cpu_device::Recording) {}
std::vector<cpu_device::LaunchRecord> recorded_launches() { return {}; }

void device_synchronize() { check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize"); }

void* device_allocate(std::size_t bytes, std::size_t, const std::string&) {
  void* memory = nullptr;
  if (cudaMalloc(&memory, bytes + 2 * guard_bytes()) != cudaSuccess) {
    (void)cudaGetLastError();
    throw std::bad_alloc();
  }
  if (!bare_buffers()) check_cuda(cudaMemset(memory, POISON, bytes + 2 * guard_bytes()), "cudaMemset");
  unsigned char* const begin = static_cast<unsigned char*>(memory) + guard_bytes();
  allocations().push_back({begin, bytes});
  return begin;
}

void device_free(void* memory) noexcept {
  if (!memory) return;
  std::erase_if(allocations(), [&](const Header& header) { return header.begin == memory; });
  (void)cudaFree(static_cast<unsigned char*>(memory) - guard_bytes());
}

bool device_guards_intact(const void* memory) {
  const auto found = std::ranges::find(allocations(), memory, &Header::begin);
  if (found == allocations().end()) return false;
  const auto intact = [](const unsigned char* begin) {
    std::vector<unsigned char> guard(guard_bytes());
    copy_from_device(guard.data(), begin, guard_bytes());
    return std::ranges::all_of(guard, [](unsigned char byte) { return byte == POISON; });
  };
  return intact(found->begin - guard_bytes()) && intact(found->begin + found->bytes);
}

void check_everything() {}

void device_poison(void* device, std::size_t bytes) {
  if (bytes != 0) check_cuda(cudaMemset(device, 0xff, bytes), "cudaMemset");
}
void copy_to_device(void* device, const void* host, std::size_t bytes) {
  if (bytes != 0) check_cuda(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice), "cudaMemcpy to the device");
}
void copy_from_device(void* host, const void* device, std::size_t bytes) {
  if (bytes != 0) check_cuda(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy from the device");
}

static int64_t counted_from = 0;
void reset_launches() { counted_from = kernels_launched; }
Launches read_launches() { return {kernels_launched - counted_from, {}, {}}; }
int64_t total_launches() { return kernels_launched; }

Stream::Stream() {
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreate(&stream), "cudaStreamCreate");
  stream_.reset(stream);
}
void Stream::Destroy::operator()(cudaStream_t stream) const noexcept { (void)cudaStreamDestroy(stream); }

}  // namespace ladder
