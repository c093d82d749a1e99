// Reads of memory that nothing has written. What holds a NaN because somebody wrote one there is data.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/cpu_device/expect_fault.hpp"

namespace {

const bool needs = needs_device_checks = true;

std::string at(int line) { return ", at tests/cpu_device/uninitialised_test.cu:" + std::to_string(line); }

__global__ void copy(const float* x, float* out, int64_t n) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) out[i] = x[i];
}
constexpr int COPY = __LINE__ - 2;

void run_copy(const Buffer<float>& x, const Buffer<float>& out, int64_t n) {
  launch(copy, dim3(4), dim3(32), 0, nullptr, x.data(), out.data(), n);
}

std::string read_of(const std::string& cell, const std::string& who, const std::string& where) {
  return "uninitialised read of " + cell + ": " + who + " has written it\n  in kernel (anonymous namespace)::" + where;
}

int64_t number_of_nans(const Buffer<float>& buffer) {
  const std::vector<float> values = buffer.download();
  return std::count_if(values.begin(), values.end(), [](float value) { return std::isnan(value); });
}

__global__ void fill(float* out, int from) {
  if (static_cast<int>(threadIdx.x) >= from) out[threadIdx.x] = 1.0f;
}

// Bytes `from` to 15 of a buffer, then all 16 as one float4.
__global__ void bytes_then_float4(unsigned char* bytes, const float4* wide, float* out, int from) {
  for (int i = from; i < 16; ++i) bytes[i] = 0;
  out[0] = wide->x + wide->y + wide->z + wide->w;
}
constexpr int WIDE = __LINE__ - 2;

__global__ void shared_hole(float* out, int hole) {
  __shared__ float row[64];
  const int t = static_cast<int>(threadIdx.x);
  if (t != hole) row[t] = 1.0f;
  __syncthreads();
  out[t] = row[63 - t];
}
constexpr int HOLE = __LINE__ - 2;

__global__ void dynamic_hole(float* out, int hole) {
  float* row = dynamic_shared<float>();
  const int t = static_cast<int>(threadIdx.x);
  if (t != hole) row[t] = 1.0f;
  __syncthreads();
  out[t] = row[63 - t];
}
constexpr int DYNAMIC_HOLE = __LINE__ - 2;

// g++ tells the device of no store that is a call's result.
struct Pair {
  float first, second, third;
};
[[gnu::noinline]] __device__ Pair make_pair_of(float value) { return {value, value + 1, value + 2}; }
__global__ void result_of_a_call(Pair* pairs, float* out) {
  pairs[threadIdx.x] = make_pair_of(1.0f);
  out[threadIdx.x] = pairs[threadIdx.x].second;
}

__global__ void add_to(float* sum) { atomicAdd(sum, 1.0f); }
constexpr int ADD = __LINE__ - 1;

}  // namespace

TEST_CASE("a buffer's cell that neither the host nor a kernel has written") {
  const Buffer<float> x("x", 100), out("out", 100);
  CHECK_FAULT(run_copy(x, out, 100), read_of("buffer 'x', index 0 (elements of 4 bytes)",
                                             "neither the host nor a kernel", "copy, block 0, thread 0" + at(COPY)));
  launch(fill, dim3(1), dim3(100), 0, nullptr, x.data(), 0);
  run_copy(x, out, 100);
  CHECK(out.download() == std::vector<float>(100, 1.0f));
}

TEST_CASE("one cell of many") {
  const Buffer<float> x("x", 100), out("out", 100);
  launch(fill, dim3(1), dim3(100), 0, nullptr, x.data(), 1);
  CHECK_FAULT(run_copy(x, out, 100), read_of("buffer 'x', index 0 (elements of 4 bytes)",
                                             "neither the host nor a kernel", "copy, block 0, thread 0" + at(COPY)));
}

TEST_CASE("a caller's NaN is data; so is the poison itself, when the host wrote it") {
  Buffer<float> x("x", std::vector<float>(100, std::numeric_limits<float>::quiet_NaN()));
  const Buffer<float> out("out", 100);
  run_copy(x, out, 100);
  CHECK(number_of_nans(out) == exactly(int64_t{100}));
  std::vector<float> poison(100);
  std::memset(poison.data(), 0xff, 400);
  x.upload(poison);
  run_copy(x, out, 100);
}

TEST_CASE("poisoned again, a buffer is as new") {
  Buffer<float> x("x", std::vector<float>(100, 1.0f));
  const Buffer<float> out("out", 100);
  x.poison();
  CHECK_FAULT(run_copy(x, out, 100), read_of("buffer 'x', index 0 (elements of 4 bytes)",
                                             "neither the host nor a kernel", "copy, block 0, thread 0" + at(COPY)));
}

TEST_CASE("the host may download what nothing has written; memory that is given back is new again") {
  const Buffer<float> x("x", 100);
  CHECK(x.download().size() == 100);
  { const Buffer<float> written("y", std::vector<float>(77, 1.0f)); }
  const Buffer<float> fresh("y", 77), out("out", 77);  // likely the same memory
  CHECK(contains(message_of<KernelFault>([&] { run_copy(fresh, out, 77); }),
                 "uninitialised read of buffer 'y', index 0"));
}

TEST_CASE("a wide read of which one byte is missing") {
  const Buffer<float4> x("x", 1);
  const Buffer<float> out("out", 1);
  const auto run = [&](int from) {
    launch(bytes_then_float4, dim3(1), dim3(1), 0, nullptr, reinterpret_cast<unsigned char*>(x.data()), x.data(),
           out.data(), from);
  };
  const std::string report = message_of<KernelFault>([&] { run(1); });
  CHECK(contains(report, "uninitialised read of buffer 'x', index 0 (elements of 16 bytes)"));
  CHECK(contains(report, at(WIDE)));
  run(0);
  CHECK(out.download()[0] == 0);
}

TEST_CASE("a shared array's cell that no thread of the block has written") {
  const Buffer<float> out("out", 64);
  const auto run = [&](int hole) { launch(shared_hole, dim3(1), dim3(64), 0, nullptr, out.data(), hole); };
  run(64);
  CHECK_FAULT(run(10), read_of("shared array 'row', index 10 (elements of 4 bytes)", "no thread of this block",
                               "shared_hole, block 0, thread 53" + at(HOLE)));
  const auto run_dynamic = [&](int hole) { launch(dynamic_hole, dim3(1), dim3(64), 256, nullptr, out.data(), hole); };
  run_dynamic(64);
  CHECK_FAULT(run_dynamic(63),
              read_of("dynamic shared memory, index 63 (elements of 4 bytes)", "no thread of this block",
                      "dynamic_hole, block 0, thread 0" + at(DYNAMIC_HOLE)));
}

TEST_CASE("a store that the compiler does not tell of is no reason for a report") {
  const Buffer<Pair> pairs("pairs", 32);
  const Buffer<float> out("out", 32);
  launch(result_of_a_call, dim3(1), dim3(32), 0, nullptr, pairs.data(), out.data());
  CHECK(out.download() == exactly(std::vector<float>(32, 2.0f)));
}

TEST_CASE("an atomic function reads its cell too") {
  const Buffer<float> sum("sum", 1);
  CHECK_FAULT(launch(add_to, dim3(1), dim3(1), 0, nullptr, sum.data()),
              read_of("buffer 'sum', index 0 (elements of 4 bytes)", "neither the host nor a kernel",
                      "add_to, block 0, thread 0" + at(ADD)));
}

TEST_CASE("the check can be switched off") {
  const WithChecks off({.uninitialised = false, .races = true});
  const Buffer<float> x("x", 100), out("out", 100);
  run_copy(x, out, 100);
  CHECK(number_of_nans(out) == exactly(int64_t{100}));
}

namespace {

struct Padded {
  char c;
  int i;
};
struct Wide {
  int i;
  double d;
};
struct Tail {
  double d;
  char c;
};

// Two threads write the members, a third copies the whole, with its padding. `members` has a bit for each that is
// written.
template <class Struct, class First, class Second>
__global__ void copies_members(Struct* out, First Struct::*first, Second Struct::*second, int members) {
  __shared__ Struct s;
  if (threadIdx.x == 0 && (members & 1) != 0) s.*first = 1;
  if (threadIdx.x == 1 && (members & 2) != 0) s.*second = 2;
  __syncthreads();
  if (threadIdx.x == 2) *out = s;
}
// clang copies what is left of the struct, from its padding on.
template <class Struct, auto FIRST, auto SECOND>
__global__ void changes_a_copy(Struct* out) {
  __shared__ Struct s;
  if (threadIdx.x == 0) s.*FIRST = 1;
  if (threadIdx.x == 1) s.*SECOND = 2;
  __syncthreads();
  if (threadIdx.x != 2) return;
  Struct copy = s;
  copy.*FIRST = 3;
  *out = copy;
}
template <class Struct, auto FIRST, auto SECOND>
Struct copied_and_changed() {
  const Buffer<Struct> out("out", 1);
  launch(copies_members<Struct, std::remove_reference_t<decltype(Struct{}.*FIRST)>,
                        std::remove_reference_t<decltype(Struct{}.*SECOND)>>,
         dim3(1), dim3(32), 0, nullptr, out.data(), FIRST, SECOND, 3);
  launch(changes_a_copy<Struct, FIRST, SECOND>, dim3(1), dim3(32), 0, nullptr, out.data());
  return out.download()[0];
}

// All lanes read all of a row, but for one cell that no thread has written.
__global__ void sums_a_row(float* out, int hole) {
  __shared__ __align__(16) float row[64];
  const int t = static_cast<int>(threadIdx.x);
  if (t != hole) row[t] = 1.0f;
  __syncthreads();
  float sums[4] = {};
  for (int i = 0; i < 64; i += 4)
    for (int j = 0; j < 4; ++j) sums[j] += row[i + j];
  out[t] = (sums[0] + sums[1]) + (sums[2] + sums[3]);
}
// A copy of a whole row: one access.
__global__ void copies_a_row(float* out, int hole) {
  __shared__ __align__(16) float row[64];
  const int t = static_cast<int>(threadIdx.x);
  if (t != hole) row[t] = 1.0f;
  __syncthreads();
  if (t == 0) std::memcpy(out, row, sizeof row);
}

}  // namespace

TEST_CASE("a struct is copied with its padding, which no thread has written") {
  CHECK(copied_and_changed<Padded, &Padded::c, &Padded::i>().i == exactly(2));
  CHECK(copied_and_changed<Padded, &Padded::i, &Padded::c>().i == exactly(3));
  CHECK(copied_and_changed<Wide, &Wide::i, &Wide::d>().d == exactly(2.0));
  CHECK(copied_and_changed<Tail, &Tail::d, &Tail::c>().d == exactly(3.0));
  const Buffer<Wide> wide("wide", 1);
  launch(copies_members<Wide, int, double>, dim3(1), dim3(32), 0, nullptr, wide.data(), &Wide::i, &Wide::d, 3);
  CHECK(wide.download()[0].d == exactly(2.0));
  for (const int members : {0, 2})
    CHECK(contains(message_of<KernelFault>([&] {
                     launch(copies_members<Wide, int, double>, dim3(1), dim3(32), 0, nullptr, wide.data(), &Wide::i,
                            &Wide::d, members);
                   }),
                   "uninitialised read of shared array 's'"));
  CHECK(healthy());
}

TEST_CASE("each cell of a row that no thread has written, whatever the compiler reads at once") {
  const Buffer<float> out("out", 64);
  for (int hole = 0; hole < 64; ++hole)
    CHECK(
        contains(message_of<KernelFault>([&] { launch(sums_a_row, dim3(1), dim3(64), 0, nullptr, out.data(), hole); }),
                 "uninitialised read of shared array 'row', index " + std::to_string(hole) + " (elements of 4 bytes)"));
  launch(sums_a_row, dim3(1), dim3(64), 0, nullptr, out.data(), 64);
  CHECK(out.download()[0] == exactly(64.0f));
}

TEST_CASE("a row that memcpy copies: the cells that cannot be a struct's padding") {
  const Buffer<float> out("out", 64);
  for (int hole = 0; hole < 64; hole += 2)
    CHECK(contains(
        message_of<KernelFault>([&] { launch(copies_a_row, dim3(1), dim3(64), 0, nullptr, out.data(), hole); }),
        "uninitialised read of shared array 'row', index " + std::to_string(hole * 4) + " (elements of 1 byte)"));
  launch(copies_a_row, dim3(1), dim3(64), 0, nullptr, out.data(), 64);
  CHECK(out.download()[63] == exactly(1.0f));
}
