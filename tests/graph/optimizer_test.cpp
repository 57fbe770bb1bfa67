// Optimisers on states: the new numbers are stored where the old ones are.
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <memory>
#include <vector>

#include "runtime/check/reference_training.h"
#include "runtime/graph/executable.h"
#include "runtime/ops/training/adam_step.h"
#include "runtime/ops/training/sgd_step.h"
#include "tests/support/constants.h"
#include "tests/support/step.h"
#include "tests/support/test_device.h"

namespace vitrine {
namespace {

using reference::Values;

constexpr uint64_t count = 1021;

std::vector<float> as_floats(const Values& values) { return {values.begin(), values.end()}; }

struct Fixture {
  test::TestDevice& device = test::test_device();
  test::RandomConstants none{1};
  WeightStore weights{*device.pipelines, none};
  StateStore states{*device.device};
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  ValueId gradient = graph->input("gradient", {count});
  ValueId step = graph->input("step", {VITRINE_STEP_WORDS}, DType::u32);

  // A state behind `first` elements that belong to nobody, with as many behind it.
  StatePlace make(const std::string& name, uint64_t first, const Values& values) {
    states.make(name, (count + 2 * first) * sizeof(float));
    states.write(name, first * sizeof(float), std::as_bytes(std::span<const float>(as_floats(values))));
    return {name, first};
  }
  Values read(const StatePlace& place, uint64_t elements = count) {
    std::vector<float> values(elements);
    states.read(place.buffer, place.first * sizeof(float), std::as_writable_bytes(std::span(values)));
    return {values.begin(), values.end()};
  }
  void check(const StatePlace& place, const Values& expected) {
    CHECK(test::relative_error(read(place), expected) < 2e-6);
    CHECK(read({place.buffer, 0}, place.first) == Values(place.first));
    CHECK(read({place.buffer, place.first + count}, place.first) == Values(place.first));
  }
  Plan plan(std::string_view op, const KernelDef& kernel) {
    PlanOptions options;
    options.variants[std::string(op)] = std::string(kernel.name);
    return make_plan(graph, device.device->capabilities(), options);
  }
  static void run(Executable& executable, const Values& gradient, const test::HostTensor& step,
                  uint32_t set) {
    const std::vector<float> floats = as_floats(gradient);
    const std::vector<std::byte> bytes = test::encode(step);
    std::memcpy(executable.input(executable.input_index("gradient"), set).data(), floats.data(), count * 4);
    std::memcpy(executable.input(executable.input_index("step"), set).data(), bytes.data(), bytes.size());
    executable.run(set);
  }
};

Values gradient_of(uint64_t step) {
  return test::random_tensor({count}, DType::f32, 10 + step, -0.5, 1.5).values;
}

bool refused(const Graph& graph, const KernelDef& kernel, const Capabilities& device) {
  return kernel.refuses(LowerContext(graph, graph.nodes().front(), device)).has_value();
}

TEST_CASE("adam_step moves states in place, step after step") {
  size_t ran = 0;
  for (const KernelDef& kernel : op_adam_step.kernels) {
    for (const uint64_t first : {0, 64}) {
      INFO(kernel.name << " at " << first);
      Fixture f;
      Values param = test::random_tensor({count}, DType::f32, 1).values, m(count), v(count);
      const StatePlace at_param = f.make("parameters", first, param), at_m = f.make("m", first, m),
                       at_v = f.make("v", first, v);
      const AdamState out =
          adam_step(*f.graph, "adam", f.graph->state("p", {count}, at_param), f.gradient,
                    f.graph->state("m", {count}, at_m), f.graph->state("v", {count}, at_v), f.step,
                    {.weight_decay = 0.1, .decoupled = true, .decay_elements = 500});
      f.graph->store(out.param, at_param);
      f.graph->store(out.m, at_m);
      f.graph->store(out.v, at_v);
      if (refused(*f.graph, kernel, f.device.device->capabilities())) continue;
      ++ran;
      Executable executable(f.weights, f.plan("adam_step", kernel), &f.states);
      const reference::Adam adam{.rate = 0.05, .weight_decay = 0.1, .decoupled = true, .decayed = 500};
      for (uint64_t t = 1; t <= 5; ++t) {
        Fixture::run(executable, gradient_of(t), test::update_tensor(0.05, t, 0.9, 0.999), t % 2);
        adam.step(t, param, gradient_of(t), m, v);
      }
      f.check(at_param, param);
      f.check(at_m, m);
      f.check(at_v, v);
      test::require_no_validation_messages();
    }
  }
  CHECK(ran >= 2);
}

TEST_CASE("sgd_step moves states in place, step after step") {
  size_t ran = 0;
  for (const KernelDef& kernel : op_sgd_step.kernels) {
    for (const uint64_t first : {0, 64}) {
      INFO(kernel.name << " at " << first);
      Fixture f;
      Values param = test::random_tensor({count}, DType::f32, 1).values, velocity(count);
      const StatePlace at_param = f.make("parameters", first, param),
                       at_velocity = f.make("velocity", first, velocity);
      const SgdState out =
          sgd_step(*f.graph, "sgd", f.graph->state("p", {count}, at_param), f.gradient,
                   f.graph->state("u", {count}, at_velocity), f.step, {.momentum = 0.9, .nesterov = true});
      f.graph->store(out.param, at_param);
      f.graph->store(out.velocity, at_velocity);
      if (refused(*f.graph, kernel, f.device.device->capabilities())) continue;
      ++ran;
      Executable executable(f.weights, f.plan("sgd_step", kernel), &f.states);
      const reference::Sgd sgd{.rate = 0.05, .momentum = 0.9, .nesterov = true};
      for (uint64_t t = 1; t <= 5; ++t) {
        Fixture::run(executable, gradient_of(t), test::update_tensor(0.05, t), t % 2);
        sgd.step(param, gradient_of(t), velocity);
      }
      f.check(at_param, param);
      f.check(at_velocity, velocity);
      test::require_no_validation_messages();
    }
  }
  CHECK(ran >= 2);
}

TEST_CASE("the kernels that move 64 bits refuse states that start between two words") {
  Graph graph;
  const ValueId gradient = graph.input("g", {8}),
                step = graph.input("step", {VITRINE_STEP_WORDS}, DType::u32);
  const ValueId even = graph.state("even", {8}, {"buffer", 8}), odd = graph.state("odd", {8}, {"buffer", 17});
  adam_step(graph, "adam", even, gradient, odd, gradient, step);
  sgd_step(graph, "sgd", odd, gradient, {}, step);
  Capabilities device = test::test_device().device->capabilities();
  // So that only the width of the words is in the way.
  device.storage_alignment = 4;
  device.has = device.has | Need::addresses | Need::int64;
  for (const Node& node : graph.nodes()) {
    const LowerContext context(graph, node, device);
    CHECK_FALSE(node.op->kernels[0].refuses(context));
    CHECK(node.op->kernels[1].refuses(context).value_or("").find("between two 64-bit words") !=
          std::string::npos);
  }
}

}  // namespace
}  // namespace vitrine
