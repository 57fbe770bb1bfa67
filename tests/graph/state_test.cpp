// States: memory that outlives a run and that several executables share.
#include <volk.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/graph/executable.h"
#include "runtime/ops/elementwise/binary.h"
#include "runtime/ops/elementwise/unary.h"
#include "runtime/ops/norms/softmax.h"
#include "runtime/util/error.h"
#include "tests/support/constants.h"
#include "tests/support/test_device.h"

namespace vitrine {
namespace {

using Catch::Matchers::ContainsSubstring;

std::vector<float> read(const StateStore& states, std::string_view name, size_t first, size_t count) {
  std::vector<float> values(count);
  states.read(name, first * sizeof(float), std::as_writable_bytes(std::span(values)));
  return values;
}

void set_input(Executable& executable, std::string_view name, const std::vector<float>& values,
               uint32_t set) {
  const auto to = executable.input(executable.input_index(name), set);
  REQUIRE(to.size() == values.size() * sizeof(float));
  std::memcpy(to.data(), values.data(), to.size());
}

// Elements behind which a state may begin on every device: Vulkan lets none ask for more than 256 bytes.
constexpr size_t aligned = 64;

TEST_CASE("a state keeps from run to run what was stored") {
  test::TestDevice& device = test::test_device();
  test::RandomConstants none(1);
  WeightStore weights(*device.pipelines, none);
  StateStore states(*device.device);
  states.make("sums", 2 * aligned * sizeof(float));

  const auto graph = std::make_shared<Graph>();
  const ValueId x = graph->input("x", {5});
  const ValueId sum = graph->state("sum", {5}, {"sums", aligned});
  graph->store(add(*graph, "add", sum, x), {"sums", aligned});
  Executable run(weights, make_plan(graph, device.device->capabilities()), &states);

  const auto other = std::make_shared<Graph>();
  other->output(scale(*other, "half", other->state("sums", {2 * aligned}, {"sums"}), 0.5), "half");
  Executable look(weights, make_plan(other, device.device->capabilities()), &states);

  const std::vector<float> start{1, 2, 3};
  states.write("sums", aligned * sizeof(float), std::as_bytes(std::span(start)));
  for (uint32_t i = 0; i < 3; ++i) {
    set_input(run, "x", {1, 2, 3, 4, 5}, i % 2);
    run.submit(i % 2);
  }
  run.wait(0);
  CHECK(read(states, "sums", aligned, 5) == std::vector<float>{4, 8, 12, 12, 15});
  CHECK(read(states, "sums", 0, aligned) == std::vector<float>(aligned, 0));
  CHECK(read(states, "sums", aligned + 5, aligned - 5) == std::vector<float>(aligned - 5, 0));
  look.run();
  const auto bytes = look.output(0);
  std::vector<float> half(2 * aligned), expected(2 * aligned);
  std::memcpy(half.data(), bytes.data(), bytes.size());
  std::ranges::copy(std::vector<float>{2, 4, 6, 6, 7.5}, expected.begin() + aligned);
  CHECK(half == expected);
  test::require_no_validation_messages();
}

TEST_CASE("nodes behind a store read what was stored") {
  test::TestDevice& device = test::test_device();
  test::RandomConstants none(1);
  WeightStore weights(*device.pipelines, none);
  StateStore states(*device.device);
  constexpr size_t whole = aligned + 4;
  states.make("buffer", whole * sizeof(float));
  const auto graph = std::make_shared<Graph>();
  const ValueId x = graph->input("x", {4});
  const ValueId before = scale(*graph, "before", graph->state("old", {whole}, {"buffer"}), 1);
  graph->store(scale(*graph, "ten", x, 10), {"buffer", aligned});
  const ValueId after = scale(*graph, "after", graph->state("new", {whole}, {"buffer"}), 1);
  graph->output(before, "was");
  graph->output(after, "is");
  Executable run(weights, make_plan(graph, device.device->capabilities()), &states);
  set_input(run, "x", {1, 2, 3, 4}, 0);
  run.run();
  const auto output = [&](const char* name) {
    std::vector<float> values(whole);
    std::memcpy(values.data(), run.output(run.output_index(name)).data(), whole * sizeof(float));
    return values;
  };
  std::vector<float> stored(whole);
  std::ranges::copy(std::vector<float>{10, 20, 30, 40}, stored.begin() + aligned);
  CHECK(output("was") == std::vector<float>(whole, 0));
  CHECK(output("is") == stored);
  run.run();
  CHECK(output("was") == stored);
  test::require_no_validation_messages();
}

TEST_CASE("a kernel that does not work in place can't overwrite the state it reads") {
  test::TestDevice& device = test::test_device();
  const auto graph = std::make_shared<Graph>();
  const ValueId x = graph->state("x", {2 * aligned}, {"buffer"});
  graph->store(scale(*graph, "moved", x, 2), {"buffer", aligned});
  CHECK_THROWS_WITH(make_plan(graph, device.device->capabilities()), ContainsSubstring("work in place"));
}

TEST_CASE("an executable with states needs a store that has them") {
  test::TestDevice& device = test::test_device();
  test::RandomConstants none(1);
  WeightStore weights(*device.pipelines, none);
  StateStore states(*device.device);
  const auto graph = std::make_shared<Graph>();
  graph->store(scale(*graph, "twice", graph->state("x", {8}, {"buffer"}), 2), {"buffer"});
  const Plan plan = make_plan(graph, device.device->capabilities());
  CHECK_THROWS_AS(Executable(weights, plan), Error);
  CHECK_THROWS_AS(Executable(weights, plan, &states), Error);
  states.make("buffer", 7 * sizeof(float));
  CHECK_THROWS_AS(Executable(weights, plan, &states), Error);
}

TEST_CASE("a buffer of states can be read as far behind its end as it was made for") {
  StateStore states(*test::test_device().device);
  states.make("none", 64);
  states.make("long", 64, 200'001);
  CHECK_NOTHROW(states.require("none", 64, 0));
  CHECK_THROWS_AS(states.require("none", 64, 1), Error);
  CHECK_NOTHROW(states.require("long", 64, 200'001));
  CHECK_THROWS_AS(states.require("long", 65, 0), Error);
}

// What command buffers are given, in order.
struct Recorded {
  bool copy = false;
  VkAccessFlags2 from = 0, to = 0;  // of a barrier
};
std::vector<Recorded> recorded;
PFN_vkCmdCopyBuffer copy_buffer;
PFN_vkCmdPipelineBarrier2 pipeline_barrier;

VKAPI_ATTR void VKAPI_CALL recorded_copy(VkCommandBuffer commands, VkBuffer from, VkBuffer to, uint32_t count,
                                         const VkBufferCopy* regions) {
  recorded.push_back({.copy = true});
  copy_buffer(commands, from, to, count, regions);
}
VKAPI_ATTR void VKAPI_CALL recorded_barrier(VkCommandBuffer commands, const VkDependencyInfo* dependency) {
  const VkMemoryBarrier2& barrier = dependency->pMemoryBarriers[0];
  recorded.push_back({.from = barrier.srcAccessMask, .to = barrier.dstAccessMask});
  pipeline_barrier(commands, dependency);
}

TEST_CASE("a state is read behind the runs that were submitted, and the host sees what was copied") {
  test::TestDevice& device = test::test_device();
  test::RandomConstants none(1);
  WeightStore weights(*device.pipelines, none);
  StateStore states(*device.device);
  states.make("buffer", 4 * sizeof(float));
  const auto graph = std::make_shared<Graph>();
  graph->store(scale(*graph, "ten", graph->input("x", {4}), 10), {"buffer"});
  Executable run(weights, make_plan(graph, device.device->capabilities()), &states);
  set_input(run, "x", {1, 2, 3, 4}, 0);
  run.submit();

  VolkDeviceTable& vk = device.device->vk();
  copy_buffer = std::exchange(vk.vkCmdCopyBuffer, recorded_copy);
  pipeline_barrier = std::exchange(vk.vkCmdPipelineBarrier2, recorded_barrier);
  recorded.clear();
  const std::vector<float> values = read(states, "buffer", 0, 4);
  vk.vkCmdCopyBuffer = copy_buffer;
  vk.vkCmdPipelineBarrier2 = pipeline_barrier;

  CHECK(values == std::vector<float>{10, 20, 30, 40});
  REQUIRE(recorded.size() == 3);
  CHECK((recorded[0].from & VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT) != 0);
  CHECK((recorded[0].to & VK_ACCESS_2_TRANSFER_READ_BIT) != 0);
  CHECK(recorded[1].copy);
  CHECK((recorded[2].from & VK_ACCESS_2_TRANSFER_WRITE_BIT) != 0);
  CHECK((recorded[2].to & VK_ACCESS_2_HOST_READ_BIT) != 0);
  test::require_no_validation_messages();
}

}  // namespace
}  // namespace vitrine
