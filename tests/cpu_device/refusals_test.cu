// Launches that no GPU takes: refused before anything runs, in words that name the limit; the next launch is clean.
#include "common/cpu_device/control.hpp"
#include "tests/cpu_device/expect_fault.hpp"

namespace {

__global__ void fill(float* out) {
  if (threadIdx.x + threadIdx.y + threadIdx.z == 0) out[0] = 1.0f;
}

std::string refusal(dim3 grid, dim3 block, std::size_t shared_bytes = 0) {
  Buffer<float> out("out", 1);
  out.fill(-777);
  const Launches launches = count_launches([] {});
  const std::string text =
      message_of<LaunchRefused>([&] { launch(fill, grid, block, shared_bytes, nullptr, out.data()); });
  CHECK(read_launches().kernels == launches.kernels);
  CHECK(out.download()[0] == -777);
  launch(fill, dim3(1), dim3(1), 0, nullptr, out.data());
  CHECK(out.download()[0] == 1);
  return text;
}

std::string says(const std::string& limit) { return "launch of (anonymous namespace)::fill: " + limit; }

}  // namespace

TEST_CASE("BC-011, BC-099: more threads than a block has") {
  CHECK(refusal(dim3(1), dim3(1025)) == says("block.x is 1025, must be at most 1024"));
  CHECK(refusal(dim3(1), dim3(1500)) == says("block.x is 1500, must be at most 1024"));
  CHECK(refusal(dim3(1), dim3(1, 1025)) == says("block.y is 1025, must be at most 1024"));
  CHECK(refusal(dim3(1), dim3(1, 1, 65)) == says("block.z is 65, must be at most 64"));
  CHECK(refusal(dim3(1), dim3(32, 33)) == says("threads per block is 1056, must be at most 1024"));
  CHECK(refusal(dim3(1), dim3(1024, 1024, 64)) == says("threads per block is 67108864, must be at most 1024"));
}

TEST_CASE("BC-099: more blocks than a grid has") {
  CHECK(refusal(dim3(1, 65536), dim3(1)) == says("grid.y is 65536, must be at most 65535"));
  CHECK(refusal(dim3(1, 1, 65536), dim3(1)) == says("grid.z is 65536, must be at most 65535"));
  CHECK(refusal(dim3(2147483648u), dim3(1)) == says("grid.x is 2147483648, must be at most 2147483647"));
}

TEST_CASE("nothing to launch") {
  CHECK(refusal(dim3(0), dim3(1)) == says("grid.x is 0, must be at least 1"));
  CHECK(refusal(dim3(1, 0), dim3(1)) == says("grid.y is 0, must be at least 1"));
  CHECK(refusal(dim3(1, 1, 0), dim3(1)) == says("grid.z is 0, must be at least 1"));
  CHECK(refusal(dim3(1), dim3(0)) == says("block.x is 0, must be at least 1"));
  CHECK(refusal(dim3(1), dim3(1, 0)) == says("block.y is 0, must be at least 1"));
  CHECK(refusal(dim3(1), dim3(1, 1, 0)) == says("block.z is 0, must be at least 1"));
}

TEST_CASE("BC-099: the largest shapes are taken") {
  const Buffer<float> out("out", 1);
  launch(fill, dim3(1, 65535), dim3(1), 0, nullptr, out.data());
  launch(fill, dim3(1, 1, 65535), dim3(1), 0, nullptr, out.data());
  launch(fill, dim3(1), dim3(1024), 0, nullptr, out.data());
  launch(fill, dim3(1), dim3(1, 1024), 0, nullptr, out.data());
  launch(fill, dim3(1), dim3(16, 1, 64), 0, nullptr, out.data());
  CHECK(out.download()[0] == 1);
}

TEST_CASE("BC-099: one byte over each model's shared memory") {
  struct Model {
    const char* name;
    std::size_t limit;
  };
  CHECK(cpu_device::device_model() == "sm_90");
  for (const Model& model : {Model{"sm_75", 65536}, Model{"sm_80", 166912}, Model{"sm_86", 101376},
                             Model{"sm_89", 101376}, Model{"sm_90", 232448}}) {
    CAPTURE(model.name);
    cpu_device::set_device_model(model.name);
    CHECK(shared_memory_limit() == model.limit);
    const std::string limit = std::to_string(model.limit), over = std::to_string(model.limit + 1);
    CHECK(refusal(dim3(1), dim3(1), model.limit + 1) ==
          says("dynamic shared memory in bytes is " + over + ", must be at most " + limit));
    const Buffer<float> out("out", 1);
    launch(fill, dim3(1), dim3(1), model.limit, nullptr, out.data());
    CHECK(out.download()[0] == 1);
  }
  CHECK(message_of<InvalidArgument>([] { cpu_device::set_device_model("sm_61"); }) ==
        "set_device_model: name is 'sm_61', must be sm_75, sm_80, sm_86, sm_89 or sm_90");
  CHECK(cpu_device::device_model() == "sm_90");
}
