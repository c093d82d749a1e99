// Requests, sectors, wavefronts and cells that the device records, against numbers written down by hand.
#include <numeric>

#include "tests/cpu_device/expect_fault.hpp"

namespace {

const bool needs = needs_device_checks = true;

using cpu_device::Cell;
using cpu_device::LaunchRecord;
using cpu_device::RequestCounts;
using cpu_device::SharedRequests;

// The record of the one launch that `body` makes.
template <class Body>
LaunchRecord record_of(Body&& body) {
  cpu_device::set_recording({.requests = true, .cells = true});
  body();
  std::vector<LaunchRecord> records = cpu_device::take_records();
  cpu_device::set_recording({});
  REQUIRE(records.size() == 1);
  return std::move(records[0]);
}

struct Expected {
  uint64_t requests, sectors, ideal;
};
void check(const RequestCounts& counts, uint64_t bytes, Expected expected) {
  CHECK(counts.bytes == exactly(bytes));
  CHECK(counts.requests == exactly(expected.requests));
  CHECK(counts.sectors == exactly(expected.sectors));
  CHECK(counts.ideal_sectors == exactly(expected.ideal));
}
const RequestCounts& reads_of(const LaunchRecord& record, const std::string& name) {
  for (const auto& buffer : record.buffers)
    if (buffer.buffer == name) return buffer.read;
  FAIL("no such buffer");
  return record.buffers[0].read;
}
const RequestCounts& writes_of(const LaunchRecord& record, const std::string& name) {
  for (const auto& buffer : record.buffers)
    if (buffer.buffer == name) return buffer.written;
  FAIL("no such buffer");
  return record.buffers[0].written;
}

std::vector<float> numbers(int n) {
  std::vector<float> values(static_cast<std::size_t>(n));
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

// Lane i reads x[i * stride + shift], if i < lanes.
__global__ void walk(const float* x, float* out, int stride, int shift, int lanes) {
  const int i = static_cast<int>(threadIdx.x);
  if (i < lanes) out[i] = x[i * stride + shift];
}
RequestCounts walked(int stride, int shift = 0, int lanes = 32) {
  const Buffer<float> x("x", numbers(2048)), out("out", 32);
  const LaunchRecord record =
      record_of([&] { launch(walk, dim3(1), dim3(32), 0, nullptr, x.data(), out.data(), stride, shift, lanes); });
  const auto n = static_cast<uint64_t>(lanes);
  check(writes_of(record, "out"), 4 * n, {1, (n + 7) / 8, (n + 7) / 8});
  return reads_of(record, "x");
}

}  // namespace

TEST_CASE("sectors of one request: a row, a column, a broadcast, a half-full warp") {
  check(walked(1), 128, {1, 4, 4});
  check(walked(1, 8), 128, {1, 4, 4});
  check(walked(1, 1), 128, {1, 5, 4});  // misaligned
  check(walked(1, 0, 16), 64, {1, 2, 2});
  check(walked(1, 0, 1), 4, {1, 1, 1});
  check(walked(2), 128, {1, 8, 4});
  check(walked(8), 128, {1, 32, 4});
  check(walked(64), 128, {1, 32, 4});
  check(walked(0), 128, {1, 1, 1});
}

namespace {

__global__ void copy4(const float4* x4, float4* out4, int shift) {
  const float4 a = x4[threadIdx.x + shift];
  out4[threadIdx.x] = make_float4(a.x + 1.0f, a.y, a.z, a.w);
}
__global__ void copy4_whole(const float4* x4, float4* out4, int shift) { out4[threadIdx.x] = x4[threadIdx.x + shift]; }
__global__ void members(const float4* x4, float* out, int) {
  out[threadIdx.x] = x4[threadIdx.x].x + x4[threadIdx.x].y + x4[threadIdx.x].z + x4[threadIdx.x].w;
}
__global__ void neighbours(const float* x, float* out) { out[threadIdx.x] = x[threadIdx.x] + x[threadIdx.x + 1]; }
// Each thread its own four floats, one after another: the same addresses as a float4, in four requests. The bound is no
// constant, so that no compiler unrolls the loop.
__global__ void four_by_hand(const float* x, float* out, int n) {
  float sum = 0.0f;
#pragma GCC unroll 1
  for (int i = 0; i < n; ++i) sum += x[threadIdx.x * 4 + i];
  out[threadIdx.x] = sum;
}

template <class T>
__global__ void copy_of(const T* x, T* out) {
  out[threadIdx.x] = x[threadIdx.x];
}
template <class T>
void check_copy_of(uint64_t sectors) {
  const Buffer<T> x("x", std::vector<T>(32)), out("out", 32);
  const LaunchRecord record =
      record_of([&] { launch(copy_of<T>, dim3(1), dim3(32), 0, nullptr, x.data(), out.data()); });
  check(reads_of(record, "x"), 32 * sizeof(T), {1, sectors, sectors});
  check(writes_of(record, "out"), 32 * sizeof(T), {1, sectors, sectors});
  for (const auto& buffer : record.cells)
    for (const Cell& cell : buffer.cells) CHECK(cell.reads + cell.writes == 1);
}

}  // namespace

TEST_CASE("a wide access is one request, whatever pieces the compiler makes of it") {
  const Buffer<float4> x("x", std::vector<float4>(64)), out("out", 32);
  for (auto kernel : {copy4, copy4_whole})
    for (int shift : {0, 1, 32}) {
      const LaunchRecord record =
          record_of([&] { launch(kernel, dim3(1), dim3(32), 0, nullptr, x.data(), out.data(), shift); });
      const uint64_t extra = shift == 1 ? 1 : 0;
      check(reads_of(record, "x"), 512, {1, 16 + extra, 16});
      check(writes_of(record, "out"), 512, {1, 16, 16});
      CHECK(record.cells[0].cells[static_cast<std::size_t>(shift)].reads == 1);
      CHECK(record.accesses == std::vector<uint32_t>(32, 2));
    }
  check_copy_of<unsigned char>(1);
  check_copy_of<short>(2);
  check_copy_of<double>(8);
  check_copy_of<float2>(8);
  check_copy_of<float4>(16);
}

TEST_CASE("neighbouring accesses of other columns, or of other turns of a loop, stay apart") {
  const Buffer<float> x("x", numbers(128)), out("out", 32);
  LaunchRecord record = record_of([&] { launch(neighbours, dim3(1), dim3(32), 0, nullptr, x.data(), out.data()); });
  check(reads_of(record, "x"), 256, {2, 4 + 5, 8});
  record = record_of([&] { launch(four_by_hand, dim3(1), dim3(32), 0, nullptr, x.data(), out.data(), 4); });
  check(reads_of(record, "x"), 512, {4, 4 * 16, 4 * 4});
  const Buffer<float4> x4("x4", std::vector<float4>(32));
  record = record_of([&] { launch(members, dim3(1), dim3(32), 0, nullptr, x4.data(), out.data(), 0); });
  check(reads_of(record, "x4"), 512, {4, 4 * 16, 4 * 4});
}

namespace {

__global__ void loop(const float* x, float* out, int n) {
  float sum = 0.0f;
  for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x)) sum += x[i];
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
// Each lane comes to the same place as often, though not at the same time.
__global__ void one_by_one(const float* x, float* out) {
  const int lane = static_cast<int>(threadIdx.x);
  float sum = 0.0f;
  for (int turn = 0; turn < 2; ++turn) {
    for (int i = 0; i < lane % 3; ++i) __syncwarp(1u << lane);
    sum += x[turn * 32 + lane];
  }
  out[lane] = sum;
}
__global__ void either(const float* x, const float* y, float* out) {
  const float* source = threadIdx.x % 2 == 0 ? x : y;
  out[threadIdx.x] = source[threadIdx.x];
}
__global__ void count(int* counter) { atomicAdd(counter, 1); }

}  // namespace

TEST_CASE("k turns of a loop are k requests for each warp that makes them") {
  const Buffer<float> x("x", numbers(1000)), out("out", 2 * 96);
  const LaunchRecord record =
      record_of([&] { launch(loop, dim3(2), dim3(96), 0, nullptr, x.data(), out.data(), 1000); });
  // 1000 = 10 * 96 + 40: of the last turn the first warp has 32 lanes, the second 8, the third none.
  check(reads_of(record, "x"), 2 * 4000, {2 * (3 * 10 + 2), 2 * 125, 2 * 125});
  check(writes_of(record, "out"), 2 * 384, {2 * 3, 2 * 12, 2 * 12});
  CHECK(record.kernel == "(anonymous namespace)::loop");
  CHECK(record.blocks() == 2);
  CHECK(record.threads() == 96);
}

TEST_CASE("lanes need not come at the same time, nor in the same order; two buffers are asked apart") {
  const Buffer<float> x("x", numbers(64)), y("y", numbers(64)), out("out", 32);
  for (const char* order : {"forward", "reversed", "random:1"}) {
    cpu_device::set_order(order);
    LaunchRecord record = record_of([&] { launch(one_by_one, dim3(1), dim3(32), 0, nullptr, x.data(), out.data()); });
    check(reads_of(record, "x"), 256, {2, 8, 8});
    record = record_of([&] { launch(either, dim3(1), dim3(32), 0, nullptr, x.data(), y.data(), out.data()); });
    check(reads_of(record, "x"), 64, {1, 4, 2});
    check(reads_of(record, "y"), 64, {1, 4, 2});
  }
  cpu_device::set_order("forward");
}

TEST_CASE("an atomic function reads and writes") {
  const Buffer<int> counter("counter", std::vector<int>(1));
  const LaunchRecord record = record_of([&] { launch(count, dim3(3), dim3(64), 0, nullptr, counter.data()); });
  check(reads_of(record, "counter"), 3 * 64 * 4, {6, 6, 6});
  check(writes_of(record, "counter"), 3 * 64 * 4, {6, 6, 6});
}

namespace {

__global__ void shared_walk(float* out, int stride) {
  __shared__ float tile[32 * 33];
  for (int i = static_cast<int>(threadIdx.x); i < 32 * 33; i += 32) tile[i] = 1.0f;
  __syncthreads();
  out[threadIdx.x] = tile[static_cast<int>(threadIdx.x) * stride];
}
__global__ void dynamic_walk(float* out, int stride) {
  float* tile = dynamic_shared<float>();
  for (int i = static_cast<int>(threadIdx.x); i < 32 * 33; i += 32) tile[i] = 1.0f;
  __syncthreads();
  out[threadIdx.x] = tile[static_cast<int>(threadIdx.x) * stride];
}
template <class T>
__global__ void wide_walk(T* out, int stride, int lanes) {
  alignas(16) __shared__ T tile[1024];
  const bool mask = static_cast<int>(threadIdx.x) < lanes;
  if (mask) tile[static_cast<int>(threadIdx.x) * stride] = out[threadIdx.x];
  __syncthreads();
  if (mask) out[threadIdx.x] = tile[static_cast<int>(threadIdx.x) * stride];
}

// Without the 33 writes, one row each.
SharedRequests read_by(void (*kernel)(float*, int), int stride) {
  const Buffer<float> out("out", 32);
  const LaunchRecord record =
      record_of([&] { launch(kernel, dim3(1), dim3(32), 32 * 33 * 4, nullptr, out.data(), stride); });
  REQUIRE(record.shared.size() == 1);
  SharedRequests counts = record.shared[0];
  counts.requests -= 33;
  counts.wavefronts -= 33;
  counts.ideal_wavefronts -= 33;
  return counts;
}
template <class T>
SharedRequests there_and_back(int stride, int lanes = 32) {
  const Buffer<T> out("out", std::vector<T>(32));
  const LaunchRecord record =
      record_of([&] { launch(wide_walk<T>, dim3(1), dim3(32), 0, nullptr, out.data(), stride, lanes); });
  REQUIRE(record.shared.size() == 1);
  SharedRequests counts = record.shared[0];  // written and read, both alike
  counts.requests /= 2;
  counts.wavefronts /= 2;
  counts.ideal_wavefronts /= 2;
  return counts;
}
void check(const SharedRequests& counts, uint64_t wavefronts, uint64_t ideal = 1) {
  CHECK(counts.requests == exactly(uint64_t{1}));
  CHECK(counts.wavefronts == exactly(wavefronts));
  CHECK(counts.ideal_wavefronts == exactly(ideal));
}

}  // namespace

TEST_CASE("wavefronts of shared memory: a static array and the dynamic one") {
  for (auto kernel : {shared_walk, dynamic_walk}) {
    check(read_by(kernel, 0), 1);  // a broadcast
    check(read_by(kernel, 1), 1);
    check(read_by(kernel, 2), 2);
    check(read_by(kernel, 4), 4);
    check(read_by(kernel, 31), 1);
    check(read_by(kernel, 32), 32);
    check(read_by(kernel, 33), 1);
  }
  CHECK(read_by(shared_walk, 1).array == "tile");
  CHECK(read_by(dynamic_walk, 1).array == "dynamic shared memory");
}

TEST_CASE("wavefronts of wider accesses: a half of the warp at a time, or a quarter; of narrower ones: words") {
  check(there_and_back<float4>(1), 4, 4);
  check(there_and_back<float4>(2), 8, 4);
  check(there_and_back<float4>(8), 32, 4);
  check(there_and_back<float4>(1, 9), 2, 2);
  check(there_and_back<float2>(1), 2, 2);
  check(there_and_back<double>(1), 2, 2);
  check(there_and_back<double>(2), 4, 2);
  check(there_and_back<unsigned char>(1), 1);  // four lanes share a word
  check(there_and_back<unsigned char>(4), 1);  // a word each
  check(there_and_back<unsigned char>(8), 2);
  check(there_and_back<unsigned char>(16), 4);
}

namespace {

__global__ void rows(const float* x, float* out, int columns, int skipped) {
  for (int c = static_cast<int>(threadIdx.x); c < columns; c += 32) {
    const int i = static_cast<int>(blockIdx.x) * columns + c;
    if (i != skipped) out[i] = x[i] + x[0];
  }
}

}  // namespace

TEST_CASE("cells: how often each was read and written, and by which block; how much each thread did") {
  constexpr int ROWS = 200, COLUMNS = 40;  // enough blocks for all workers
  const Buffer<float> x("x", numbers(ROWS * COLUMNS)), out("out", ROWS * COLUMNS), idle("idle", 10);
  for (const char* order : {"forward", "reversed", "random:7"})
    for (int skipped : {-1, 77}) {
      cpu_device::set_order(order);
      const LaunchRecord record =
          record_of([&] { launch(rows, dim3(ROWS), dim3(32), 0, nullptr, x.data(), out.data(), COLUMNS, skipped); });
      REQUIRE(record.cells.size() == 2);  // nobody touched idle
      CHECK(record.cells[0].buffer == "x");
      CHECK(record.cells[0].data == x.data());
      CHECK(record.cells[0].element_bytes == 4);
      REQUIRE(record.cells[1].cells.size() == ROWS * COLUMNS);
      int wrong = 0;
      for (int i = 0; i < ROWS * COLUMNS; ++i) {
        const Cell& read = record.cells[0].cells[static_cast<std::size_t>(i)];
        const Cell& write = record.cells[1].cells[static_cast<std::size_t>(i)];
        const auto block = static_cast<uint32_t>(i / COLUMNS);
        const uint32_t once = i == skipped ? 0 : 1, all = ROWS * COLUMNS - (skipped < 0 ? 0 : 1);
        wrong += read.reads != once + (i == 0 ? all : 0) || read.writes != 0;
        wrong += write.reads != 0 || write.writes != once;
        wrong +=
            read.block() != (once == 0 ? Cell::NOBODY : block) || write.block() != (once == 0 ? Cell::NOBODY : block);
      }
      CHECK(wrong == exactly(0));
      REQUIRE(record.accesses.size() == ROWS * 32);
      for (std::size_t i = 0; i < record.accesses.size(); ++i)
        wrong += record.accesses[i] != (i % 32 < 8 ? 6u : 3u) - (skipped == 77 && i == 32 + 5 ? 3 : 0);
      CHECK(wrong == exactly(0));
    }
  cpu_device::set_order("forward");
}

TEST_CASE("what is recorded: nothing at first, the launches without a fault then, and nothing that is too large") {
  const Buffer<float> x("x", numbers(64)), out("out", 32);
  const auto run = [&](int lanes) { launch(walk, dim3(1), dim3(64), 0, nullptr, x.data(), out.data(), 1, 0, lanes); };
  run(32);
  CHECK(cpu_device::take_records().empty());
  cpu_device::set_recording({.requests = true});
  run(32);
  (void)message_of<KernelFault>([&] { run(64); });
  run(16);
  const std::vector<LaunchRecord> records = cpu_device::take_records();
  REQUIRE(records.size() == 2);
  check(reads_of(records[0], "x"), 128, {1, 4, 4});
  check(reads_of(records[1], "x"), 64, {1, 2, 2});
  CHECK(records[0].cells.empty());
  cpu_device::set_recording({.cells = true});
  {
    const Buffer<unsigned char> large("large", (1 << 24) + 1);
    CHECK(message_of<InvalidArgument>([&] { run(32); }) ==
          "recording of (anonymous namespace)::walk: the size of buffer 'large' is 16777217, must be at most 16777216");
  }
  run(32);
  CHECK(cpu_device::take_records().size() == 1);
  cpu_device::set_recording({});
  CHECK(healthy());
}
