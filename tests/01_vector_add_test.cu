// Rung 01 against x + y, at every size that has broken a vector add elsewhere.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

#include "common/harness/buffer.hpp"
#include "common/harness/compare.hpp"
#include "common/harness/inputs.hpp"
#include "steps/01_vector_add/vector_add.cuh"
#include "steps/01_vector_add/vectorized.cuh"
#include "steps/01_vector_add/without_mask.cuh"
#include "tests/expect.hpp"

namespace {

using namespace ladder;

using Add = void (*)(Vector<const float>, Vector<const float>, Vector<float>, cudaStream_t);
struct Variant {
  std::string name;  // a pointer would be printed as one
  Add add;
};
const std::vector<Variant> VARIANTS{{"vector_add", step01::vector_add},
                                    {"vector_add_vectorized", step01::vector_add_vectorized}};

std::vector<float> float_sums(const std::vector<float>& x, const std::vector<float>& y) {
  std::vector<float> sums(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) sums[i] = static_cast<float>(static_cast<double>(x[i]) + y[i]);
  return sums;
}

// A part of a buffer: what a caller has who passes x[offset:].
template <class T>
Vector<T> part(const Buffer<T>& buffer, int64_t offset, int64_t n) {
  return {buffer.data() + offset, {n}, {1}, buffer.size() - offset};
}

// The variant's output at the given offsets from 16-byte alignment, with NaN around x and y and guards around out.
void check(const Variant& variant, int64_t n, int64_t x_offset, int64_t y_offset, int64_t out_offset) {
  CAPTURE(variant.name);
  CAPTURE(n);
  CAPTURE(x_offset);
  CAPTURE(y_offset);
  CAPTURE(out_offset);
  constexpr int64_t MARGIN = 64;
  constexpr float GUARD = -777;
  const std::vector<float> x = normal(n, 1), y = uniform(n, 2, 1, 3);
  const auto surround = [&](const std::vector<float>& values, int64_t offset) {
    std::vector<float> all(static_cast<std::size_t>(n + offset + MARGIN), std::numeric_limits<float>::quiet_NaN());
    std::copy(values.begin(), values.end(), all.begin() + offset);
    return all;
  };
  const Buffer<float> x_buffer("x", surround(x, x_offset)), y_buffer("y", surround(y, y_offset));
  Buffer<float> out_buffer("out", n + out_offset + MARGIN);
  out_buffer.fill(GUARD);
  variant.add(part(x_buffer, x_offset, n), part(y_buffer, y_offset, n), part(out_buffer, out_offset, n), nullptr);
  std::vector<float> expected(static_cast<std::size_t>(n + out_offset + MARGIN), GUARD);
  const std::vector<float> sums = float_sums(x, y);
  std::copy(sums.begin(), sums.end(), expected.begin() + out_offset);
  const Comparison difference = compare_bits(out_buffer.download(), expected, {n + out_offset + MARGIN});
  CHECK_MESSAGE(difference.matches(), difference.describe());
  CHECK(out_buffer.guards_intact());
}

}  // namespace

TEST_CASE("BC-002: every size around a warp, a block and three blocks, and nothing written behind the end") {
  for (const Variant& variant : VARIANTS)
    for (int64_t n : {1,   2,   3,   4,   5,    7,    31,   32,   33,   127,  128,     129,
                      255, 256, 257, 509, 1021, 1023, 1024, 1025, 4095, 4097, 100'003, 1 << 20})
      check(variant, n, 0, 0, 0);
}

TEST_CASE("BC-003: pointers off 16-byte alignment, together and one at a time") {
  for (const Variant& variant : VARIANTS)
    for (int64_t n : {1, 2, 3, 4, 5, 6, 7, 8, 9, 1023}) {
      check(variant, n, 1, 1, 1);
      check(variant, n, 1, 0, 0);
      check(variant, n, 0, 1, 0);
      check(variant, n, 0, 0, 1);
      check(variant, n, 2, 3, 1);
    }
}

TEST_CASE("BC-001: no elements, null pointers: nothing is launched, and the next call is right") {
  for (const Variant& variant : VARIANTS) {
    CAPTURE(variant.name);
    const Launches none = count_launches([&] { variant.add({}, {}, {}, nullptr); });
    CHECK(none.kernels == exactly(0));
    const Buffer<float> x("x", std::vector<float>{1}), y("y", std::vector<float>{2});
    Buffer<float> out("out", 1);
    const Launches one = count_launches([&] { variant.add(x.view(1), y.view(1), out.view(1), nullptr); });
    CHECK(one.kernels == exactly(1));
    check_same(out.download(), std::vector<float>{3});
  }
}

TEST_CASE("BC-008: denormals, infinities and overflow keep their bits") {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const float denormal = std::numeric_limits<float>::denorm_min();
  const std::vector<float> x{denormal, 1e-40f, inf, 3e38f, 0.0f, -0.0f, nan, 1.0f, 16777216.0f};
  const std::vector<float> y{denormal, 1e-40f, -inf, 3e38f, -0.0f, -0.0f, 1.0f, nan, 1.0f};
  const std::vector<float> expected{std::bit_cast<float>(2u), 2 * 1e-40f, nan, inf, 0.0f, -0.0f, nan, nan, 16777216.0f};
  for (const Variant& variant : VARIANTS) {
    CAPTURE(variant.name);
    const auto n = static_cast<int64_t>(x.size());
    const Buffer<float> x_buffer("x", x), y_buffer("y", y);
    Buffer<float> out("out", n);
    variant.add(x_buffer.view(n), y_buffer.view(n), out.view(n), nullptr);
    const Comparison difference = compare_bits(out.download(), expected, {n});
    CHECK_MESSAGE(difference.matches(), difference.describe());
  }
}

TEST_CASE("BC-009: a view that is longer than its memory is refused, and nothing is written") {
  for (const Variant& variant : VARIANTS) {
    const Buffer<float> x("x", std::vector<float>{1, 2, 3, 4}), y("y", std::vector<float>{1, 2, 3, 4, 5});
    Buffer<float> out("out", 4);
    const Vector<const float> every_second{y.data(), {4}, {2}, 5};  // needs 7 elements, has 5
    const std::string name = variant.name;
    CHECK_REFUSED(variant.add(x.view(4), every_second, out.view(4), nullptr),
                  name + ": y.extent is 5, must be at least 7, which its sizes and strides reach");
    const Vector<const float> strided{y.data(), {2}, {2}, 5};
    CHECK_REFUSED(variant.add(x.view(2), strided, out.view(2), nullptr), name + ": y.strides[0] is 2, must be 1");
    CHECK_REFUSED(variant.add(x.view(4), y.view(5), out.view(4), nullptr),
                  name + ": y.sizes[0] is 5, must be 4, as of x");
    CHECK_REFUSED(variant.add(x.view(4), y.view(4), out.view(3), nullptr),
                  name + ": out.sizes[0] is 3, must be 4, as of x");
    CHECK_REFUSED(variant.add(x.view(-1), y.view(4), out.view(4), nullptr),
                  name + ": x.sizes[0] is -1, must be at least 0");
    CHECK_REFUSED(variant.add({nullptr, {4}, {1}, 4}, y.view(4), out.view(4), nullptr),
                  name + ": x.data is null, must be a pointer to 4 elements");
    CHECK(untouched(out));
  }
}

TEST_CASE("BC-010: out may be x, y or both; a partial overlap is refused") {
  for (const Variant& variant : VARIANTS) {
    CAPTURE(variant.name);
    constexpr int64_t N = 1025;
    const std::vector<float> x = normal(N, 3), y = normal(N, 4), sums = float_sums(x, y), doubled = float_sums(x, x);
    Buffer<float> a("a", x), b("b", y);
    variant.add(a.view(N), b.view(N), a.view(N), nullptr);
    check_same(a.download(), sums);
    a.upload(x);
    variant.add(a.view(N), b.view(N), b.view(N), nullptr);
    check_same(b.download(), sums);
    variant.add(a.view(N), a.view(N), a.view(N), nullptr);
    check_same(a.download(), doubled);
    CHECK_REFUSED(variant.add(part(a, 0, N - 1), b.view(N - 1), part(a, 1, N - 1), nullptr),
                  std::string(variant.name) + ": out.data is inside x, must be apart from it, or the same view");
    check_same(a.download(), doubled);
  }
}

TEST_CASE("BC-004: the grid is computed in 64 bits, and a grid that is too large is refused") {
  CHECK(grid_of("test", cdiv(2'147'483'393, 256)).x == 8'388'608);
  CHECK(grid_of("test", cdiv(std::numeric_limits<int>::max(), 256)).x == 8'388'608);
  CHECK(grid_of("test", cdiv((int64_t{1} << 31) + 5, 256)).x == 8'388'609);
  CHECK_REFUSED(grid_of("test", int64_t{1} << 31),
                "test: the number of blocks is 2147483648, must be at most 2147483647");
}

TEST_CASE("any size, any offsets: the float sum, to the bit") {
  for (const Variant& variant : VARIANTS)
    CHECK_PROPERTY([&] {
      const auto n = *rc::gen::inRange<int64_t>(1, 3000);
      const auto values =
          rc::gen::container<std::vector<float>>(static_cast<std::size_t>(n), rc::gen::arbitrary<float>());
      const std::vector<float> x = *values, y = *values;
      const Buffer<float> x_buffer("x", x), y_buffer("y", y);
      Buffer<float> out("out", n);
      variant.add(x_buffer.view(n), y_buffer.view(n), out.view(n), nullptr);
      RC_ASSERT(compare_bits(out.download(), float_sums(x, y), {n}).matches());
    });
}

TEST_CASE("12 bytes an element move, in one launch") {
  constexpr int64_t N = 1025;
  const Buffer<float> x("x", normal(N, 1)), y("y", normal(N, 2));
  Buffer<float> out("out", N);
  for (const Variant& variant : VARIANTS) {
    const Launches launches = count_launches([&] { variant.add(x.view(N), y.view(N), out.view(N), nullptr); });
    CHECK(launches.kernels == exactly(1));
    if (!device_checks()) continue;  // a GPU counts no bytes
    CHECK(launches.bytes() == exactly(12 * N));
    for (const Traffic& traffic : launches.traffic) {
      CHECK(traffic.bytes_read == exactly(traffic.buffer == "out" ? 0 : 4 * N));
      CHECK(traffic.bytes_written == exactly(traffic.buffer == "out" ? 4 * N : 0));
    }
  }
}

TEST_CASE("without the mask, the CPU device names the first access past the end" * doctest::skip(!device_checks())) {
  constexpr int64_t N = 1000;
  const Buffer<float> x("x", normal(N, 1)), y("y", normal(N, 2));
  Buffer<float> out("out", N);
  const std::string message =
      message_of<KernelFault>([&] { step01::vector_add_without_mask(x.view(N), y.view(N), out.view(N)); });
  CHECK(message.find("out-of-bounds read of buffer") != std::string::npos);
  CHECK(message.find("index 1000, size 1000") != std::string::npos);
  CHECK(message.find("step01::vector_add_without_mask_kernel<256>, block 3, thread 232") != std::string::npos);
  CHECK(message.find("steps/01_vector_add/without_mask.cuh:") != std::string::npos);
  // A multiple of BLOCK_SIZE hides the bug: the test that passes over it.
  step01::vector_add_without_mask(x.view(768), y.view(768), out.view(768));
  CHECK(std::isfinite(out.download()[767]));
}
