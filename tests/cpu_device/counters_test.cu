// Bytes that the device counts, against numbers written down by hand.
#include <cstring>

#include "tests/cpu_device/expect_fault.hpp"

namespace {

const bool needs = needs_device_checks = true;

constexpr int64_t N = 1000;

template <class T>
__global__ void copy(const T* x, T* out, int64_t n) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i];
}

struct Three {
  float x, y, z;
};
struct Bytes3 {
  unsigned char bytes[3];
};
struct Matrix3 {
  double values[9];
};

template <class T>
void check_copy() {
  const Buffer<T> x("x", std::vector<T>(N, T{})), out("out", N), idle("idle", N);
  const Launches launches =
      count_launches([&] { launch(copy<T>, dim3(8), dim3(128), 0, nullptr, x.data(), out.data(), N); });
  CHECK(launches.kernels == 1);
  REQUIRE(launches.traffic.size() == 3);
  const auto bytes = static_cast<int64_t>(N * sizeof(T));
  CHECK(launches.traffic[0].buffer == "x");
  CHECK(launches.traffic[0].bytes_read == bytes);
  CHECK(launches.traffic[0].bytes_written == 0);
  CHECK(launches.traffic[1].buffer == "out");
  CHECK(launches.traffic[1].bytes_read == 0);
  CHECK(launches.traffic[1].bytes_written == bytes);
  CHECK(launches.traffic[2].bytes_read + launches.traffic[2].bytes_written == 0);
}

}  // namespace

TEST_CASE("one read and one write of each element, whatever its size") {
  SUBCASE("float") { check_copy<float>(); }
  SUBCASE("byte") { check_copy<unsigned char>(); }
  SUBCASE("short") { check_copy<short>(); }
  SUBCASE("double") { check_copy<double>(); }
  SUBCASE("float4") { check_copy<float4>(); }
  SUBCASE("float2") { check_copy<float2>(); }
  SUBCASE("12 bytes") { check_copy<Three>(); }
  SUBCASE("3 bytes") { check_copy<Bytes3>(); }
  SUBCASE("72 bytes") { check_copy<Matrix3>(); }
}

namespace {

__global__ void update(float* x) { x[threadIdx.x] += 1.0f; }
__global__ void twice(const float* x, float* out) {
  const float first = x[0];
  __syncthreads();
  out[threadIdx.x] = first + x[0];
}
__global__ void add_all(float* sum, int* count) {
  atomicAdd(sum, 1.0f);
  atomicAdd(count, 1);
  atomicCAS(count, -1, 0);  // never succeeds, and reads and writes all the same
}
__global__ void on_chip(float* out) {
  __shared__ float s[32];
  float local[8];
  for (int i = 0; i < 8; ++i) local[i] = static_cast<float>(i);
  float* dynamic = dynamic_shared<float>();
  s[threadIdx.x] = local[threadIdx.x % 8];
  dynamic[threadIdx.x] = 2.0f;
  __syncthreads();
  for (int i = 0; i < 32; ++i) local[i % 8] += s[i] * dynamic[i];
  if (threadIdx.x == 0) out[0] = local[0];
}
__global__ void copy_and_fill(Matrix3* x, const Matrix3* y, int n) {
  memcpy(&x[0], &y[0], n * sizeof(Matrix3));  // CUDA offers both to kernels
  memset(&x[n], 0, sizeof(Matrix3));
}
__global__ void member(float4* x) { x[threadIdx.x].y = 1.0f; }

}  // namespace

TEST_CASE("an update reads and writes; a value read before and after a barrier is read twice") {
  const Buffer<float> x("x", std::vector<float>(32)), out("out", 32);
  const Launches launches = count_launches([&] {
    launch(update, dim3(1), dim3(32), 0, nullptr, x.data());
    launch(twice, dim3(1), dim3(32), 0, nullptr, x.data(), out.data());
  });
  CHECK(launches.kernels == 2);
  CHECK(launches.traffic[0].bytes_read == 128 + 2 * 128);
  CHECK(launches.traffic[0].bytes_written == 128);
  CHECK(launches.traffic[1].bytes_written == 128);
}

TEST_CASE("an atomic function reads and writes its cell once, however often it had to try") {
  const Buffer<float> sum("sum", std::vector<float>(1));
  const Buffer<int> count("count", std::vector<int>(1));
  const Launches launches =
      count_launches([&] { launch(add_all, dim3(100), dim3(256), 0, nullptr, sum.data(), count.data()); });
  for (const Traffic& traffic : launches.traffic) {
    const int64_t expected = 25'600 * 4 * (traffic.buffer == "count" ? 2 : 1);
    CHECK(traffic.bytes_read == expected);
    CHECK(traffic.bytes_written == expected);
  }
}

TEST_CASE("shared memory and local variables are no traffic, a member is its own size") {
  const Buffer<float> out("out", 1);
  const Launches on_chip_only = count_launches([&] { launch(on_chip, dim3(4), dim3(32), 128, nullptr, out.data()); });
  CHECK(on_chip_only.bytes() == 4 * 4);
  const Buffer<float4> x("x", 32);
  CHECK(count_launches([&] { launch(member, dim3(1), dim3(32), 0, nullptr, x.data()); }).bytes() == 128);
}

TEST_CASE("memcpy and memset in a kernel") {
  const Buffer<Matrix3> x("x", 10), y("y", std::vector<Matrix3>(9));
  const Launches launches =
      count_launches([&] { launch(copy_and_fill, dim3(1), dim3(1), 0, nullptr, x.data(), y.data(), 9); });
  CHECK(launches.traffic[0].bytes_written == 720);
  CHECK(launches.traffic[1].bytes_read == 648);
  const std::string report =
      message_of<KernelFault>([&] { launch(copy_and_fill, dim3(1), dim3(1), 0, nullptr, x.data(), y.data(), 10); });
  CHECK(contains(report, "out-of-bounds read of buffer 'y': index 9, size 9 (elements of 72 bytes)"));
  const std::string negative =
      message_of<KernelFault>([&] { launch(copy_and_fill, dim3(1), dim3(1), 0, nullptr, x.data(), y.data(), -1); });
  CHECK(contains(negative, "out-of-bounds "));
}

TEST_CASE("what the host does is not counted, and a refused or faulty launch leaves the counters right") {
  Buffer<float> x("x", 100);
  const Launches host = count_launches([&] {
    x.fill(1.0f);
    float sum = 0;
    for (int i = 0; i < 100; ++i) sum += x.data()[i];
    x.data()[0] = sum;
  });
  CHECK(host.kernels == 0);
  CHECK(host.bytes() == 0);
  const Launches after = count_launches([&] {
    (void)message_of<LaunchRefused>([&] { launch(update, dim3(1), dim3(2000), 0, nullptr, x.data()); });
    (void)message_of<KernelFault>([&] { launch(update, dim3(1), dim3(101), 0, nullptr, x.data()); });
    launch(update, dim3(1), dim3(10), 0, nullptr, x.data());
  });
  CHECK(after.kernels == 2);  // the faulty one ran
  CHECK(after.bytes() == 2 * 4 * (100 + 10));
}
