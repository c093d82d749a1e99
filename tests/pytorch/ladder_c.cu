#include "tests/pytorch/ladder_c.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <string>

#include "steps/01_vector_add/vector_add.cuh"
#include "steps/01_vector_add/vectorized.cuh"
#include "steps/02_relu_dropout/four_per_call.cuh"
#include "steps/02_relu_dropout/relu_dropout.cuh"
#include "steps/03_softmax_buggy/softmax.cuh"
#include "steps/04_softmax_fixed/softmax.cuh"
#include "steps/05_attention/attention.cuh"

#define LADDER_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using namespace ladder;

thread_local std::string last_error;

// No exception leaves the library.
template <class Body>
int32_t guarded(Body&& body) {
  const auto failed = [](int32_t code, const std::exception& error) {
    last_error = error.what();
    return code;
  };
  try {
    body();
    return LADDER_OK;
  } catch (const InvalidArgument& error) {
    return failed(LADDER_INVALID_ARGUMENT, error);
  } catch (const LaunchRefused& error) {
    return failed(LADDER_LAUNCH_REFUSED, error);
  } catch (const KernelFault& error) {
    return failed(LADDER_KERNEL_FAULT, error);
  } catch (const std::exception& error) {
    return failed(LADDER_OTHER_ERROR, error);
  }
}

template <int RANK, class Tensor>
View<float, RANK> view_of(const Tensor& tensor) {
  View<float, RANK> view{tensor.data, {}, {}, tensor.extent};
  std::copy_n(tensor.sizes, RANK, view.sizes.begin());
  std::copy_n(tensor.strides, RANK, view.strides.begin());
  return view;
}
Vector<float> view(const ladder_vector& tensor) { return view_of<1>(tensor); }
Matrix<float> view(const ladder_matrix& tensor) { return view_of<2>(tensor); }
Heads<float> view(const ladder_heads& tensor) { return view_of<4>(tensor); }

cudaStream_t stream_of(void* stream) { return static_cast<cudaStream_t>(stream); }

}  // namespace

LADDER_EXPORT const char* ladder_last_error() { return last_error.c_str(); }

#ifdef __CUDACC__
LADDER_EXPORT const char* ladder_device() { return "cuda"; }
LADDER_EXPORT int32_t ladder_use_device(int32_t index) {
  return guarded([&] { check_cuda(cudaSetDevice(index), "cudaSetDevice(" + std::to_string(index) + ")"); });
}
#else
LADDER_EXPORT const char* ladder_device() { return "cpu"; }
LADDER_EXPORT int32_t ladder_use_device(int32_t index) {
  return guarded([&] { require_range("ladder_use_device", "index", index, 0, 0); });
}
#endif

LADDER_EXPORT int32_t ladder_vector_add(ladder_vector x, ladder_vector y, ladder_vector out, void* stream) {
  return guarded([&] { step01::vector_add(view(x), view(y), view(out), stream_of(stream)); });
}
LADDER_EXPORT int32_t ladder_vector_add_vectorized(ladder_vector x, ladder_vector y, ladder_vector out, void* stream) {
  return guarded([&] { step01::vector_add_vectorized(view(x), view(y), view(out), stream_of(stream)); });
}
LADDER_EXPORT int32_t ladder_relu_dropout(ladder_vector x, ladder_vector out, float p, uint64_t seed,
                                          uint64_t first_counter, void* stream) {
  return guarded([&] { step02::relu_dropout(view(x), view(out), p, seed, first_counter, stream_of(stream)); });
}
LADDER_EXPORT int32_t ladder_relu_dropout_four_per_call(ladder_vector x, ladder_vector out, float p, uint64_t seed,
                                                        uint64_t first_counter, void* stream) {
  return guarded(
      [&] { step02::relu_dropout_four_per_call(view(x), view(out), p, seed, first_counter, stream_of(stream)); });
}
LADDER_EXPORT int32_t ladder_softmax_buggy(ladder_matrix input, ladder_matrix output, void* stream) {
  return guarded([&] { step03::softmax(view(input), view(output), stream_of(stream)); });
}
LADDER_EXPORT int32_t ladder_softmax(ladder_matrix input, ladder_matrix output, void* stream) {
  return guarded([&] { step04::softmax(view(input), view(output), stream_of(stream)); });
}
LADDER_EXPORT int32_t ladder_attention(ladder_heads q, ladder_heads k, ladder_heads v, ladder_heads out, int32_t causal,
                                       const float* scale, void* stream) {
  return guarded([&] {
    step05::attention(view(q), view(k), view(v), view(out), causal != 0, scale ? std::optional(*scale) : std::nullopt,
                      stream_of(stream));
  });
}
