// The one include of every kernel file. nvcc compiles it for a GPU, g++ or clang for the CPU device: the kernels below
// it are the same text for both.
#pragma once

#include "common/kernel/block_size.cuh"
#include "common/kernel/contract.hpp"
#include "common/kernel/device.cuh"
#include "common/kernel/reduce.cuh"
#include "common/kernel/view.hpp"
