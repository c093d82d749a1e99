// What the program's own debug information says of an address: names, source lines, shared arrays. Read through libdw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ladder::cpu_device {

// "common/kernel/reduce.cuh:48", or the bare address when the program carries no debug information.
std::string source_line(const void* return_address);

// The same with the column: "common/kernel/reduce.cuh:48:17".
std::string source_place(const void* return_address);

// "step04::softmax_kernel<1024>": no return type, no parameters.
std::string function_name(const void* function);

// A variable declared __shared__: a thread-local that belongs to a function.
struct SharedArray {
  std::size_t offset;  // in the program's thread-local segment
  std::size_t bytes;
  std::string name;      // "partial"
  std::string function;  // "ladder::block_reduce<256, ladder::Max>"
};
// All of the program, by offset.
const std::vector<SharedArray>& shared_arrays();

// The offsets of all other thread-locals: threadIdx and friends, and those of host code.
struct OtherThreadLocal {
  std::size_t offset, bytes;
};
const std::vector<OtherThreadLocal>& other_thread_locals();

// The program's thread-local segment on the calling OS thread.
struct Segment {
  std::uintptr_t begin;
  std::size_t bytes;
};
Segment thread_local_segment();

// The program's own loaded image (code, constants, globals).
bool in_program_image(std::uintptr_t address);
std::uintptr_t program_begin();

}  // namespace ladder::cpu_device
