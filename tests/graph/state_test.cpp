// States: memory that outlives a run and that several executables share.
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <memory>
#include <vector>

#include "runtime/graph/executable.h"
#include "runtime/ops/binary.h"
#include "runtime/ops/softmax.h"
#include "runtime/ops/unary.h"
#include "runtime/util/error.h"
#include "tests/support/constants.h"
#include "tests/support/test_device.h"

namespace vitrine {
namespace {

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

TEST_CASE("a state keeps from run to run what was stored") {
  test::TestDevice& device = test::test_device();
  test::RandomConstants none(1);
  WeightStore weights(*device.pipelines, none);
  StateStore states(*device.device);
  states.make("sums", 16 * sizeof(float));

  const auto graph = std::make_shared<Graph>();
  const ValueId x = graph->input("x", {5});
  const ValueId sum = graph->state("sum", {5}, {"sums", 8});
  graph->store(add(*graph, "add", sum, x), {"sums", 8});
  Executable run(weights, make_plan(graph, device.device->capabilities()), &states);

  const auto other = std::make_shared<Graph>();
  other->output(scale(*other, "half", other->state("sums", {16}, {"sums"}), 0.5), "half");
  Executable look(weights, make_plan(other, device.device->capabilities()), &states);

  const std::vector<float> start{1, 2, 3};
  states.write("sums", 8 * sizeof(float), std::as_bytes(std::span(start)));
  for (uint32_t i = 0; i < 3; ++i) {
    set_input(run, "x", {1, 2, 3, 4, 5}, i % 2);
    run.submit(i % 2);
  }
  run.wait(0);
  CHECK(read(states, "sums", 8, 5) == std::vector<float>{4, 8, 12, 12, 15});
  CHECK(read(states, "sums", 0, 8) == std::vector<float>(8, 0));
  CHECK(read(states, "sums", 13, 3) == std::vector<float>(3, 0));
  look.run();
  const auto bytes = look.output(0);
  std::vector<float> half(16);
  std::memcpy(half.data(), bytes.data(), bytes.size());
  CHECK(half == std::vector<float>{0, 0, 0, 0, 0, 0, 0, 0, 2, 4, 6, 6, 7.5, 0, 0, 0});
  test::require_no_validation_messages();
}

TEST_CASE("nodes behind a store read what was stored") {
  test::TestDevice& device = test::test_device();
  test::RandomConstants none(1);
  WeightStore weights(*device.pipelines, none);
  StateStore states(*device.device);
  states.make("buffer", 8 * sizeof(float));
  const auto graph = std::make_shared<Graph>();
  const ValueId x = graph->input("x", {4});
  const ValueId before = scale(*graph, "before", graph->state("old", {8}, {"buffer"}), 1);
  graph->store(scale(*graph, "ten", x, 10), {"buffer", 4});
  const ValueId after = scale(*graph, "after", graph->state("new", {8}, {"buffer"}), 1);
  graph->output(before, "was");
  graph->output(after, "is");
  Executable run(weights, make_plan(graph, device.device->capabilities()), &states);
  set_input(run, "x", {1, 2, 3, 4}, 0);
  run.run();
  const auto output = [&](const char* name) {
    std::vector<float> values(8);
    std::memcpy(values.data(), run.output(run.output_index(name)).data(), 32);
    return values;
  };
  CHECK(output("was") == std::vector<float>(8, 0));
  CHECK(output("is") == std::vector<float>{0, 0, 0, 0, 10, 20, 30, 40});
  run.run();
  CHECK(output("was") == std::vector<float>{0, 0, 0, 0, 10, 20, 30, 40});
  test::require_no_validation_messages();
}

TEST_CASE("a kernel that does not work in place can't overwrite the state it reads") {
  test::TestDevice& device = test::test_device();
  const auto graph = std::make_shared<Graph>();
  const ValueId x = graph->state("x", {8}, {"buffer"});
  graph->store(scale(*graph, "moved", x, 2), {"buffer", 3});
  CHECK_THROWS_AS(make_plan(graph, device.device->capabilities()), Error);
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

}  // namespace
}  // namespace vitrine
