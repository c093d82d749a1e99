// __nv_bfloat16 for kernels: CUDA's own on a GPU, the same bits on the CPU device.
#pragma once

#ifdef __CUDACC__
#include <cuda_bf16.h>
#else
#include "common/cpu_device/bfloat16.hpp"
#endif
