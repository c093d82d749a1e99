// Each launcher runs its kernels on the stream that it was given. The CPU device knows the stream of each launch. On a
// GPU the inputs come late, by copies on that stream, which waits until the launcher has returned: a kernel on another
// stream reads poison.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <set>
#include <thread>
#include <type_traits>

#include "steps/01_vector_add/vectorized.cuh"
#include "steps/02_relu_dropout/four_per_call.cuh"
#include "steps/02_relu_dropout/in_flight.cuh"
#include "steps/02_relu_dropout/unfused.cuh"
#include "steps/03_softmax_buggy/softmax.cuh"
#include "steps/04_softmax_fixed/naive.cuh"
#include "steps/04_softmax_fixed/unfused.cuh"
#include "steps/04_softmax_fixed/vectorized.cuh"
#include "steps/05_attention/attention.cuh"
#include "steps/05_attention/register_tiles.cuh"
#include "tests/expect.hpp"

namespace {

using namespace ladder;

#ifdef __CUDACC__

// A stream that no other waits for, held up until release(). It gives up by itself, so that a test cannot hang.
class LateStream {
 public:
  LateStream() {
    check_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    check_cuda(cudaLaunchHostFunc(stream_, wait, &released_), "cudaLaunchHostFunc");
  }
  ~LateStream() {
    released_ = true;
    (void)cudaStreamSynchronize(stream_);
    (void)cudaStreamDestroy(stream_);
  }
  LateStream(const LateStream&) = delete;
  LateStream& operator=(const LateStream&) = delete;

  cudaStream_t get() const { return stream_; }
  // `to` holds poison until the stream goes on, then what `from` holds.
  template <class T>
  void copy(const Buffer<T>& to, const Buffer<T>& from) {
    check_cuda(cudaMemcpyAsync(to.data(), from.data(), static_cast<std::size_t>(from.size()) * sizeof(T),
                               cudaMemcpyDeviceToDevice, stream_),
               "cudaMemcpyAsync");
  }
  // What runs on the default stream ends before this one goes on.
  void release() {
    check_cuda(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
    released_ = true;
    check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }

 private:
  static void CUDART_CB wait(void* released) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!*static_cast<std::atomic<bool>*>(released) && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  std::atomic<bool> released_{false};
  cudaStream_t stream_ = nullptr;
};

#else

class LateStream {
 public:
  cudaStream_t get() const { return stream_.get(); }
  template <class T>
  void copy(const Buffer<T>& to, const Buffer<T>& from) {
    std::copy_n(from.data(), from.size(), to.data());
    cpu_device::mark_initialised(to.data(), static_cast<std::size_t>(from.size()) * sizeof(T));
  }
  void release() {}

 private:
  Stream stream_;
};

#endif

// The launcher, called over `inputs` of these sizes and an output of `size` elements, gives on a late stream what it
// gives where the inputs are there before: its results are right by the tests of its own rung.
template <class T, class Launcher>
void check_stream(const char* name, const std::vector<int64_t>& sizes, int64_t size, const Launcher& launcher) {
  INFO(name);
  std::vector<Buffer<T>> sources, inputs;
  for (const int64_t n : sizes) {
    std::vector<T> values;
    for (int64_t i = 0; i < n; ++i) {
      const float value = static_cast<float>((i * 7 + n) % 23) / 8 - 1;
      if constexpr (std::is_same_v<T, float>)
        values.push_back(value);
      else
        values.push_back(__float2bfloat16(value));
    }
    sources.emplace_back("source", values);
    inputs.emplace_back("input", n);
  }
  const Buffer<T> ready("out", size), late("out", size);
  launcher(sources, ready, nullptr);
  device_synchronize();

  LateStream stream;
  for (std::size_t i = 0; i < sizes.size(); ++i) stream.copy(inputs[i], sources[i]);
  reset_launches();
  launcher(inputs, late, stream.get());
  const Launches launches = read_launches();
  stream.release();
  CHECK(launches.kernels > 0);
#ifndef __CUDACC__
  CHECK(launches.streams == std::set<cudaStream_t>{stream.get()});
#endif
  const std::vector<T> expected = ready.download(), actual = late.download();
  int different = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) different += std::memcmp(&expected[i], &actual[i], sizeof(T)) != 0;
  CHECK(different == exactly(0));
}

using Floats = std::vector<Buffer<float>>;
using Bf16s = std::vector<Buffer<__nv_bfloat16>>;

}  // namespace

TEST_CASE("01: the stream is the caller's") {
  constexpr int64_t N = 1000;
  check_stream<float>("vector_add", {N, N}, N, [](const Floats& in, const Buffer<float>& out, cudaStream_t stream) {
    step01::vector_add(in[0].view(N), in[1].view(N), out.view(N), stream);
  });
  for (const int64_t start : {0, 1})  // the 16-byte path, and where it cannot go
    check_stream<float>("vector_add_vectorized", {N + start, N}, N,
                        [&](const Floats& in, const Buffer<float>& out, cudaStream_t stream) {
                          step01::vector_add_vectorized(contiguous<const float>(in[0].data() + start, N), in[1].view(N),
                                                        out.view(N), stream);
                        });
}

TEST_CASE("02: the stream is the caller's") {
  constexpr int64_t N = 1000;
  const auto check = [](const char* name, int64_t start, auto relu_dropout) {
    check_stream<float>(name, {N + start}, N, [&](const Floats& in, const Buffer<float>& out, cudaStream_t stream) {
      relu_dropout(contiguous<const float>(in[0].data() + start, N), out.view(N), stream);
    });
  };
  using In = Vector<const float>;
  using Out = Vector<float>;
  for (const int64_t start : {0, 1}) {
    check("relu_dropout", start,
          [](In x, Out out, cudaStream_t stream) { step02::relu_dropout(x, out, 0.3f, 7, 0, stream); });
    check("relu_dropout_unfused", start,
          [](In x, Out out, cudaStream_t stream) { step02::relu_dropout_unfused(x, out, 0.3f, 7, 0, stream); });
    check("relu_dropout_four_per_call", start,
          [](In x, Out out, cudaStream_t stream) { step02::relu_dropout_four_per_call(x, out, 0.3f, 7, 0, stream); });
    check("relu_dropout_in_flight", start,
          [](In x, Out out, cudaStream_t stream) { step02::relu_dropout_in_flight(x, out, 0.3f, 7, 0, stream); });
  }
}

TEST_CASE("03 and 04: the stream is the caller's") {
  constexpr int64_t ROWS = 3;
  const auto check = [](const char* name, int64_t cols, auto softmax) {
    check_stream<float>(name, {ROWS * cols}, ROWS * cols,
                        [&](const Floats& in, const Buffer<float>& out, cudaStream_t stream) {
                          softmax(in[0].view(ROWS, cols), out.view(ROWS, cols), stream);
                        });
  };
  using In = Matrix<const float>;
  using Out = Matrix<float>;
  for (const int64_t cols : {5, 64, 300, 1024}) {  // with whole accesses and without; a row for a warp, for a block
    check("03 softmax", cols, [](In x, Out out, cudaStream_t stream) { step03::softmax(x, out, stream); });
    check("04 softmax", cols, [](In x, Out out, cudaStream_t stream) { step04::softmax(x, out, stream); });
    check("softmax_naive", cols, [](In x, Out out, cudaStream_t stream) { step04::softmax_naive(x, out, stream); });
    check("softmax_vectorized", cols,
          [](In x, Out out, cudaStream_t stream) { step04::softmax_vectorized(x, out, stream); });
    Buffer<float> scratch("scratch", step04::unfused_scratch(ROWS, cols));
    check("softmax_unfused", cols, [&](In x, Out out, cudaStream_t stream) {
      scratch.poison();
      step04::softmax_unfused(x, out, scratch.view(scratch.size()), stream);
    });
    check_stream<__nv_bfloat16>("softmax_vectorized, bf16", {ROWS * cols}, ROWS * cols,
                                [&](const Bf16s& in, const Buffer<__nv_bfloat16>& out, cudaStream_t stream) {
                                  step04::softmax_vectorized(Matrix<const __nv_bfloat16>(in[0].view(ROWS, cols)),
                                                             out.view(ROWS, cols), stream);
                                });
  }
}

TEST_CASE("05: the stream is the caller's") {
  constexpr int64_t Q_LEN = 40, HEAD_DIM = 10;
  const auto check = [](const char* name, int64_t K_LEN, auto attention) {
    check_stream<float>(name, {Q_LEN * HEAD_DIM, K_LEN * HEAD_DIM, K_LEN * HEAD_DIM}, Q_LEN * HEAD_DIM,
                        [&](const Floats& in, const Buffer<float>& out, cudaStream_t stream) {
                          attention(in[0].view(1, 1, Q_LEN, HEAD_DIM), in[1].view(1, 1, K_LEN, HEAD_DIM),
                                    in[2].view(1, 1, K_LEN, HEAD_DIM), out.view(1, 1, Q_LEN, HEAD_DIM), stream);
                        });
  };
  using In = Heads<const float>;
  using Out = Heads<float>;
  check("attention", 30, [](In q, In k, In v, Out out, cudaStream_t stream) {
    step05::attention(q, k, v, out, true, std::nullopt, stream);
  });
  const int64_t most = step05::register_tiles_most_keys(HEAD_DIM, static_cast<int64_t>(shared_memory_limit()));
  for (const int64_t k_len : {int64_t{30}, most + 1})  // its own kernel, and the rung's where the keys do not fit
    check("attention_register_tiles", k_len, [](In q, In k, In v, Out out, cudaStream_t stream) {
      step05::attention_register_tiles(q, k, v, out, true, std::nullopt, stream);
    });
}
