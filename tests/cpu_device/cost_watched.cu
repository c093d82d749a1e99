#include "tests/cpu_device/cost_kernels.cuh"

extern const CostKernels WATCHED = KERNELS_OF_THIS_FILE;
