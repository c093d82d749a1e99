// cudaStream_t for files that nvcc does not compile: the same type under the same name, as CUDA's own headers declare
// it.
#pragma once

/// A stream: launches on one run in order. nullptr is the default stream.
using cudaStream_t = struct CUstream_st*;
