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
  CHECK(out.download()[0] == exactly(1.0f));
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
  CHECK(out.download()[0] == exactly(1.0f));
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
    CHECK(out.download()[0] == exactly(1.0f));
  }
  CHECK(message_of<InvalidArgument>([] { cpu_device::set_device_model("sm_61"); }) ==
        "set_device_model: name is 'sm_61', must be sm_75, sm_80, sm_86, sm_89 or sm_90");
  CHECK(cpu_device::device_model() == "sm_90");
}

namespace {

__device__ float in_a_function(float value) {
  __shared__ float u[1024];
  u[threadIdx.x] = value;
  __syncthreads();
  return u[0];
}
__global__ void with_the_array_of_a_function(float* out) {
  const float value = in_a_function(3.0f);
  if (threadIdx.x == 5) out[0] = value;
}

// Refused at the launch, where nvcc refuses to compile it.
__global__ void with_too_large_an_array(float* out) {
  __shared__ float s[12289];
  s[threadIdx.x] = 1.0f;
  __syncthreads();
  if (threadIdx.x == 0) out[0] = s[1];
}

}  // namespace

TEST_CASE("BC-099: more __shared__ arrays than a kernel may have, seen accesses or not") {
  Buffer<float> out("out", 1);
  out.fill(-777);
  CHECK(
      message_of<LaunchRefused>([&] { launch(with_too_large_an_array, dim3(1), dim3(32), 0, nullptr, out.data()); }) ==
      "launch of (anonymous namespace)::with_too_large_an_array: the kernel's __shared__ arrays in bytes is 49156, "
      "must be at most 49152");
  CHECK(out.download()[0] == -777);
}

TEST_CASE("the array of a function that a kernel calls counts when the block first touches it") {
  const Buffer<float> out("out", 1);
  const auto run = [&](std::size_t dynamic) {
    launch(with_the_array_of_a_function, dim3(1), dim3(32), dynamic, nullptr, out.data());
  };
  run(228352);
  CHECK(out.download()[0] == exactly(3.0f));
  if (device_checks())
    CHECK(contains(message_of<KernelFault>([&] { run(228353); }),
                   "shared memory: __shared__ arrays and dynamic shared memory take 232449 bytes, must be at most "
                   "232448 on sm_90"));
}
