#include "tests/cpu_device/cost.hpp"
#include "tests/cpu_device/cost_kernels.cuh"

const CostKernels BARE{[](const float* input, float* output, int64_t rows) {
                         ladder::launch(cost_softmax, ladder::grid_of("cost_softmax", rows), dim3(COST_THREADS), 0,
                                        nullptr, input, output);
                       },
                       [](const float* x, const float* y, float* out, int64_t n) {
                         ladder::launch(cost_vector_add, ladder::grid_of("cost_vector_add", ladder::cdiv(n, 256)),
                                        dim3(256), 0, nullptr, x, y, out, n);
                       }};
