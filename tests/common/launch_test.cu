// What a launch asks of shared memory, on each device: the kernel's __shared__ arrays and the dynamic part count
// together.
#include "common/kernel/gpu.cuh"
#include "tests/expect.hpp"

namespace {

using namespace ladder;

// Where a thread reads is known to the caller alone, so that no compiler does without the arrays.
__global__ void with_arrays(float* out, int where) {
  __shared__ float s[1000];
  __shared__ double t[12];
  const int i = static_cast<int>(threadIdx.x);
  s[i] = static_cast<float>(i);
  if (i < 12) t[i] = i;
  __syncthreads();
  if (i == 5) out[0] = s[where] + static_cast<float>(t[where]);
}

}  // namespace

TEST_CASE("BC-099: static and dynamic shared memory, around 48 KiB and up to the limit; one byte more is refused") {
  constexpr std::size_t STATIC = 4096;  // of with_arrays
  const std::size_t limit = shared_memory_limit();
  Buffer<float> out("out", 1);
  for (const std::size_t dynamic : {std::size_t{0}, std::size_t{40000}, std::size_t{45056}, std::size_t{45057},
                                    std::size_t{46000}, std::size_t{49152}, std::size_t{49153}, limit - STATIC}) {
    if (dynamic > limit - STATIC) continue;  // of a small GPU
    CAPTURE(dynamic);
    out.fill(-777);
    launch(with_arrays, dim3(1), dim3(32), dynamic, nullptr, out.data(), 3);
    CHECK(out.download()[0] == exactly(6.0f));
  }
  out.fill(-777);
  for (const std::size_t dynamic : {limit - STATIC + 1, limit, limit + 1}) {
    const std::string refusal =
        message_of<LaunchRefused>([&] { launch(with_arrays, dim3(1), dim3(32), dynamic, nullptr, out.data(), 3); });
    CHECK(refusal.find("with_arrays") != std::string::npos);
    CHECK(refusal.ends_with(": dynamic shared memory in bytes (beside 4096 of __shared__ arrays) is " +
                            std::to_string(dynamic) + ", must be at most " + std::to_string(limit - STATIC)));
  }
  CHECK(out.download()[0] == -777);
  launch(with_arrays, dim3(1), dim3(32), 0, nullptr, out.data(), 3);  // after a refusal the next launch is clean
  CHECK(out.download()[0] == exactly(6.0f));
}
