#include "runtime/graph/executable.h"

#include <volk.h>

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "runtime/ops/elementwise/binary.h"
#include "runtime/ops/moves/slice.h"
#include "runtime/ops/products/matmul.h"
#include "runtime/util/error.h"
#include "tests/support/constants.h"
#include "tests/support/test_device.h"

namespace vitrine::test {
namespace {

// Hands out one tensor under every name, as the parts it is given.
class Parts final : public ConstantSource {
 public:
  explicit Parts(std::vector<HostTensor> tensors) {
    for (const HostTensor& tensor : tensors) {
      bytes_.push_back(encode(tensor));
      dtypes_.push_back(tensor.dtype);
    }
  }
  ConstantParts find(const std::string&, const Shape&, DType) override {
    ConstantParts parts;
    for (size_t i = 0; i < bytes_.size(); ++i) parts.push_back({dtypes_[i], bytes_[i]});
    return parts;
  }

 private:
  std::vector<std::vector<std::byte>> bytes_;
  std::vector<DType> dtypes_;
};

void write(Executable& executable, const HostTensor& tensor, uint32_t set = 0) {
  const auto bytes = encode(tensor);
  std::memcpy(executable.input(0, set).data(), bytes.data(), bytes.size());
}

std::vector<double> read(const Executable& executable, uint32_t set = 0) {
  return decode(executable.output(0, set),
                executable.plan().graph->value(executable.plan().outputs[0]).dtype);
}

// x + constant, so that the constant's own values come out.
std::vector<double> load_through(TestDevice& device, const std::vector<HostTensor>& parts, Shape shape,
                                 DType dtype) {
  auto graph = std::make_shared<Graph>();
  const ValueId x = graph->input("x", shape, dtype);
  graph->output(add(*graph, "sum", x, graph->constant("c", shape, dtype)), "y");
  Parts source(parts);
  WeightStore weights(*device.pipelines, source);
  Executable executable(weights, make_plan(graph, device.device->capabilities()));
  write(executable, filled(shape, dtype, 0));
  executable.run();
  return read(executable);
}

TEST_CASE("constants are converted on load, part by part") {
  TestDevice& device = test_device();
  // Odd lengths: the second part begins where no descriptor can.
  const HostTensor a = random_tensor({3, 5}, DType::f16, 1), b = random_tensor({2, 5}, DType::bf16, 2);
  const HostTensor c = random_tensor({1, 5}, DType::f32, 3);
  std::vector<double> expected = a.values;
  expected.insert(expected.end(), b.values.begin(), b.values.end());
  expected.insert(expected.end(), c.values.begin(), c.values.end());
  CHECK(load_through(device, {a, b, c}, {6, 5}, DType::f32) == expected);
  CHECK(load_through(device, {c}, {1, 5}, DType::f32) == c.values);

  if (stores(DType::f16)) {
    for (double& value : expected) value = round_to(DType::f16, value);
    CHECK(load_through(device, {a, b, c}, {6, 5}, DType::f16) == expected);
  }
  require_no_validation_messages();
}

TEST_CASE("constants larger than the staging buffer arrive whole") {
  TestDevice& device = test_device();
  const HostTensor big = random_tensor({9000, 1024}, DType::f32, 4);
  CHECK(load_through(device, {big}, big.shape, DType::f32) == big.values);
  require_no_validation_messages();
}

TEST_CASE("a constant of the wrong length is refused by name") {
  TestDevice& device = test_device();
  try {
    load_through(device, {random_tensor({4, 5}, DType::f32, 1)}, {6, 5}, DType::f32);
    FAIL("it was loaded");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::bad_file);
    CHECK(std::string(error.what()).find("'c'") != std::string::npos);
  }
}

struct Mlp {
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  RandomConstants constants{9};
  HostTensor x;
  std::vector<double> expected;

  Mlp(uint64_t rows, uint64_t width, uint64_t seed) : x(random_tensor({rows, width}, DType::f32, seed)) {
    const ValueId in = graph->input("x", x.shape);
    const ValueId up = graph->constant("up", {2 * width, width}),
                  down = graph->constant("down", {width, 2 * width});
    const ValueId hidden = matmul(*graph, "fc1", in, up, {.activation = Activation::silu});
    graph->output(matmul(*graph, "fc2", hidden, down, {.residual = in}), "y");
    expected = reference(x);
  }
  std::vector<double> reference(const HostTensor& input) const {
    const uint64_t rows = input.shape[0], width = input.shape[1];
    const auto up = constants.tensor("up", {2 * width, width}, DType::f32).values;
    const auto down = constants.tensor("down", {width, 2 * width}, DType::f32).values;
    std::vector<double> hidden(rows * 2 * width), out = input.values;
    for (uint64_t r = 0; r < rows; ++r) {
      for (uint64_t n = 0; n < 2 * width; ++n) {
        double sum = 0;
        for (uint64_t k = 0; k < width; ++k) sum += input.values[r * width + k] * up[n * width + k];
        hidden[r * 2 * width + n] = sum / (1 + std::exp(-sum));
      }
      for (uint64_t n = 0; n < width; ++n) {
        for (uint64_t k = 0; k < 2 * width; ++k)
          out[r * width + n] += hidden[r * 2 * width + k] * down[n * 2 * width + k];
      }
    }
    return out;
  }
};

TEST_CASE("two sets of inputs are in flight at once and keep their own results") {
  TestDevice& device = test_device();
  const Mlp mlp(37, 48, 5);
  RandomConstants constants(9);
  WeightStore weights(*device.pipelines, constants);
  Executable executable(weights, make_plan(mlp.graph, device.device->capabilities()));
  for (uint64_t round = 0; round < 4; ++round) {
    const HostTensor first = random_tensor(mlp.x.shape, DType::f32, 100 + round);
    const HostTensor second = random_tensor(mlp.x.shape, DType::f32, 200 + round);
    write(executable, first, 0);
    executable.submit(0);
    write(executable, second, 1);
    executable.submit(1);
    executable.wait(0);
    CHECK(relative_error(read(executable, 0), mlp.reference(first)) < 2e-6);
    executable.wait(1);
    CHECK(relative_error(read(executable, 1), mlp.reference(second)) < 2e-6);
  }
  require_no_validation_messages();
}

TEST_CASE("memory reuse, guard bands and slices change nothing in the result") {
  TestDevice& device = test_device();
  const Mlp mlp(50, 33, 6);
  std::vector<std::vector<std::byte>> results;
  for (int round = 0; round < 4; ++round) {
    PlanOptions options;
    options.reuse_memory = round != 1;
    options.guard_bytes = round == 2 ? 4096 : 0;
    options.slice_seconds = round == 3 ? 1e-5 : 0.1;
    RandomConstants constants(9);
    WeightStore weights(*device.pipelines, constants);
    Executable executable(weights, make_plan(mlp.graph, device.device->capabilities(), options));
    if (round == 3) CHECK(executable.plan().slice_count >= executable.plan().steps.size());
    write(executable, mlp.x);
    executable.fill_memory(0x7fcd7fcd);
    executable.run();
    CHECK(relative_error(read(executable), mlp.expected) < 2e-6);
    results.emplace_back(executable.output(0).begin(), executable.output(0).end());
  }
  for (const auto& result : results) CHECK(result == results.front());
  require_no_validation_messages();
}

TEST_CASE("a profile times every step and cuts the submissions anew") {
  skip_without_timestamps();
  TestDevice& device = test_device();
  const Mlp mlp(197, 192, 7);
  PlanOptions options;
  options.slice_seconds = 1e-5;
  RandomConstants constants(9);
  WeightStore weights(*device.pipelines, constants);
  Executable executable(weights, make_plan(mlp.graph, device.device->capabilities(), options));
  write(executable, mlp.x);
  executable.run();
  const std::vector<std::byte> before(executable.output(0).begin(), executable.output(0).end());

  const Profile profile = executable.profile();
  REQUIRE(profile.step_seconds.size() == executable.plan().steps.size());
  CHECK(profile.total_seconds > 0);
  const double sum = std::accumulate(profile.step_seconds.begin(), profile.step_seconds.end(), 0.0);
  CHECK(std::abs(sum - profile.total_seconds) < 1e-9);
  for (size_t i = 0; i < profile.step_seconds.size(); ++i) {
    CHECK(executable.plan().steps[i].seconds == profile.step_seconds[i]);
  }
  for (uint32_t set = 0; set < Executable::io_sets; ++set) {
    write(executable, mlp.x, set);
    executable.run(set);
    const auto after = executable.output(0, set);
    CHECK(std::equal(before.begin(), before.end(), after.begin(), after.end()));
  }
  require_no_validation_messages();
}

TEST_CASE("the device's own seconds are part of the host's, and the same work is done") {
  skip_without_timestamps();
  TestDevice& device = test_device();
  const Mlp mlp(197, 192, 7);
  RandomConstants constants(9);
  WeightStore weights(*device.pipelines, constants);
  for (const double slice_seconds : {1e-5, 1.0}) {  // in many submissions and in one
    PlanOptions options;
    options.slice_seconds = slice_seconds;
    Executable executable(weights, make_plan(mlp.graph, device.device->capabilities(), options));
    write(executable, mlp.x);
    const auto start = std::chrono::steady_clock::now();
    const double seconds = executable.device_seconds();
    CHECK(seconds > 0);
    CHECK(seconds < std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    // It computed what run() computes.
    CHECK(relative_error(read(executable), mlp.expected) < 2e-6);
    const std::vector<std::byte> before(executable.output(0).begin(), executable.output(0).end());
    executable.run();
    const auto after = executable.output(0);
    CHECK(std::equal(before.begin(), before.end(), after.begin(), after.end()));
  }
  require_no_validation_messages();
}

TEST_CASE("executables of several shapes share one copy of the weights") {
  TestDevice& device = test_device();
  const Mlp small(3, 48, 1), large(90, 48, 2);
  RandomConstants constants(9);
  WeightStore weights(*device.pipelines, constants);
  Executable first(weights, make_plan(small.graph, device.device->capabilities()));
  const uint64_t bytes = weights.bytes();
  Executable second(weights, make_plan(large.graph, device.device->capabilities()));
  CHECK(weights.bytes() == bytes);
  write(first, small.x);
  write(second, large.x);
  first.submit();
  second.submit();
  first.wait();
  second.wait();
  CHECK(relative_error(read(first), small.expected) < 2e-6);
  CHECK(relative_error(read(second), large.expected) < 2e-6);
  require_no_validation_messages();
}

PFN_vkCreateSemaphore create_semaphore;
PFN_vkDestroySemaphore destroy_semaphore;
int semaphores = 0;  // alive

VKAPI_ATTR VkResult VKAPI_CALL counted_create(VkDevice device, const VkSemaphoreCreateInfo* info,
                                              const VkAllocationCallbacks* callbacks, VkSemaphore* made) {
  ++semaphores;
  return create_semaphore(device, info, callbacks, made);
}
VKAPI_ATTR void VKAPI_CALL counted_destroy(VkDevice device, VkSemaphore semaphore,
                                           const VkAllocationCallbacks* callbacks) {
  --semaphores;
  destroy_semaphore(device, semaphore, callbacks);
}
VKAPI_ATTR VkResult VKAPI_CALL no_command_buffers(VkDevice, const VkCommandBufferAllocateInfo*,
                                                  VkCommandBuffer*) {
  return VK_ERROR_OUT_OF_DEVICE_MEMORY;
}

TEST_CASE("an executable that can't be recorded leaves no semaphore behind") {
  TestDevice& device = test_device();
  auto graph = std::make_shared<Graph>();
  const ValueId x = graph->input("x", {5});
  graph->output(add(*graph, "sum", x, x), "y");
  RandomConstants none(1);
  WeightStore weights(*device.pipelines, none);
  const Plan plan = make_plan(graph, device.device->capabilities());

  VolkDeviceTable& vk = device.device->vk();
  create_semaphore = std::exchange(vk.vkCreateSemaphore, counted_create);
  destroy_semaphore = std::exchange(vk.vkDestroySemaphore, counted_destroy);
  const auto allocate = std::exchange(vk.vkAllocateCommandBuffers, no_command_buffers);
  CHECK_THROWS_AS(Executable(weights, plan), Error);
  CHECK(semaphores == 0);
  vk.vkAllocateCommandBuffers = allocate;
  {
    const Executable made(weights, plan);
    CHECK(semaphores == 2);  // of what is computed, and of what is copied
  }
  CHECK(semaphores == 0);
  vk.vkCreateSemaphore = create_semaphore;
  vk.vkDestroySemaphore = destroy_semaphore;
  require_no_validation_messages();
}

TEST_CASE("a constant that can't be bound whole is converted in pieces") {
  TestDevice& device = test_device();
  const uint64_t range = device.device->capabilities().max_storage_range;
  if (!device.device->capabilities().supports(Need::storage16)) SKIP("the device has no 16-bit storage");
  if (range > 256u << 20) SKIP("the device binds " << range << " bytes, more than this test makes");
  HostTensor tensor{{range / 4 + 1003}, DType::f32, {}};
  for (uint64_t i = 0; i < tensor.shape[0]; ++i) tensor.values.push_back(static_cast<double>(i % 2039));
  auto graph = std::make_shared<Graph>();
  const ValueId constant = graph->constant("c", tensor.shape, DType::f16);
  const uint64_t end = tensor.shape[0], middle = range / 4 - 500;
  graph->output(slice(*graph, "last", constant, 0, middle, end), "y");
  Parts source({tensor});
  WeightStore weights(*device.pipelines, source);
  Executable executable(weights, make_plan(graph, device.device->capabilities()));
  executable.run();
  const std::vector<double> expected(tensor.values.begin() + static_cast<std::ptrdiff_t>(middle),
                                     tensor.values.end());
  CHECK(read(executable) == expected);  // whole numbers below 2048 are f16's
  require_no_validation_messages();
}

}  // namespace
}  // namespace vitrine::test
