// How fast rung 04 is, over the widths of a row: always about 2^28 elements, so that the bytes stay the same while the
// rows grow and become fewer. The foil moves the bytes of five kernels.
#include "common/harness/bench.hpp"
#include "common/harness/reference.hpp"
#include "steps/04_softmax_fixed/softmax.cuh"
#include "steps/04_softmax_fixed/unfused.cuh"
#include "steps/04_softmax_fixed/vectorized.cuh"

namespace {

using namespace ladder;

// bf16 for fp32, and back, where a cell that nobody wrote stays recognisable.
constexpr int THREADS = 256;
__global__ void __launch_bounds__(THREADS) to_bf16_kernel(const float* from, __nv_bfloat16* to, int64_t n) {
  const int64_t i = int64_t{blockIdx.x} * THREADS + threadIdx.x;
  if (i < n) to[i] = __float2bfloat16(from[i]);
}
__global__ void __launch_bounds__(THREADS) from_bf16_kernel(const __nv_bfloat16* from, float* to, int64_t n) {
  const int64_t i = int64_t{blockIdx.x} * THREADS + threadIdx.x;
  if (i < n) to[i] = __bfloat16_as_ushort(from[i]) == 0xffff ? __uint_as_float(0xffffffffu) : __bfloat162float(from[i]);
}

struct Problem {
  int64_t rows, columns;
  Buffer<float> input, output, scratch;

  Problem(int64_t rows_, int64_t columns_, int64_t scratch_elements)
      : rows(rows_),
        columns(columns_),
        input(bench::normal_buffer("input", rows * columns, 1)),
        output("output", rows * columns),
        scratch("scratch", scratch_elements) {}
};

bench::Work work(const std::shared_ptr<Problem>& p, double bytes, std::function<void()> run) {
  const auto expected = [p](int64_t first, int64_t count) {
    return reference_softmax(bench::part(p->input, first, count), count / p->columns, p->columns);
  };
  return {.run = std::move(run),
          .wrong = [p, expected] { return bench::wrong(p->output, p->columns, {.relative = 2e-6}, expected); },
          .bytes = bytes,
          .problem = "softmax columns=" + std::to_string(p->columns)};
}

template <class Softmax>
void add(const std::string& name, int64_t rows, int64_t columns, Softmax softmax) {
  bench::add(name + "/columns:" + std::to_string(columns), [=] {
    const auto p = std::make_shared<Problem>(rows, columns, 0);
    return work(p, 8.0 * static_cast<double>(rows * columns),
                [p, softmax] { softmax(p->input.view(p->rows, p->columns), p->output.view(p->rows, p->columns)); });
  });
}

void add_bf16(int64_t rows, int64_t columns) {
  bench::add("softmax_vectorized_bf16/columns:" + std::to_string(columns), [=] {
    const auto p = std::make_shared<Problem>(rows, columns, 0);
    const int64_t n = rows * columns;
    const auto input = std::make_shared<Buffer<__nv_bfloat16>>("input", n);
    const auto output = std::make_shared<Buffer<__nv_bfloat16>>("output", n);
    const dim3 grid = grid_of("convert", cdiv(n, THREADS));
    launch(to_bf16_kernel, grid, dim3(THREADS), 0, nullptr, p->input.data(), input->data(), n);
    launch(from_bf16_kernel, grid, dim3(THREADS), 0, nullptr, input->data(), p->input.data(), n);
    bench::Work of_fp32 = work(p, 4.0 * static_cast<double>(n), {});
    of_fp32.run = [p, input, output] {
      step04::softmax_vectorized(input->view(p->rows, p->columns), output->view(p->rows, p->columns));
    };
    of_fp32.wrong = [p, output, grid, n] {
      // Half a unit in the last place of a bf16 is at most 2^-8 of it; the rest is what fp32 may be off.
      launch(from_bf16_kernel, grid, dim3(THREADS), 0, nullptr, output->data(), p->output.data(), n);
      return bench::wrong(p->output, p->columns, {.relative = 1.0 / 256 + 2e-6}, [p](int64_t first, int64_t count) {
        return reference_softmax(bench::part(p->input, first, count), count / p->columns, p->columns);
      });
    };
    of_fp32.problem = "softmax bf16 columns=" + std::to_string(p->columns);
    return of_fp32;
  });
}

void add_unfused(int64_t rows, int64_t columns) {
  bench::add("softmax_unfused/columns:" + std::to_string(columns), [=] {
    const auto p = std::make_shared<Problem>(rows, columns, step04::unfused_scratch(rows, columns));
    // A row's maximum and sum are counted as one trip each way; the 32 lanes of a warp ask for one address.
    const double bytes = 4.0 * (8.0 * static_cast<double>(rows * columns) + 4.0 * static_cast<double>(rows));
    return work(p, bytes, [p] {
      step04::softmax_unfused(p->input.view(p->rows, p->columns), p->output.view(p->rows, p->columns),
                              p->scratch.view(p->scratch.size()));
    });
  });
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t elements = int64_t{1} << (bench::on_gpu() ? 28 : 16);
  for (int64_t columns : {256, 1000, 1024, 2000, 4096, 8192, 16384, 32768}) {
    const int64_t rows = elements / columns;
    add("softmax", rows, columns, [](auto input, auto output) { step04::softmax(input, output); });
    add("softmax_vectorized", rows, columns,
        [](auto input, auto output) { step04::softmax_vectorized(input, output); });
    add_bf16(rows, columns);
    if (columns == 1024 || columns == 2000 || columns == 8192) add_unfused(rows, columns);
  }
  return bench::run(argc, argv);
}
