// How fast rung 04 is, over the widths of a row: always about 2^28 elements, so that the bytes stay the same while the
// rows grow and become fewer. The foil moves the bytes of five kernels.
#include "common/harness/bench.hpp"
#include "common/harness/reference.hpp"
#include "common/harness/work.hpp"
#include "steps/04_softmax_fixed/softmax.cuh"
#include "steps/04_softmax_fixed/unfused.cuh"
#include "steps/04_softmax_fixed/vectorized.cuh"

namespace {

using namespace ladder;

template <class Softmax>
void add(const std::string& name, int64_t rows, int64_t columns, Softmax softmax) {
  bench::add(name + "/columns:" + std::to_string(columns), [=] { return softmax_work(rows, columns, softmax); });
}

// fp32 to bf16, and back, where a cell that nobody wrote stays recognisable.
constexpr int THREADS = 256;
__global__ void __launch_bounds__(THREADS) to_bf16_kernel(const float* from, __nv_bfloat16* to, int64_t n) {
  const int64_t i = int64_t{blockIdx.x} * THREADS + threadIdx.x;
  if (i < n) to[i] = __float2bfloat16(from[i]);
}
__global__ void __launch_bounds__(THREADS) from_bf16_kernel(const __nv_bfloat16* from, float* to, int64_t n) {
  const int64_t i = int64_t{blockIdx.x} * THREADS + threadIdx.x;
  if (i < n) to[i] = __bfloat16_as_ushort(from[i]) == 0xffff ? __uint_as_float(0xffffffffu) : __bfloat162float(from[i]);
}

Work bf16_work(int64_t rows, int64_t columns) {
  struct Problem {
    Buffer<float> input_as_fp32, output_as_fp32;
    Buffer<__nv_bfloat16> input, output;
  };
  const int64_t n = rows * columns;
  const auto p = std::make_shared<Problem>(
      Problem{normal_buffer("input", n, 1), {"output", n}, {"bf16 input", n}, {"bf16 output", n}});
  const dim3 grid = grid_of("bf16", cdiv(n, THREADS));
  launch(to_bf16_kernel, grid, dim3(THREADS), 0, nullptr, p->input_as_fp32.data(), p->input.data(), n);
  launch(from_bf16_kernel, grid, dim3(THREADS), 0, nullptr, p->input.data(), p->input_as_fp32.data(), n);
  const auto expected = [p, columns](int64_t first, int64_t count) {
    return reference_softmax(part(p->input_as_fp32, first, count), count / columns, columns);
  };
  return {.run = [=] { step04::softmax_vectorized(p->input.view(rows, columns), p->output.view(rows, columns)); },
          .wrong =
              [=] {
                launch(from_bf16_kernel, grid, dim3(THREADS), 0, nullptr, p->output.data(), p->output_as_fp32.data(),
                       n);
                // Half a unit in the last place of a bf16 is at most 2^-8 of it; the rest is what fp32 may be off.
                return wrong(p->output_as_fp32, columns, {.relative = 1.0 / 256 + 3e-6}, expected);
              },
          .bytes = 4.0 * static_cast<double>(n),
          .problem = "softmax bf16 columns=" + std::to_string(columns)};
}

void add_unfused(int64_t rows, int64_t columns) {
  bench::add("softmax_unfused/columns:" + std::to_string(columns), [=] {
    const auto scratch = std::make_shared<Buffer<float>>("scratch", step04::unfused_scratch(rows, columns));
    Work work = softmax_work(rows, columns, [scratch](auto input, auto output) {
      step04::softmax_unfused(input, output, scratch->view(scratch->size()));
    });
    work.bytes = step04::unfused_bytes(rows, columns);
    return work;
  });
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t elements = int64_t{1} << (on_gpu() ? 28 : 16);
  for (int64_t columns : {256, 1000, 1024, 2000, 4096, 8192, 16384, 32768}) {
    const int64_t rows = elements / columns;
    add("softmax", rows, columns, [](auto input, auto output) { step04::softmax(input, output); });
    add("softmax_vectorized", rows, columns,
        [](auto input, auto output) { step04::softmax_vectorized(input, output); });
    bench::add("softmax_vectorized_bf16/columns:" + std::to_string(columns), [=] { return bf16_work(rows, columns); });
    if (columns == 1024 || columns == 2000 || columns == 8192) add_unfused(rows, columns);
  }
  return bench::run(argc, argv);
}
