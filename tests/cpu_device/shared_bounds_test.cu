// Static shared arrays. The program has few, so that what lies beside each is known.
#include "tests/cpu_device/expect_fault.hpp"

namespace {

const bool needs = needs_device_checks = true;

std::string at(int line) { return ", at tests/cpu_device/shared_bounds_test.cu:" + std::to_string(line); }

__global__ void constant_index_array(float* out) {
  __shared__ float s[3];
  s[threadIdx.x] = 1.0f;
  out[threadIdx.x] = s[threadIdx.x % 3];
}
constexpr int CONSTANT = __LINE__ - 3;

__global__ void two_dimensions(float* out, int row, int column) {
  __shared__ float tile[4][8];
  tile[row][column] = 1.0f;
  out[threadIdx.x] = tile[row & 3][column & 7];
}
constexpr int TWO = __LINE__ - 3;

__global__ void local_array(float* out, int i) {
  int local[5] = {0, 1, 2, 3, 4};
  out[threadIdx.x] = static_cast<float>(local[i]);
}
constexpr int LOCAL = __LINE__ - 2;

// Through a pointer the compiler knows no bound, and only the device's own map of the arrays is left.
__device__ void store(float* array, int64_t i) { array[i] = 1.0f; }
constexpr int STORE = __LINE__ - 1;
__device__ void read_on(const float* array, int64_t from, float* out) {
  for (int64_t i = from; i < 1'000'000; ++i) out[0] = array[i];
}
constexpr int READ_ON = __LINE__ - 2;

__global__ void through_a_pointer(float* out, int64_t i, bool write) {
  __shared__ float row[64];
  float* pointer = row;
  asm("" : "+r"(pointer));  // hides the array from the compiler
  if (write)
    store(pointer, i);
  else
    read_on(pointer, i, out);
}

void run_pointer(int64_t i, bool write) {
  const Buffer<float> out("out", 1);
  launch(through_a_pointer, dim3(1), dim3(1), 0, nullptr, out.data(), i, write);
}

}  // namespace

TEST_CASE("BC-091: an index past a shared array of constant size") {
  const Buffer<float> out("out", 4);
  CHECK_FAULT(launch(constant_index_array, dim3(1), dim3(4), 0, nullptr, out.data()),
              "out-of-bounds index into shared array 's', or a local array of type 'float[3]': index 3, size 3\n  in "
              "kernel (anonymous namespace)::constant_index_array, block 0, thread 3" +
                  at(CONSTANT));
}

TEST_CASE("an index past a row, and past the rows, of a shared array") {
  const Buffer<float> out("out", 1);
  const auto run = [&](int row, int column) {
    launch(two_dimensions, dim3(1), dim3(1), 0, nullptr, out.data(), row, column);
  };
  const std::string kernel = "\n  in kernel (anonymous namespace)::two_dimensions, block 0, thread 0" + at(TWO);
  const std::string what = "out-of-bounds index into shared array 'tile', or a local array of type ";
  CHECK_FAULT(run(4, 0), what + "'float[4][8]': index 4, size 4" + kernel);
  CHECK_FAULT(run(0, 8), what + "'float[8]': index 8, size 8" + kernel);
  CHECK_FAULT(run(0, -1), what + "'float[8]': index -1, size 8" + kernel);
  run(3, 7);
}

TEST_CASE("an index past a thread's own array") {
  const Buffer<float> out("out", 1);
  CHECK_FAULT(launch(local_array, dim3(1), dim3(1), 0, nullptr, out.data(), 5),
              "out-of-bounds index into an array of type 'int[5]': index 5, size 5\n  in kernel (anonymous "
              "namespace)::local_array, block 0, thread 0" +
                  at(LOCAL));
}

TEST_CASE("a shared array through a pointer") {
  const std::string kernel = "\n  in kernel (anonymous namespace)::through_a_pointer, block 0, thread 0";
  run_pointer(0, true);
  run_pointer(63, true);
  // Wherever the array lies, somewhere behind it lies no array. Another array may come first, and be uninitialised.
  const WithChecks bounds_only({.uninitialised = false, .races = false});
  const std::string read = message_of<KernelFault>([&] { run_pointer(64, false); });
  CHECK(contains(read, "out-of-bounds read of "));
  CHECK(contains(read, kernel + at(READ_ON)));
  CHECK(healthy());
  CHECK_FAULT(run_pointer(10'000'000, true),
              "out-of-bounds write to an address that belongs to no buffer, shared array or local variable (a host "
              "pointer, or a buffer that was freed?)" +
                  kernel + at(STORE));
}

namespace {

__global__ void write_to_a_built_in() { threadIdx.x = 7; }
constexpr int BUILT_IN = __LINE__ - 1;

}  // namespace

TEST_CASE("threadIdx and its kind are no part of any array: a write there is one past an array") {
  const std::string report = message_of<KernelFault>([] { launch(write_to_a_built_in, dim3(1), dim3(1), 0, nullptr); });
  CHECK(contains(report, "out-of-bounds write to shared array '"));
  CHECK(contains(report, "write_to_a_built_in, block 0, thread 0" + at(BUILT_IN)));
  CHECK(healthy());
}
