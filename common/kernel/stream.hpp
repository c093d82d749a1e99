// cudaStream_t for files that nvcc does not compile: the same type under the same name, as CUDA's own headers declare
// it.
#pragma once

using cudaStream_t = struct CUstream_st*;
