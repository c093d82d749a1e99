// Rung 04 is right at every width up to its limit and refuses the rest; its foils are what they claim to be.
#include <cmath>

#include "steps/04_softmax_fixed/naive.cuh"
#include "steps/04_softmax_fixed/softmax.cuh"
#include "steps/04_softmax_fixed/unfused.cuh"
#include "tests/expect.hpp"
#include "tests/softmax_matrix.hpp"

using namespace ladder;

const SoftmaxUnderTest SOFTMAX{step04::softmax, step04::MAX_BLOCK_SIZE};

static void softmax_unfused(Matrix<const float> input, Matrix<float> output, cudaStream_t stream) {
  const Buffer<float> scratch("scratch", step04::unfused_scratch(input.sizes[0], input.sizes[1]));
  step04::softmax_unfused(input, output, scratch.view(scratch.size()), stream);
  device_synchronize();  // before scratch goes
}

TEST_CASE("the softmax matrix: no shape fails") { CHECK(listing(failing_shapes(SOFTMAX, softmax_shapes())) == ""); }

TEST_CASE("BC-026: at 1025 columns the last one counts") {
  std::vector<float> x(2 * 1025, 0.0f);
  x[1024] = 100;
  std::vector<double> expected(2 * 1025, 3.720076e-44);
  expected[1024] = 1;
  std::fill(expected.begin() + 1025, expected.end(), 9.75609756e-4);
  const Buffer<float> input("input", x);
  Buffer<float> output("output", 2 * 1025);
  output.fill(-777.0f);
  step04::softmax(input.view(2, 1025), output.view(2, 1025));
  const Comparison difference = compare(output.download(), expected, {2, 1025}, {.absolute = 1e-40, .relative = 2e-6});
  CHECK_MESSAGE(difference.matches(), difference.describe());
}

TEST_CASE("BC-028: the widest row, whose last column weighs as much as all others") {
  const int64_t columns = 32768;
  std::vector<float> x(static_cast<std::size_t>(columns), 0.0f);
  x.back() = std::log(static_cast<float>(columns - 1));
  std::vector<double> expected(x.size(), 0.5 / static_cast<double>(columns - 1));
  expected.back() = 0.5;
  const Buffer<float> input("input", x), output("output", columns);
  step04::softmax(input.view(1, columns), output.view(1, columns));
  const Comparison difference = compare(output.download(), expected, {1, columns}, SOFTMAX_TOLERANCE);
  CHECK_MESSAGE(difference.matches(), difference.describe());
}

TEST_CASE(
    "BC-028, BC-034, BC-045, BC-049, BC-051: a row that registers cannot hold is refused, and the next is right") {
  // The memory need not be there: a launcher that looked at it before it refused would fail here.
  float cell = 0;
  for (int64_t columns : {int64_t{32769}, int64_t{65536}, int64_t{65537}, int64_t{100'000}, int64_t{131'072},
                          int64_t{131'073}, int64_t{262'144}, int64_t{33'554'432}, int64_t{1} << 40}) {
    const auto view = contiguous(&cell, int64_t{1}, columns);
    CHECK_REFUSED(
        step04::softmax(view, view),
        "softmax: n_cols is " + std::to_string(columns) +
            ", must be at most 32768: one block keeps the whole row in registers. An online softmax (rung 06) "
            "reads the row in pieces, keeps a running maximum and a running sum, and takes any width");
    CHECK(listing(failing_shapes(SOFTMAX, {{2, 5}})) == "");
  }
}

TEST_CASE("BC-029: more rows than a grid has in y or z") {
  CHECK(listing(failing_shapes(SOFTMAX, {{65'535, 3}, {65'536, 3}, {70'000, 3}})) == "");
}

TEST_CASE("one launch reads each element once and writes it once: 2MN of 4 bytes") {
  for (const auto& [rows, columns] : {Shape{4, 5}, Shape{3, 1024}, Shape{3, 2000}, Shape{2, 32768}}) {
    const Buffer<float> input("input", normal(rows * columns, 1)), output("output", rows * columns);
    const Launches launches =
        count_launches([&, m = rows, n = columns] { step04::softmax(input.view(m, n), output.view(m, n)); });
    CHECK(launches.kernels == exactly(1));
    if (!device_checks()) continue;  // a GPU counts no bytes
    REQUIRE(launches.traffic.size() == exactly(2));
    CHECK(launches.traffic[0].bytes_read == exactly(4 * rows * columns));
    CHECK(launches.traffic[0].bytes_written == exactly(0));
    CHECK(launches.traffic[1].bytes_read == exactly(0));
    CHECK(launches.traffic[1].bytes_written == exactly(4 * rows * columns));
  }
}

TEST_CASE("a block has whole warps, and room for BLOCK_SIZE columns at 32 a thread") {
  for (int block_size = 1; block_size <= step04::MAX_BLOCK_SIZE; block_size *= 2) {
    const int threads = step04::threads_for(block_size);
    CHECK(threads % 32 == exactly(0));
    CHECK((threads >= 32 && threads <= 1024));
    CHECK(block_size <= threads * 32);
  }
}

TEST_CASE("unfused: right at every shape of the matrix, and past the limit of the fused one") {
  std::vector<Shape> shapes = softmax_shapes();
  std::erase_if(shapes, [](Shape shape) { return shape.rows == 2 && shape.columns % 16 > 1 && shape.columns <= 1100; });
  shapes.push_back({2, 40'000});
  CHECK(shapes.size() > 150);
  CHECK(listing(failing_shapes({softmax_unfused, 40'000}, shapes)) == "");
}

TEST_CASE("unfused: rows as low as a float goes, a NaN or an infinity in any column, one column that takes all") {
  CHECK(failing_extremes({softmax_unfused, 40'000}) == "");
}

TEST_CASE("unfused: five launches, and 8MN + 2M + 2 x 256M elements of 4 bytes") {
  for (const auto& [rows, columns] : {Shape{4, 5}, Shape{1, 256}, Shape{3, 2000}}) {
    const Buffer<float> input("input", normal(rows * columns, 1)), output("output", rows * columns);
    const Launches launches =
        count_launches([&, m = rows, n = columns] { softmax_unfused(input.view(m, n), output.view(m, n), nullptr); });
    CHECK(launches.kernels == exactly(5));
  }
  if (!device_checks()) return;
  for (const auto& [rows, columns] : {Shape{4, 5}, Shape{1, 256}, Shape{3, 2000}}) {
    const Buffer<float> input("input", normal(rows * columns, 1)), output("output", rows * columns);
    const Buffer<float> scratch("scratch", step04::unfused_scratch(rows, columns));
    const Launches launches = count_launches([&, m = rows, n = columns] {
      step04::softmax_unfused(input.view(m, n), output.view(m, n), scratch.view(scratch.size()));
    });
    CHECK(launches.bytes() == exactly(4 * (8 * rows * columns + 2 * rows + 2 * 256 * rows)));
    REQUIRE(launches.traffic.size() == exactly(3));
    CHECK(launches.traffic[0].bytes_read == exactly(4 * 2 * rows * columns));
    CHECK(launches.traffic[1].bytes_written == exactly(4 * rows * columns));
    CHECK(launches.traffic[2].bytes_read == exactly(4 * (3 * rows * columns + 2 * 256 * rows)));
    CHECK(launches.traffic[2].bytes_written == exactly(4 * (2 * rows * columns + 2 * rows)));
  }
}

TEST_CASE("unfused: the intermediates need room of their own") {
  const Buffer<float> input("input", normal(20, 1)), output("output", 20), scratch("scratch", 48);
  const auto run = [&](Matrix<const float> x, Matrix<float> out, Vector<float> memory) {
    step04::softmax_unfused(x, out, memory);
  };
  CHECK_REFUSED(run(input.view(4, 5), output.view(4, 5), scratch.view(47)),
                "softmax_unfused: scratch.sizes[0] is 47, must be at least 48");
  CHECK_REFUSED(run(input.view(4, 5), output.view(4, 5), {scratch.data(), {24}, {2}, 48}),
                "softmax_unfused: scratch.strides[0] is 2, must be 1");
  CHECK_REFUSED(run(input.view(4, 5), output.view(4, 5), {nullptr, {48}, {1}, 48}),
                "softmax_unfused: scratch.data is null, must be a pointer to 48 elements");
  CHECK_REFUSED(run(input.view(4, 5), output.view(4, 4), scratch.view(48)),
                "softmax_unfused: output.sizes[1] is 4, must be 5, as of input");
  CHECK_REFUSED(run(scratch.view(4, 5), output.view(4, 5), scratch.view(48)),
                "softmax_unfused: scratch.data is inside input, must be apart from it");
  CHECK_REFUSED(run(input.view(4, 5), scratch.view(4, 5), scratch.view(48)),
                "softmax_unfused: scratch.data is inside output, must be apart from it");
  CHECK(untouched(output));
  CHECK(untouched(scratch));
  CHECK(count_launches([&] { run(input.view(0, 5), output.view(0, 5), {}); }).kernels == 0);
}

TEST_CASE("naive: where it is wrong, by the words of its contract") {
  // One exp is infinite; the sum alone is; all of them are 0; and a NaN in any column.
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto nan_f = static_cast<float>(nan);
  const Buffer<float> input("input", std::vector<float>{88.73f, 0, 88.72f, 88.72f, -104, -104, nan_f, 0, 0, nan_f});
  Buffer<float> output("output", 10);
  step04::softmax_naive(input.view(5, 2), output.view(5, 2));
  const Comparison difference = compare(
      output.download(), std::vector<double>{nan, 0, 0, 0, nan, nan, nan, nan, nan, nan}, {5, 2}, SOFTMAX_TOLERANCE);
  CHECK_MESSAGE(difference.matches(), difference.describe());
}

TEST_CASE("naive: right up to x = 88, NaN at 89") {
  const Buffer<float> input("input", std::vector<float>{88, 88, 89, 89, 0, 89}), output("output", 6);
  step04::softmax_naive(input.view(3, 2), output.view(3, 2));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Comparison difference =
      compare(output.download(), std::vector<double>{0.5, 0.5, nan, nan, 0, nan}, {3, 2}, SOFTMAX_TOLERANCE);
  CHECK_MESSAGE(difference.matches(), difference.describe());
  CHECK(listing(failing_shapes({[](auto x, auto out, cudaStream_t) { step04::softmax_naive(x, out); }, 0},
                               {{4, 5}, {3, 2000}})) == "");
}
