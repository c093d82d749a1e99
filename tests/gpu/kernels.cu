// Every kernel that the launchers of steps/ launch, a line for each as tests/gpu/kernels.py reads it: what the compiler
// and the device say of its registers, its memory, and how many blocks of it a multiprocessor holds at once. Nothing is
// launched. A kernel that is new in steps/ must be added here: a test compares the names.
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#include "common/harness/measure.hpp"
#include "common/kernel/gpu.cuh"
#include "steps/01_vector_add/vector_add.cuh"
#include "steps/01_vector_add/vectorized.cuh"
#include "steps/01_vector_add/without_mask.cuh"
#include "steps/02_relu_dropout/four_per_call.cuh"
#include "steps/02_relu_dropout/in_flight.cuh"
#include "steps/02_relu_dropout/relu_dropout.cuh"
#include "steps/02_relu_dropout/unfused.cuh"
#include "steps/03_softmax_buggy/softmax.cuh"
#include "steps/04_softmax_fixed/naive.cuh"
#include "steps/04_softmax_fixed/softmax.cuh"
#include "steps/04_softmax_fixed/unfused.cuh"
#include "steps/04_softmax_fixed/vectorized.cuh"
#include "steps/05_attention/attention.cuh"
#include "steps/05_attention/register_tiles.cuh"

namespace {

using namespace ladder;

// In blocks of `threads` threads with `dynamic_bytes` of dynamic shared memory, as at `shape`.
template <class... Parameters>
void record(void (*kernel)(Parameters...), int threads, int64_t dynamic_bytes, const std::string& shape) {
  const auto function = reinterpret_cast<const void*>(kernel);
  const char* name = nullptr;
  cudaFuncAttributes attributes{};
  int device = 0, blocks = 0, most_threads = 0;
  check_cuda(cudaFuncGetName(&name, function), "cudaFuncGetName");
  if (static_cast<std::size_t>(dynamic_bytes) > STATIC_SHARED_BYTES)
    check_cuda(
        cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(dynamic_bytes)),
        "cudaFuncSetAttribute");
  check_cuda(cudaFuncGetAttributes(&attributes, function), "cudaFuncGetAttributes");
  check_cuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, threads,
                                                           static_cast<std::size_t>(dynamic_bytes)),
             "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaDeviceGetAttribute(&most_threads, cudaDevAttrMaxThreadsPerMultiProcessor, device),
             "cudaDeviceGetAttribute");
  std::printf("kernel\t%s\t%s\t%d\t%d\t%zu\t%zu\t%lld\t%d\t%d\t%d\n", name, shape.c_str(), threads, attributes.numRegs,
              attributes.localSizeBytes, attributes.sharedSizeBytes, static_cast<long long>(dynamic_bytes), blocks,
              blocks * threads / WARP_SIZE, most_threads / WARP_SIZE);
}

template <int BLOCK_SIZE, int COLUMNS, class T>
void record_vectorized(const std::string& shape) {
  constexpr int THREADS = step04::vectorized_threads_for<T>(BLOCK_SIZE), ROWS = step04::vectorized_rows_for(THREADS);
  record(step04::softmax_vectorized_kernel<BLOCK_SIZE, THREADS, COLUMNS, T>, THREADS * ROWS, 0, shape);
}
template <int BLOCK_SIZE>
void record_softmax() {
  const std::string shape = std::to_string(BLOCK_SIZE) + " columns";
  record(step04::softmax_kernel<BLOCK_SIZE>, step04::threads_for(BLOCK_SIZE), 0, shape);
  record_vectorized<BLOCK_SIZE, 4, float>(shape);
  record_vectorized<BLOCK_SIZE, 8, __nv_bfloat16>(shape + ", bf16");
  record_vectorized<BLOCK_SIZE, 1, __nv_bfloat16>(shape + ", bf16, not aligned");
}

std::string keys(int64_t k_len) { return std::to_string(k_len) + " keys, head dimension 64"; }

void record_all() {
  record(step01::vector_add_kernel<256>, 256, 0, "any n");
  record(step01::vector_add_vectorized_kernel<256>, 256, 0, "any n");
  record(step01::vector_add_without_mask_kernel<256>, 256, 0, "any n");

  record(step02::relu_dropout_kernel<64>, 64, 0, "any n");
  record(step02::relu_dropout_kernel<128>, 128, 0, "any n");
  record(step02::relu_dropout_kernel<256>, 256, 0, "any n");
  record(step02::relu_dropout_four_per_call_kernel<256, true>, 256, 0, "any n, aligned");
  record(step02::relu_dropout_four_per_call_kernel<256, false>, 256, 0, "any n, not aligned");
  record(step02::relu_dropout_in_flight_kernel<64, 4>, 64, 0, "any n, aligned");
  record(step02::relu_kernel<256>, 256, 0, "any n");
  record(step02::dropout_kernel<256>, 256, 0, "any n");

  record(step03::softmax_kernel<1024>, step03::threads_for(1024), 0, "any number of columns");

  record_softmax<256>();
  record_softmax<1024>();
  record_softmax<2048>();
  record_softmax<8192>();
  record_softmax<32768>();
  record(step04::softmax_naive_kernel<256>, 256, 0, "any number of columns");
  constexpr int UNFUSED = step04::UNFUSED_THREADS;
  record(step04::row_max_kernel<UNFUSED>, UNFUSED, 0, "any number of columns");
  record(step04::subtract_kernel<UNFUSED>, UNFUSED, 0, "any number of columns");
  record(step04::exp_kernel<UNFUSED>, UNFUSED, 0, "any number of columns");
  record(step04::row_sum_kernel<UNFUSED>, UNFUSED, 0, "any number of columns");
  record(step04::divide_kernel<UNFUSED>, UNFUSED, 0, "any number of columns");

  const int64_t head_dim = 64, on_chip = static_cast<int64_t>(shared_memory_limit());
  const int64_t k_len = step05::most_keys(head_dim, on_chip);
  record(step05::attention_kernel<step05::QUERIES_PER_BLOCK>, step05::THREADS, step05::shared_bytes(k_len, head_dim),
         keys(k_len));
  record(step05::attention_kernel<step05::QUERIES_PER_BLOCK>, step05::THREADS, step05::shared_bytes(64, head_dim),
         keys(64));
  const int64_t k_len_of_tiles = step05::register_tiles_most_keys(head_dim, on_chip);
  record(step05::attention_register_tiles_kernel<step05::QUERIES_PER_BLOCK_OF_TILES>, step05::THREADS,
         4 * (k_len_of_tiles * step05::register_tiles_floats_per_key(head_dim) +
              step05::register_tiles_floats_besides(head_dim)),
         keys(k_len_of_tiles));
}

}  // namespace

int main() {
  try {
    if (const auto reason = device_missing()) throw std::runtime_error(*reason);
    for (const auto& [key, value] : device_facts()) std::printf("fact\t%s\t%s\n", key.c_str(), value.c_str());
    record_all();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kernel_record: error: %s\n", error.what());
    return 2;
  }
}
