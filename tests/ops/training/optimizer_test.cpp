// sgd_step and adam_step: several steps in a row, each kernel against the same loop in float64.
#include <catch2/catch_test_macros.hpp>
#include <limits>

#include "runtime/check/reference_training.h"
#include "runtime/ops/training/adam_step.h"
#include "runtime/ops/training/sgd_step.h"
#include "runtime/util/error.h"
#include "tests/support/op_test.h"
#include "tests/support/step.h"

namespace vitrine {
namespace {

using reference::Values;
using test::HostTensor;

constexpr uint64_t steps = 4;

// Inputs of a case: the parameters, the moments as they are before the first step, then the gradient and the
// words of each step, then the gradients' scale.
struct Inputs {
  uint64_t count = 0;
  double scale = 0;  // of the gradients; 0: none is given
  std::vector<HostTensor> moments{}, gradients{};
  HostTensor param{};

  Inputs(uint64_t n, uint64_t moment_count, double gradient_scale) : count(n), scale(gradient_scale) {
    param = test::random_tensor({n}, DType::f32, 1);
    for (uint64_t i = 0; i < moment_count; ++i)
      moments.push_back(test::random_tensor({n}, DType::f32, 2 + i, 0, 0.3));
    for (uint64_t i = 0; i < steps; ++i)
      gradients.push_back(test::random_tensor({n}, DType::f32, 10 + i, -0.5, 1.5));
  }

  Values gradient(uint64_t step) const {
    Values values = gradients[step].values;
    if (scale != 0) {
      for (double& value : values) value *= scale;
    }
    return values;
  }

  // rate and corrections differ from step to step.
  static double rate(uint64_t step) { return 0.1 / static_cast<double>(step + 1); }

  std::vector<test::OpInput> all(double beta1, double beta2) const {
    std::vector<test::OpInput> inputs{{param}};
    for (const HostTensor& moment : moments) inputs.push_back({moment});
    for (uint64_t i = 0; i < steps; ++i) {
      inputs.push_back({gradients[i]});
      inputs.push_back({test::update_tensor(rate(i), i + 1, beta1, beta2)});
    }
    if (scale != 0) inputs.push_back({{{1}, DType::f32, {scale}}});
    return inputs;
  }
};

std::string label_of(const char* what, uint64_t count, double weight_decay, uint64_t decayed) {
  return std::string(what) + " of " + std::to_string(count) + ", weight decay " +
         std::to_string(weight_decay) + " of " + std::to_string(decayed);
}

test::OpCase sgd_case(uint64_t count, SgdOptions options, double scale = 0) {
  const bool momentum = options.momentum > 0;
  const Inputs in(count, momentum, scale);
  const uint64_t decayed = std::min(options.decay_elements, count);
  reference::Sgd sgd{.momentum = options.momentum,
                     .weight_decay = options.weight_decay,
                     .nesterov = options.nesterov,
                     .decayed = decayed};
  Values param = in.param.values, velocity = momentum ? in.moments[0].values : Values(count);
  for (uint64_t i = 0; i < steps; ++i) {
    sgd.rate = options.rate_factor * Inputs::rate(i);
    sgd.step(param, in.gradient(i), velocity);
  }
  test::OpCase result;
  result.label = label_of("sgd", count, options.weight_decay, decayed);
  result.inputs = in.all(0, 0);
  result.expected = {param};
  if (momentum) result.expected.push_back(velocity);
  result.build = [=](Graph& graph, std::span<const ValueId> ids) {
    SgdState state{ids[0], momentum ? ids[1] : ValueId{}};
    SgdOptions own = options;
    if (scale != 0) own.gradient_scale = ids.back();
    for (size_t i = 0, at = momentum ? 2 : 1; i < steps; ++i, at += 2)
      state =
          sgd_step(graph, "step" + std::to_string(i), state.param, ids[at], state.velocity, ids[at + 1], own);
    std::vector<ValueId> outputs{state.param};
    if (momentum) outputs.push_back(state.velocity);
    return outputs;
  };
  return result;
}

test::OpCase adam_case(uint64_t count, AdamOptions options, double scale = 0) {
  const Inputs in(count, 2, scale);
  const uint64_t decayed = std::min(options.decay_elements, count);
  reference::Adam adam{.beta1 = options.beta1,
                       .beta2 = options.beta2,
                       .eps = options.eps,
                       .weight_decay = options.weight_decay,
                       .decoupled = options.decoupled,
                       .decayed = decayed};
  Values param = in.param.values, m = in.moments[0].values, v = in.moments[1].values;
  for (uint64_t i = 0; i < steps; ++i) {
    adam.rate = options.rate_factor * Inputs::rate(i);
    adam.step(i + 1, param, in.gradient(i), m, v);
  }
  test::OpCase result;
  result.label = label_of(options.decoupled ? "adamw" : "adam", count, options.weight_decay, decayed);
  result.inputs = in.all(options.beta1, options.beta2);
  result.expected = {param, m, v};
  result.build = [=](Graph& graph, std::span<const ValueId> ids) {
    AdamState state{ids[0], ids[1], ids[2]};
    AdamOptions own = options;
    if (scale != 0) own.gradient_scale = ids.back();
    for (size_t i = 0, at = 3; i < steps; ++i, at += 2)
      state = adam_step(graph, "step" + std::to_string(i), state.param, ids[at], state.m, state.v,
                        ids[at + 1], own);
    return std::vector{state.param, state.m, state.v};
  };
  return result;
}

constexpr uint64_t counts[] = {1, 2, 3, 4, 5, 31, 256, 1021, 1024, 70001};

TEST_CASE("sgd_step matches the float64 reference at every number of elements") {
  for (const uint64_t count : counts) {
    test::check_op(op_sgd_step, sgd_case(count, {}));
    test::check_op(op_sgd_step, sgd_case(count, {.momentum = 0.9}));
  }
}

TEST_CASE("sgd_step decays and takes momentum as torch.optim.SGD") {
  for (const double momentum : {0.0, 0.9}) {
    for (const bool nesterov : {false, true}) {
      if (nesterov && momentum == 0) continue;
      for (const uint64_t decayed : {uint64_t{0}, uint64_t{1}, uint64_t{510}, uint64_t{1021}, all_elements}) {
        test::check_op(op_sgd_step, sgd_case(1021, {.momentum = momentum,
                                                    .weight_decay = 0.3,
                                                    .nesterov = nesterov,
                                                    .decay_elements = decayed}));
      }
    }
  }
}

TEST_CASE("adam_step matches the float64 reference at every number of elements") {
  for (const uint64_t count : counts) test::check_op(op_adam_step, adam_case(count, {}));
}

TEST_CASE("adam_step decays as torch.optim.Adam and AdamW") {
  for (const bool decoupled : {false, true}) {
    for (const uint64_t decayed : {uint64_t{0}, uint64_t{1}, uint64_t{510}, uint64_t{1021}, all_elements}) {
      test::check_op(
          op_adam_step,
          adam_case(1021, {.weight_decay = 0.3, .decoupled = decoupled, .decay_elements = decayed}));
    }
  }
}

TEST_CASE("adam_step takes any betas and eps") {
  test::check_op(op_adam_step, adam_case(67, {.beta1 = 0.5, .beta2 = 0.95, .eps = 0.1}));
  test::check_op(op_adam_step, adam_case(67, {.beta1 = 0, .beta2 = 0.999}));
  test::check_op(op_adam_step, adam_case(67, {.beta1 = 0.95, .beta2 = 0.99999, .eps = 1e-6}));
}

TEST_CASE("optimisers multiply the learning rate") {
  for (const uint64_t count : {67, 1024}) {
    test::check_op(op_sgd_step,
                   sgd_case(count, {.momentum = 0.9, .weight_decay = 0.3, .rate_factor = 0.421875}));
    test::check_op(op_adam_step, adam_case(count, {.weight_decay = 0.3, .rate_factor = 0.421875}));
    test::check_op(op_adam_step,
                   adam_case(count, {.weight_decay = 0.3, .decoupled = true, .rate_factor = 0.421875}));
  }
}

TEST_CASE("optimisers scale the gradients") {
  for (const uint64_t count : {67, 1024}) {
    test::check_op(op_sgd_step, sgd_case(count, {.momentum = 0.9, .weight_decay = 0.3}, 0.25));
    test::check_op(op_adam_step, adam_case(count, {.weight_decay = 0.3}, 0.25));
    test::check_op(op_adam_step, adam_case(count, {.weight_decay = 0.3, .decoupled = true}, 3));
  }
}

// An element that no gradient ever reached stays where it is, and is no 0 / 0.
TEST_CASE("adam_step leaves elements without a gradient alone") {
  test::OpCase still = adam_case(37, {});
  for (size_t i = 1; i < still.inputs.size(); ++i) {
    if (still.inputs[i].tensor.dtype == DType::f32) still.inputs[i].tensor.values[5] = 0;
  }
  still.expected[0][5] = still.inputs[0].tensor.values[5];
  still.expected[1][5] = still.expected[2][5] = 0;
  test::check_op(op_adam_step, still);
}

TEST_CASE("optimisers hand NaN on, to no other element") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  // The parameters, which nothing else depends on without decay, each moment, and the first step's gradient,
  // which reaches all of them.
  const auto check = [](const OpDef& op, const test::OpCase& steps_of, size_t moments) {
    for (const size_t which : {size_t{5}, size_t{36}}) {
      for (size_t input = 0; input <= moments + 1; ++input) {
        test::OpCase c = steps_of;
        c.label += ", NaN in input " + std::to_string(input);
        c.inputs[input].tensor.values[which] = nan;
        c.expected[0][which] = nan;
        for (size_t moment = 1; moment <= moments; ++moment) {
          if (input == moment || input > moments) c.expected[moment][which] = nan;
        }
        c.allow_nonfinite = true;
        test::check_op(op, c);
      }
    }
  };
  check(op_adam_step, adam_case(37, {.decay_elements = 0}), 2);
  check(op_sgd_step, sgd_case(37, {.momentum = 0.9, .decay_elements = 0}), 1);
}

// Whatever the gradients hold; the scale is what says that they hold it.
TEST_CASE("optimisers change nothing where the gradients' scale is NaN") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const auto check = [](const OpDef& op, test::OpCase c, size_t moments) {
    c.label += ", a scale of NaN";
    for (size_t i = 1 + moments; i + 1 < c.inputs.size(); i += 2) c.inputs[i].tensor.values[1] = nan;
    for (size_t i = 0; i <= moments; ++i) c.expected[i] = c.inputs[i].tensor.values;
    c.exact = true;
    test::check_op(op, c);
  };
  for (const uint64_t count : {2, 67, 1024}) {
    check(op_adam_step, adam_case(count, {.weight_decay = 0.3}, nan), 2);
    check(op_adam_step, adam_case(count, {.weight_decay = 0.3, .decoupled = true}, nan), 2);
    check(op_sgd_step, sgd_case(count, {.momentum = 0.9, .weight_decay = 0.3}, nan), 1);
    check(op_sgd_step, sgd_case(count, {}, nan), 0);
  }
}

TEST_CASE("optimisers refuse what does not fit") {
  Graph graph;
  const ValueId p = graph.input("p", {8}), g = graph.input("g", {8}), other = graph.input("other", {9});
  const ValueId step = graph.input("step", {VITRINE_STEP_WORDS}, DType::u32);
  CHECK_THROWS_AS(sgd_step(graph, "s", p, other, {}, step), Error);
  CHECK_THROWS_AS(sgd_step(graph, "s", p, g, {}, g), Error);
  CHECK_THROWS_AS(sgd_step(graph, "s", p, g, {}, step, {.momentum = 0.9}), Error);
  CHECK_THROWS_AS(sgd_step(graph, "s", p, g, g, step), Error);
  CHECK_THROWS_AS(sgd_step(graph, "s", p, g, {}, step, {.nesterov = true}), Error);
  CHECK_THROWS_AS(sgd_step(graph, "s", p, g, {}, step, {.weight_decay = -1}), Error);
  CHECK_THROWS_AS(sgd_step(graph, "s", p, g, {}, step, {.gradient_scale = step}), Error);
  CHECK_THROWS_AS(adam_step(graph, "s", p, g, {}, g, step), Error);
  CHECK_THROWS_AS(adam_step(graph, "s", p, g, g, other, step), Error);
  CHECK_THROWS_AS(adam_step(graph, "s", p, g, g, g, step, {.beta1 = 1}), Error);
  CHECK_THROWS_AS(adam_step(graph, "s", p, g, g, g, step, {.beta2 = -0.1}), Error);
  CHECK_NOTHROW(adam_step(graph, "s", p, g, g, g, step));
}

}  // namespace
}  // namespace vitrine
