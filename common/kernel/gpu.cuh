// The one include of every kernel file. nvcc compiles it for a GPU, g++ or clang for the CPU device: the kernels below
// it are the same text for both.
#pragma once

#ifdef __CUDACC__
#include "common/kernel/cuda_device.cuh"
#else
#include "common/cpu_device/cpu_device.hpp"
#endif

#include "common/kernel/block_size.cuh"
#include "common/kernel/contract.hpp"
#include "common/kernel/reduce.cuh"
#include "common/kernel/view.hpp"
