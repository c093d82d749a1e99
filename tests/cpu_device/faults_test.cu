// Accesses out of bounds: each is provoked, its report is checked to the letter, and the next launch is right.
#include <cstdint>
#include <cstring>

#include "common/cpu_device/control.hpp"
#include "tests/cpu_device/expect_fault.hpp"

namespace {

const bool needs = needs_device_checks = true;

std::string at(int line) { return ", at tests/cpu_device/faults_test.cu:" + std::to_string(line); }

// One thread of many, so that the report has to find it.
__device__ bool chosen() { return blockIdx.x == 2 && threadIdx.x == 5; }
const dim3 GRID(40), BLOCK(128);
const std::string CHOSEN = ", block 2, thread 5";

template <class T>
__global__ void read_at(const T* x, T* out, int64_t i) {
  if (chosen()) out[0] = x[i];
}
constexpr int READ = __LINE__ - 2;

__global__ void write_at(float* x, int64_t i) {
  if (chosen()) x[i] = 1.0f;
}
constexpr int WRITE = __LINE__ - 2;

__global__ void add_at(int* x, int64_t i) {
  if (chosen()) atomicAdd(&x[i], 1);
}
constexpr int ADD = __LINE__ - 2;

__global__ void swap_at(int* x, int64_t i) {
  if (chosen()) atomicCAS(&x[i], 0, 1);
}
constexpr int SWAP = __LINE__ - 2;

__global__ void load_at(const float* x, float* out, int64_t i) {
  if (chosen()) out[0] = __ldg(&x[i]);
}
constexpr int LOAD = __LINE__ - 2;

const std::string READ_AT = "\n  in kernel (anonymous namespace)::read_at<float>" + CHOSEN + at(READ);
const std::string WRITE_AT = "\n  in kernel (anonymous namespace)::write_at" + CHOSEN + at(WRITE);

void read(const Buffer<float>& x, int64_t i) {
  const Buffer<float> out("out", 1);
  launch(read_at<float>, GRID, BLOCK, 0, nullptr, x.data(), out.data(), i);
}

}  // namespace

TEST_CASE("a global buffer, read before its start and past its end") {
  const Buffer<float> x("x", std::vector<float>(1000, 1.0f));
  const auto report = [](const std::string& index) {
    return "out-of-bounds read of buffer 'x': index " + index + ", size 1000 (elements of 4 bytes)" + READ_AT;
  };
  CHECK_FAULT(read(x, -1), report("-1"));
  CHECK_FAULT(read(x, 1000), report("1000"));
  CHECK_FAULT(read(x, 3'000'000), report("3000000"));  // pages away
  CHECK_FAULT(read(x, -3'000'000), report("-3000000"));
  read(x, 0);
  read(x, 999);
}

TEST_CASE("a global buffer, written before its start and past its end: nothing is written") {
  Buffer<float> x("x", 257);
  const auto report = [](const std::string& index) {
    return "out-of-bounds write to buffer 'x': index " + index + ", size 257 (elements of 4 bytes)" + WRITE_AT;
  };
  CHECK_FAULT(launch(write_at, GRID, BLOCK, 0, nullptr, x.data(), int64_t{-1}), report("-1"));
  CHECK_FAULT(launch(write_at, GRID, BLOCK, 0, nullptr, x.data(), int64_t{257}), report("257"));
  CHECK(x.guards_intact());
}

TEST_CASE("an atomic function out of bounds: the line is the kernel's, and neither side is touched") {
  const Buffer<int> x("x", std::vector<int>(10));
  const std::string what = "out-of-bounds write to buffer 'x': index 10, size 10 (elements of 4 bytes)\n  in kernel ";
  CHECK_FAULT(launch(add_at, GRID, BLOCK, 0, nullptr, x.data(), int64_t{10}),
              what + "(anonymous namespace)::add_at" + CHOSEN + at(ADD));
  CHECK_FAULT(launch(swap_at, GRID, BLOCK, 0, nullptr, x.data(), int64_t{10}),
              what + "(anonymous namespace)::swap_at" + CHOSEN + at(SWAP));
  // In the guard, where looking at the cell before checking it would end the process.
  CHECK_FAULT(launch(swap_at, GRID, BLOCK, 0, nullptr, x.data(), int64_t{-1000}),
              "out-of-bounds write to buffer 'x': index -1000, size 10 (elements of 4 bytes)\n  in kernel (anonymous "
              "namespace)::swap_at" +
                  CHOSEN + at(SWAP));
  CHECK(x.guards_intact());
}

TEST_CASE("__ldg out of bounds: the line is the kernel's") {
  const Buffer<float> x("x", 10), out("out", 1);
  CHECK_FAULT(launch(load_at, GRID, BLOCK, 0, nullptr, x.data(), out.data(), int64_t{10}),
              "out-of-bounds read of buffer 'x': index 10, size 10 (elements of 4 bytes)\n  in kernel (anonymous "
              "namespace)::load_at" +
                  CHOSEN + at(LOAD));
}

TEST_CASE("elements of one and of eight bytes") {
  const Buffer<uint8_t> bytes("bytes", 3), byte("byte", 1);
  CHECK_FAULT(launch(read_at<uint8_t>, GRID, BLOCK, 0, nullptr, bytes.data(), byte.data(), int64_t{3}),
              "out-of-bounds read of buffer 'bytes': index 3, size 3 (elements of 1 byte)\n  in kernel (anonymous "
              "namespace)::read_at<unsigned char>" +
                  CHOSEN + at(READ));
  const Buffer<double> doubles("doubles", 3), one("one", 1);
  CHECK_FAULT(launch(read_at<double>, GRID, BLOCK, 0, nullptr, doubles.data(), one.data(), int64_t{-2}),
              "out-of-bounds read of buffer 'doubles': index -2, size 3 (elements of 8 bytes)\n  in kernel (anonymous "
              "namespace)::read_at<double>" +
                  CHOSEN + at(READ));
}

TEST_CASE("an access that begins inside and ends outside: the first element outside is named") {
  const Buffer<float> x("x", 1002), out("out", 4);
  CHECK_FAULT(launch(read_at<float4>, GRID, BLOCK, 0, nullptr, reinterpret_cast<const float4*>(x.data()),
                     reinterpret_cast<float4*>(out.data()), int64_t{250}),
              "out-of-bounds read of buffer 'x': index 1002, size 1002 (elements of 4 bytes)\n  in kernel (anonymous "
              "namespace)::read_at<float4>" +
                  CHOSEN + at(READ));
}

TEST_CASE("a pointer to nothing that a kernel may touch") {
  const std::string nothing =
      "out-of-bounds read of an address that belongs to no buffer, shared array or local variable ";
  const std::string host = nothing + "(a host pointer, or a buffer that was freed?)" + READ_AT;
  const Buffer<float> out("out", 1);
  const auto read_pointer = [&](const float* x) {
    launch(read_at<float>, GRID, BLOCK, 0, nullptr, x, out.data(), int64_t{0});
  };
  const std::vector<float> on_the_heap(10);
  const float on_the_stack = 0;
  const float* freed = Buffer<float>("freed", 10).data();
  CHECK_FAULT(read_pointer(on_the_heap.data()), host);
  CHECK_FAULT(read_pointer(&on_the_stack), host);
  CHECK_FAULT(read_pointer(freed), host);
  CHECK_FAULT(read_pointer(nullptr), nothing + "(a null pointer)" + READ_AT);
  const Buffer<float> x("x", 10);
  CHECK_FAULT(read(x, int64_t{1} << 40), host);  // far beyond all device memory
}

TEST_CASE("memory freed and used again belongs to its new owner") {
  const float* freed = Buffer<float>("first", 100).data();
  const Buffer<float> second("second", std::vector<float>(10, 2.0f)), out("out", 1);
  launch(read_at<float>, GRID, BLOCK, 0, nullptr, second.data(), out.data(), int64_t{9});
  CHECK(out.download()[0] == 2.0f);
  const std::string report =
      message_of<KernelFault>([&] { launch(read_at<float>, GRID, BLOCK, 0, nullptr, freed, out.data(), int64_t{50}); });
  CHECK(contains(report, "out-of-bounds read of "));
}

namespace {

__global__ void dynamic_at(int64_t i) {
  if (chosen()) dynamic_shared<float>()[i] = 1.0f;
}
constexpr int DYNAMIC = __LINE__ - 2;
__global__ void dynamic_byte_at(int64_t i) {
  if (chosen()) dynamic_shared<unsigned char>()[i] = 1;
}
constexpr int DYNAMIC_BYTE = __LINE__ - 2;

}  // namespace

TEST_CASE("dynamic shared memory ends at the byte that the launch asked for") {
  const std::string kernel = "\n  in kernel (anonymous namespace)::dynamic_at" + CHOSEN + at(DYNAMIC);
  const auto report = [&](const std::string& index) {
    return "out-of-bounds write to dynamic shared memory: index " + index + ", size 25 (elements of 4 bytes)" + kernel;
  };
  CHECK_FAULT(launch(dynamic_at, GRID, BLOCK, 100, nullptr, int64_t{25}), report("25"));
  CHECK_FAULT(launch(dynamic_at, GRID, BLOCK, 100, nullptr, int64_t{-1}), report("-1"));
  CHECK_FAULT(launch(dynamic_at, GRID, BLOCK, 103, nullptr, int64_t{25}), report("25"));  // three of its bytes exist
  CHECK_FAULT(launch(dynamic_byte_at, GRID, BLOCK, 101, nullptr, int64_t{101}),
              "out-of-bounds write to dynamic shared memory: index 101, size 101 (elements of 1 byte)\n  in kernel "
              "(anonymous namespace)::dynamic_byte_at" +
                  CHOSEN + at(DYNAMIC_BYTE));
  CHECK_FAULT(launch(dynamic_at, GRID, BLOCK, 0, nullptr, int64_t{0}),
              "out-of-bounds write to an address that belongs to no buffer, shared array or local variable (a null "
              "pointer)" +
                  kernel);
  launch(dynamic_at, GRID, BLOCK, 100, nullptr, int64_t{24});
  launch(dynamic_byte_at, GRID, BLOCK, 101, nullptr, int64_t{100});
}

namespace {

// The array belongs to a function that the kernel calls: it counts when it is first touched, not at the launch.
template <int FLOATS>
__device__ float through_tile(float value) {
  __shared__ float tile[FLOATS];
  tile[threadIdx.x] = value;
  __syncthreads();
  return tile[threadIdx.x];
}
constexpr int TOUCH = __LINE__ - 4;
template <int FLOATS>
__global__ void static_and_dynamic(float* out) {
  out[threadIdx.x] = through_tile<FLOATS>(1.0f);
}

template <int FLOATS>
void run_static(std::size_t dynamic_bytes) {
  const Buffer<float> out("out", 32);
  launch(static_and_dynamic<FLOATS>, dim3(1), dim3(32), dynamic_bytes, nullptr, out.data());
  CHECK(out.download() == std::vector<float>(32, 1.0f));
}

}  // namespace

TEST_CASE("BC-099: __shared__ arrays end at 48 KiB, and with dynamic shared memory at the model's limit") {
  run_static<12 * 1024>(0);
  CHECK_FAULT(
      run_static<12 * 1024 + 1>(0),
      "shared memory: the kernel's __shared__ arrays take 49156 bytes, must be at most 49152; more needs dynamic "
      "shared memory\n  in kernel (anonymous namespace)::static_and_dynamic<12289>, block 0, thread 0" +
          at(TOUCH));
  run_static<256>(227 * 1024 - 1024);
  CHECK_FAULT(run_static<256>(227 * 1024 - 1023),
              "shared memory: __shared__ arrays and dynamic shared memory take 232449 bytes, must be at most 232448 on "
              "sm_90\n  in kernel (anonymous namespace)::static_and_dynamic<256>, block 0, thread 0" +
                  at(TOUCH));
}

namespace {

__global__ void count_on_zero(float* out) {
  __shared__ float sum[1];
  float* dynamic = dynamic_shared<float>();
  out[2 * blockIdx.x] = sum[0] + 1.0f;
  out[2 * blockIdx.x + 1] = dynamic[0] + 1.0f;
  // What the next block would find. Not 0: clang sees that sum would then never hold anything else, and reads 0.
  sum[0] = dynamic[0] = static_cast<float>(blockIdx.x);
}
constexpr int COUNT_ON_ZERO = __LINE__ - 5;

}  // namespace

TEST_CASE("BC-089: shared memory holds NaN at the start of every block, whatever the last one left") {
  const Buffer<float> out("out", 64);
  const auto run = [&] { launch(count_on_zero, dim3(32), dim3(1), 4, nullptr, out.data()); };
  CHECK_FAULT(run(),
              "uninitialised read of shared array 'sum', index 0 (elements of 4 bytes): no thread of this block has "
              "written it\n  in kernel (anonymous namespace)::count_on_zero, block 0, thread 0" +
                  at(COUNT_ON_ZERO));
  const WithChecks unseen({.uninitialised = false, .races = true});  // not reported, it still shows in the result
  for (int i = 0; i < 3; ++i) {
    run();
    for (float value : out.download()) CHECK(std::isnan(value));
  }
}

namespace {

// From block 5 on every block has a fault, block 5 only after a long while.
__global__ void faults_from_block_5(float* x) {
  float sum = 0;
  if (blockIdx.x == 5)
    for (int i = 0; i < 20'000; ++i) sum += x[i % 10];
  if (blockIdx.x >= 5 && threadIdx.x >= 3) x[10 + blockIdx.x] = sum;
}
constexpr int MANY = __LINE__ - 2;

}  // namespace

TEST_CASE("faults in many blocks, on all workers: the first block's is reported, each time") {
  const Buffer<float> x("x", std::vector<float>(10, 1.0f));
  for (int i = 0; i < 100; ++i)
    REQUIRE(message_of<KernelFault>([&] { launch(faults_from_block_5, dim3(400), dim3(64), 0, nullptr, x.data()); }) ==
            "out-of-bounds write to buffer 'x': index 15, size 10 (elements of 4 bytes)\n  in kernel (anonymous "
            "namespace)::faults_from_block_5, block 5, thread 3" +
                at(MANY));
  CHECK(healthy());
}

namespace {

__global__ void in_three_dimensions(float* x) {
  if (blockIdx.x == 1 && blockIdx.y == 2 && blockIdx.z == 3 && threadIdx.x == 3 && threadIdx.y == 2 && threadIdx.z == 1)
    x[4] = 0.0f;
}
constexpr int THREE = __LINE__ - 2;

__global__ void launches_a_kernel(int* out) {
  if (chosen()) launch(write_indices, dim3(1), dim3(32), 0, nullptr, out, 32);
}

}  // namespace

TEST_CASE("block and thread of a fault, in three dimensions") {
  const Buffer<float> x("x", 4);
  CHECK_FAULT(launch(in_three_dimensions, dim3(2, 3, 4), dim3(4, 3, 2), 0, nullptr, x.data()),
              "out-of-bounds write to buffer 'x': index 4, size 4 (elements of 4 bytes)\n  in kernel (anonymous "
              "namespace)::in_three_dimensions, block (1, 2, 3), thread (3, 2, 1)" +
                  at(THREE));
}

TEST_CASE("a kernel that launches a kernel is refused, and nothing hangs") {
  const Buffer<int> out("out", 32);
  const std::string report =
      message_of<KernelFault>([&] { launch(launches_a_kernel, GRID, BLOCK, 0, nullptr, out.data()); });
  CHECK(contains(report,
                 "a kernel launches a kernel, which the CPU device does not offer\n  in kernel (anonymous "
                 "namespace)::launches_a_kernel" +
                     CHOSEN));
  CHECK(healthy());
}

namespace {

__global__ void wide_read(const float* x, float* out, int offset) {
  const float4 four = *reinterpret_cast<const float4*>(x + offset);
  out[0] = four.x + four.y + four.z + four.w;
}
[[maybe_unused]] constexpr int WIDE_READ = __LINE__ - 3;
__global__ void wide_write(float* out, int offset) {
  float4* four = reinterpret_cast<float4*>(out + offset);
  *four = make_float4(1, 2, 3, 4);
}
[[maybe_unused]] constexpr int WIDE_WRITE = __LINE__ - 2;

}  // namespace

TEST_CASE("BC-003: a float4 at an address that a GPU refuses") {
  const Buffer<float> x("x", std::vector<float>(16, 1.0f)), out("out", 16);
  const auto read = [&](int offset) { launch(wide_read, dim3(1), dim3(1), 0, nullptr, x.data(), out.data(), offset); };
  const auto write = [&](int offset) { launch(wide_write, dim3(1), dim3(1), 0, nullptr, out.data(), offset); };
  read(4);
  CHECK(out.download()[0] == exactly(4.0f));
  write(8);
  CHECK(out.download()[11] == exactly(4.0f));
  for (int offset : {1, 2, 3, 7}) {
    [[maybe_unused]] const auto check = [&](const std::string& report, const std::string& buffer,
                                            const std::string& kernel, int line) {
      INFO(report);
      CHECK(contains(report, "misaligned "));
      CHECK(contains(report, "in buffer '" + buffer + "', at byte " + std::to_string(4 * offset) +
                                 ": the address must be a multiple of 16 bytes for a "));
      CHECK(contains(report, kernel + ", block 0, thread 0" + at(line)));
      CHECK(healthy());
    };
#ifdef __clang__  // which makes pieces of the copy of a float4, and looks at each alone: two of 8 bytes, for a store
    if (offset % 2 != 0)
      CHECK(contains(message_of<KernelFault>([&] { write(offset); }),
                     "misaligned write in buffer 'out', at byte " + std::to_string(4 * offset) +
                         ": the address must be a multiple of 8 bytes for a 8-byte access"));
#else
    check(message_of<KernelFault>([&] { read(offset); }), "x", "wide_read", WIDE_READ);
    check(message_of<KernelFault>([&] { write(offset); }), "out", "wide_write", WIDE_WRITE);
#endif
  }
}

namespace {

__global__ void clears(float* out, int bytes) {
  __shared__ float s[8];
  if (threadIdx.x == 0) std::memset(s, 0, static_cast<std::size_t>(bytes));
  __syncthreads();
  if (threadIdx.x < 8) out[threadIdx.x] = s[threadIdx.x];
}
constexpr int CLEARS = __LINE__ - 4;

struct Complex {
  double re, im;
};
struct Pair {
  float a, b;
};
template <class T>
__global__ void copies_a_struct(const T* from, T* to) {
  *to = *from;
}

struct __align__(16) Sixteen {
  float x;
};
__global__ void aligned(int* out) {
  __shared__ __align__(64) float s[4];
  s[threadIdx.x] = 1.0f;
  out[threadIdx.x] = static_cast<int>(reinterpret_cast<std::uintptr_t>(s) % 64 + sizeof(Sixteen) + alignof(Sixteen));
}

}  // namespace

TEST_CASE("memset over the end of a shared array counts in bytes") {
  const Buffer<float> out("out", 8);
  CHECK_FAULT(launch(clears, dim3(1), dim3(32), 0, nullptr, out.data(), 36),
              "out-of-bounds write to shared array 's': index 32, size 32 (elements of 1 byte)\n  in kernel (anonymous "
              "namespace)::clears, block 0, thread 0" +
                  at(CLEARS));
  launch(clears, dim3(1), dim3(32), 0, nullptr, out.data(), 32);
  CHECK(out.download()[7] == exactly(0.0f));
}

TEST_CASE("a struct needs the alignment of its members, not of its size") {
  const Buffer<double> doubles("doubles", {1, 2, 3, 4, 5, 6}), to("to", 6);
  launch(copies_a_struct<Complex>, dim3(1), dim3(1), 0, nullptr, reinterpret_cast<const Complex*>(doubles.data() + 1),
         reinterpret_cast<Complex*>(to.data() + 3));
  CHECK(to.download()[4] == exactly(3.0));
  const Buffer<float> floats("floats", {1, 2, 3, 4}), pair("pair", 4);
  launch(copies_a_struct<Pair>, dim3(1), dim3(1), 0, nullptr, reinterpret_cast<const Pair*>(floats.data() + 1),
         reinterpret_cast<Pair*>(pair.data() + 1));
  CHECK(pair.download()[2] == exactly(3.0f));
}

TEST_CASE("__align__ on a type and on a shared array") {
  const Buffer<int> out("out", 4);
  launch(aligned, dim3(1), dim3(4), 0, nullptr, out.data());
  CHECK(out.download()[3] == exactly(32));
}
