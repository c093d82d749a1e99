// CUDA's words: nvcc's own on a GPU, those of the CPU device elsewhere.
#pragma once

#ifdef __CUDACC__
#include "common/kernel/cuda_device.cuh"
#else
#include "common/cpu_device/cpu_device.hpp"
#endif
