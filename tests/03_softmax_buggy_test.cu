// Rung 03 is wrong in exactly the way it says, and in no other: these tests turn red if the bug goes away, too.
#include "steps/03_softmax_buggy/softmax.cuh"
#include "tests/expect.hpp"
#include "tests/softmax_matrix.hpp"

using namespace ladder;

const SoftmaxUnderTest SOFTMAX{step03::softmax, 1024};

TEST_CASE("the softmax matrix: wrong at exactly the widths over 1024, from column 1024 on") {
  std::vector<Failure> expected;
  for (const Shape& shape : softmax_shapes())
    if (shape.columns > 1024) expected.push_back({shape, 1024, ""});
  CHECK(expected.size() > 90);
  CHECK(listing(failing_shapes(SOFTMAX, softmax_shapes())) == listing(expected));
}

TEST_CASE("BC-026: at 1025 columns the last keeps what it held, and the others share 1 among themselves") {
  std::vector<float> x(2 * 1025, 0.0f);
  x[1024] = 100;  // takes all of row 0, and is never read
  const Buffer<float> input("input", x);
  Buffer<float> output("output", 2 * 1025);
  output.fill(-777.0f);
  step03::softmax(input.view(2, 1025), output.view(2, 1025));
  std::vector<float> expected(2 * 1025, 1.0f / 1024);
  expected[1024] = expected[2049] = -777;
  const Comparison difference = compare_bits(output.download(), expected, {2, 1025});
  CHECK_MESSAGE(difference.matches(), difference.describe());
}

TEST_CASE("BC-028: no width is refused, and each is cut off at 1024") {
  for (int64_t columns : {int64_t{32769}, int64_t{65536}, int64_t{65537}, int64_t{262144}}) {
    const std::vector<Failure> failures = failing_shapes(SOFTMAX, {{1, columns}});
    CHECK(listing(failures) == listing({{{1, columns}, 1024, ""}}));
  }
}

#ifdef __CUDACC__  // The CPU device would need half a minute for so many blocks of 256 threads. Rung 04 has the same
                   // line.
TEST_CASE("BC-029: more rows than a grid has in y or z") {
  CHECK(listing(failing_shapes(SOFTMAX, {{65'535, 3}, {65'536, 3}, {70'000, 3}})) == "");
}
#endif

TEST_CASE("at 2000 columns the call succeeds, and moves 8 bytes for each of the first 1024") {
  const Buffer<float> input("input", normal(4 * 2000, 1)), output("output", 4 * 2000);
  const Launches launches = count_launches([&] { step03::softmax(input.view(4, 2000), output.view(4, 2000)); });
  CHECK(launches.kernels == exactly(1));
  if (device_checks()) CHECK(launches.bytes() == exactly(4 * 1024 * 8));
  CHECK(output.guards_intact());
}
