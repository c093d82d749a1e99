// What CUDA defines, and what the CPU device makes of it: indices, barriers, shared arrays, atomics, math, printf.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/cpu_device/expect_fault.hpp"

namespace {

__global__ void count_threads(int* sum) { atomicAdd(sum, 1); }

__global__ void hammer(float* sum) {
  for (int i = 0; i < 100; ++i) atomicAdd(sum, 1.0f);
}

struct Visit {
  uint3 thread, block;
  dim3 block_dim, grid_dim;
  int visits;
};

__global__ void visit(Visit* out) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  Visit& mine = out[block * blockDim.x * blockDim.y * blockDim.z + thread];
  atomicAdd(&mine.visits, 1);
  mine.thread = threadIdx;
  mine.block = blockIdx;
  mine.block_dim = blockDim;
  mine.grid_dim = gridDim;
}

void check_visits(dim3 grid, dim3 block) {
  const std::size_t threads = std::size_t{block.x} * block.y * block.z;
  const std::size_t blocks = std::size_t{grid.x} * grid.y * grid.z;
  const Buffer<Visit> out("out", std::vector<Visit>(blocks * threads, Visit{}));
  launch(visit, grid, block, 0, nullptr, out.data());
  const std::vector<Visit> visits = out.download();
  std::size_t i = 0, wrong = 0;
  const auto same = [](auto a, auto b) { return a.x == b.x && a.y == b.y && a.z == b.z; };
  for (unsigned bz = 0; bz < grid.z; ++bz)
    for (unsigned by = 0; by < grid.y; ++by)
      for (unsigned bx = 0; bx < grid.x; ++bx)
        for (unsigned tz = 0; tz < block.z; ++tz)
          for (unsigned ty = 0; ty < block.y; ++ty)
            for (unsigned tx = 0; tx < block.x; ++tx, ++i) {
              const Visit& v = visits[i];
              wrong += v.visits != 1 || !same(v.thread, uint3{tx, ty, tz}) || !same(v.block, uint3{bx, by, bz}) ||
                       !same(v.block_dim, block) || !same(v.grid_dim, grid);
            }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("every index in three dimensions, once") {
  check_visits(dim3(1), dim3(1));
  check_visits(dim3(5, 3, 2), dim3(4, 3, 2));
  check_visits(dim3(1, 7, 1), dim3(1, 1, 64));
  check_visits(dim3(33), dim3(1024));
  check_visits(dim3(2, 2, 9), dim3(7, 5, 3));
}

TEST_CASE("a million blocks") {
  const Buffer<int> out("out", std::vector<int>(1));
  launch(count_threads, dim3(1'000'000), dim3(1), 0, nullptr, out.data());
  CHECK(out.download()[0] == 1'000'000);
}

namespace {

// Each round, every thread writes its cell and reads that of another thread: wrong at the first barrier that leaks.
__global__ void rounds(int* wrong, int count) {
  __shared__ int s[1024];
  const int i = static_cast<int>(threadIdx.x), n = static_cast<int>(blockDim.x);
  for (int round = 0; round < count; ++round) {
    s[i] = round * n + i;
    __syncthreads();
    const int other = (i * 7 + round * 13) % n;
    if (s[other] != round * n + other) atomicAdd(wrong, 1);
    if (threadIdx.x != static_cast<unsigned>(i)) atomicAdd(wrong, 1);  // BC-097
    __syncthreads();
  }
}

__global__ void after_branches(int* out) {
  __shared__ int s[3];
  if (threadIdx.x == 0)
    s[0] = -999;
  else if (threadIdx.x == 1)
    s[1] = -999;
  else
    s[2] = -999;
  __syncthreads();
  if (threadIdx.x == 0)
    for (int i = 0; i < 3; ++i) out[i] = s[i];
}

__device__ int* shared_in_a_helper() {
  __shared__ int s[64];
  return s;
}
__global__ void helper_twice(int* out) {
  const int i = static_cast<int>(threadIdx.x), block = static_cast<int>(blockIdx.x);
  int* const first = shared_in_a_helper();
  first[i] = block * 64 + i;
  __syncthreads();
  int* const second = shared_in_a_helper();
  __syncthreads();
  out[block * 64 + i] = first == second ? second[63 - i] : -1;
}

__global__ void keeps_its_indices(int* wrong) {
  const uint3 thread = threadIdx, block = blockIdx;
  const auto differs = [&] {
    return threadIdx.x != thread.x || threadIdx.y != thread.y || threadIdx.z != thread.z || blockIdx.x != block.x ||
           blockIdx.y != block.y;
  };
  for (int i = 0; i < 20; ++i) {
    if (differs()) atomicAdd(wrong, 1);
    __syncthreads();
    if (differs()) atomicAdd(wrong, 1);
    __syncwarp();
    if (differs()) atomicAdd(wrong, 1);
  }
}

}  // namespace

TEST_CASE("BC-090: a barrier separates what lies before it from what lies behind, for all threads") {
  for (unsigned threads : {1u, 2u, 31u, 32u, 33u, 100u, 1024u}) {
    const Buffer<int> wrong("wrong", std::vector<int>(1));
    launch(rounds, dim3(9), dim3(threads), 0, nullptr, wrong.data(), 50);
    CHECK(wrong.download()[0] == 0);
  }
  const Buffer<int> out("out", 3);
  launch(after_branches, dim3(1), dim3(3), 0, nullptr, out.data());
  CHECK(out.download() == std::vector<int>{-999, -999, -999});
}

TEST_CASE("BC-088: a helper's shared array is one object for the block, and another one in each block") {
  const Buffer<int> out("out", 64 * 200);
  launch(helper_twice, dim3(200), dim3(64), 0, nullptr, out.data());
  const std::vector<int> values = out.download();
  int wrong = 0;
  for (int block = 0; block < 200; ++block)
    for (int i = 0; i < 64; ++i) wrong += values[static_cast<std::size_t>(block * 64 + i)] != block * 64 + 63 - i;
  CHECK(wrong == 0);
}

TEST_CASE("BC-097: threadIdx and blockIdx before and after each barrier, on all workers") {
  const Buffer<int> wrong("wrong", std::vector<int>(1));
  launch(keeps_its_indices, dim3(16, 4), dim3(8, 4, 8), 0, nullptr, wrong.data());
  CHECK(wrong.download()[0] == 0);
}

namespace {

struct Totals {
  int sum, lowest, highest, exchanged, swapped;
  float float_sum;
  unsigned long long long_sum;
  double double_sum;
};

__global__ void atomics(Totals* totals, int* tickets) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  tickets[atomicAdd(&totals->sum, 1)] = i;  // each old value is given to one thread
  atomicMin(&totals->lowest, -i);
  atomicMax(&totals->highest, i);
  atomicExch(&totals->exchanged, 7);
  atomicAdd(&totals->float_sum, 1.0f);
  atomicAdd(&totals->long_sum, 1ull << 32);
  atomicAdd(&totals->double_sum, 0.5);
  for (int old = 0, seen = -1; old != seen;) {  // an increment made of compare-and-swap
    seen = atomicAdd(&totals->swapped, 0);      // a plain read would race with the others' writes
    old = atomicCAS(&totals->swapped, seen, seen + 1);
  }
}

}  // namespace

TEST_CASE("atomic functions, over many blocks") {
  constexpr int N = 64 * 256;
  const Buffer<Totals> totals("totals", std::vector<Totals>(1, Totals{}));
  const Buffer<int> tickets("tickets", N);
  launch(atomics, dim3(64), dim3(256), 0, nullptr, totals.data(), tickets.data());
  const Totals t = totals.download()[0];
  CHECK(t.sum == N);
  CHECK(t.lowest == 1 - N);
  CHECK(t.highest == N - 1);
  CHECK(t.exchanged == 7);
  CHECK(t.swapped == N);
  CHECK(t.float_sum == static_cast<float>(N));
  CHECK(t.long_sum == uint64_t{N} << 32);
  CHECK(t.double_sum == N / 2.0);
  std::vector<int> holders = tickets.download(), everyone(N);
  std::sort(holders.begin(), holders.end());
  std::iota(everyone.begin(), everyone.end(), 0);
  CHECK(holders == everyone);
}

namespace {

__global__ void atomic_results(int* out) {
  int cell = 5;
  out[0] = atomicAdd(&cell, 2);
  out[1] = atomicMax(&cell, 6);
  out[2] = atomicMin(&cell, 3);
  out[3] = atomicExch(&cell, 9);
  out[4] = atomicCAS(&cell, 8, 1);
  out[5] = atomicCAS(&cell, 9, 2);
  out[6] = cell;
}

__global__ void math(float* out, unsigned* bits) {
  out[0] = rsqrtf(16.0f);
  out[1] = __fdividef(1.0f, 4.0f);
  out[2] = __fmaf_rn(1.0f + 0x1p-12f, 1.0f + 0x1p-12f, -1.0f - 0x1p-11f);  // rounded twice it would be 0
  out[3] = __expf(0.0f);
  out[4] = fmaxf(NAN, 1.0f);
  out[5] = fminf(-0.5f, 2.0f);
  out[6] = expf(1.0f);
  out[7] = __int_as_float(0x40490fdb);
  out[8] = __uint_as_float(0xff800000u);
  bits[0] = __umulhi(0xffffffffu, 0xffffffffu);
  bits[1] = __float_as_uint(-2.0f);
  bits[2] = static_cast<unsigned>(__popc(0xf0f0f0f0u));
  bits[3] = static_cast<unsigned>(__clz(0));
  bits[4] = static_cast<unsigned>(__clz(0x00010000));
  bits[5] = static_cast<unsigned>(__ffs(0));
  bits[6] = static_cast<unsigned>(__ffs(0x50));
  bits[7] = static_cast<unsigned>(max(-3, 2) + min(-3, 2));
  bits[8] = static_cast<unsigned>(isnan(out[4]) + 2 * isinf(out[8]));
}

__global__ void four_at_a_time(const float4* x, float4* out) {
  const float4 a = x[threadIdx.x];
  float4 b = make_float4(a.w, a.z, a.y, a.x);
  b.y += 0.5f;
  out[threadIdx.x] = b;
  out[threadIdx.x].z = -1.0f;
}

}  // namespace

TEST_CASE("a million additions to one cell, all at once") {
  const Buffer<float> sum("sum", std::vector<float>(1));
  for (int i = 1; i <= 16; ++i) {  // several, since a busy machine may let one worker do a whole launch
    launch(hammer, dim3(100), dim3(100), 0, nullptr, sum.data());
    REQUIRE(sum.download()[0] == 1e6f * static_cast<float>(i));
  }
}

TEST_CASE("each atomic function returns the value before") {
  const Buffer<int> out("out", 7);
  launch(atomic_results, dim3(1), dim3(1), 0, nullptr, out.data());
  CHECK(out.download() == std::vector<int>{5, 7, 7, 3, 9, 9, 2});
}

TEST_CASE("math functions") {
  const Buffer<float> out("out", 9);
  const Buffer<unsigned> bits("bits", 9);
  launch(math, dim3(1), dim3(1), 0, nullptr, out.data(), bits.data());
  const std::vector<float> f = out.download();
  CHECK(f[0] == 0.25f);
  CHECK(f[1] == 0.25f);
  CHECK(f[2] == 0x1p-24f);
  CHECK(f[3] == 1.0f);
  CHECK(f[4] == 1.0f);
  CHECK(f[5] == -0.5f);
  CHECK(f[6] == doctest::Approx(2.718281828).epsilon(1e-6));
  CHECK(f[7] == 3.14159274f);
  CHECK(f[8] == -INFINITY);
  CHECK(bits.download() == std::vector<unsigned>{0xfffffffeu, 0xc0000000u, 16, 32, 15, 0, 5, 0xffffffffu, 2});
}

TEST_CASE("float4: whole, and member by member") {
  CHECK(sizeof(float4) == 16);
  CHECK(alignof(float4) == 16);
  const Buffer<float4> x("x", std::vector<float4>{{1, 2, 3, 4}, {5, 6, 7, 8}}), out("out", 2);
  launch(four_at_a_time, dim3(1), dim3(2), 0, nullptr, x.data(), out.data());
  const std::vector<float4> values = out.download();
  CHECK(values[1].x == 8);
  CHECK(values[1].y == 7.5f);
  CHECK(values[1].z == -1);
  CHECK(values[1].w == 5);
}

// ---- kernels as people write them

namespace {

struct Large {
  int64_t values[40];
};
struct Copied {  // its copy constructor is code of its own
  int value;
  explicit Copied(int v) : value(v) {}
  __host__ __device__ Copied(const Copied& other) : value(other.value) {}
};
enum class Mode { plain, doubled };

template <Mode MODE, bool FLAG, class Operation>
__global__ void odd_parameters(int64_t* out, Large large, Copied copied, const int* const* unused, float a, double b,
                               char c, int64_t d, unsigned e, bool f, Operation operation) {
  if (threadIdx.x != blockDim.x - 1) return;
  int64_t sum = 0;
  for (int64_t value : large.values) sum += value;
  out[0] = operation(sum) + copied.value + (unused == nullptr) + static_cast<int64_t>(a) + static_cast<int64_t>(b) + c +
           d + e + f + (MODE == Mode::doubled ? 1000 : 0) + FLAG;
}

__device__ int64_t recursion(int64_t depth) { return depth == 0 ? 0 : 1 + recursion(depth - 1); }

__device__ void fill_by_reference(int (&array)[100], int value) {
  for (int& element : array) element = value;
}
__global__ void local_arrays(int64_t* out) {
  int array[100];
  fill_by_reference(array, static_cast<int>(threadIdx.x));
  __syncthreads();
  int64_t sum = recursion(200);
  const auto add = [&](const int* values, int count) {
    for (int i = 0; i < count; ++i) sum += values[i];
  };
  add(array, 100);
  __syncthreads();
  out[threadIdx.x] = sum;
}

__global__ void large_local_array(float* out) {  // BC-098: 16 KiB in each of 1024 threads
  volatile float array[4096];
  for (int i = 0; i < 4096; ++i) array[i] = static_cast<float>(threadIdx.x);
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < 4096; ++i) sum += array[i];
  out[threadIdx.x] = sum;
}

__global__ void hundred_barriers(int* out) {
  int count = 0;
  for (int i = 0; i < 100; ++i) {
    __syncthreads();
    ++count;
  }
  atomicAdd(out, count);
}

}  // namespace

TEST_CASE("parameters of all kinds: large structs, copy constructors, enumerations, lambdas, references to parts") {
  const Buffer<int64_t> out("out", 1);
  Large large{};
  for (int64_t i = 0; i < 40; ++i) large.values[i] = i;
  const auto negate = [](int64_t value) { return -value; };
  launch(odd_parameters<Mode::doubled, true, decltype(negate)>, dim3(2), dim3(33), 0, nullptr, out.data(), large,
         Copied(5), nullptr, 2.5f, 3.5, 'A', -7, 9u, true, negate);
  CHECK(out.download()[0] == -780 + 5 + 1 + 2 + 3 + 65 - 7 + 9 + 1 + 1000 + 1);
}

TEST_CASE("local arrays, passed on by reference and by pointer, over barriers; recursion") {
  const Buffer<int64_t> out("out", 1024);
  launch(local_arrays, dim3(1), dim3(1024), 0, nullptr, out.data());
  const std::vector<int64_t> values = out.download();
  for (std::size_t i = 0; i < values.size(); ++i) REQUIRE(values[i] == static_cast<int64_t>(200 + 100 * i));
}

TEST_CASE("BC-098: 16 KiB of local variables in each thread of a full block") {
  const Buffer<float> out("out", 1024);
  launch(large_local_array, dim3(2), dim3(1024), 0, nullptr, out.data());
  const std::vector<float> values = out.download();
  for (std::size_t i = 0; i < values.size(); ++i) REQUIRE(values[i] == static_cast<float>(4096 * i));
}

TEST_CASE("a hundred barriers of a thousand threads") {
  const Buffer<int> out("out", std::vector<int>(1));
  launch(hundred_barriers, dim3(8), dim3(1024), 0, nullptr, out.data());
  CHECK(out.download()[0] == 8 * 1024 * 100);
}
