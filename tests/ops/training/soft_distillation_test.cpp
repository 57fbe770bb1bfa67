#include "runtime/ops/training/soft_distillation.h"

#include <catch2/catch_test_macros.hpp>
#include <limits>

#include "runtime/check/reference_recipes.h"
#include "runtime/util/error.h"
#include "tests/support/gradient_test.h"

namespace vitrine {
namespace {

using test::HostTensor;
using Results = test::Results;

struct Case {
  uint64_t rows = 0, classes = 0;
  SoftDistillationOptions options = {};
  double low = -4, high = 4;
};

reference::Softness softness_of(const Case& c) { return {c.classes, c.options.temperature, c.options.sum}; }

test::OpCase op_case(const Case& c) {
  test::OpCase result{.label = std::to_string(c.rows) + " x " + std::to_string(c.classes) + ", temperature " +
                               std::to_string(c.options.temperature)};
  result.inputs = {{test::random_tensor({c.rows, c.classes}, DType::f32, 1, c.low, c.high)},
                   {test::random_tensor({c.rows, c.classes}, DType::f32, 2, c.low, c.high)}};
  result.expected = {reference::soft_distillation(result.inputs[0].tensor.values,
                                                  result.inputs[1].tensor.values, softness_of(c))};
  result.build = [c](Graph& graph, std::span<const ValueId> in) {
    return std::vector{soft_distillation(graph, "loss", in[0], in[1], c.options)};
  };
  return result;
}

void check(const Case& c) {
  const test::OpCase losses = op_case(c);
  test::check_op(op_soft_distillation, losses);
  test::GradientCase gradients{.label = losses.label, .inputs = losses.inputs, .build = losses.build};
  gradients.inputs[1].role = Role::constant;  // a teacher's graph isn't differentiated
  gradients.forward = [c](std::span<const reference::Values> in) {
    return Results{reference::soft_distillation(in[0], in[1], softness_of(c))};
  };
  gradients.backward = [c](std::span<const reference::Values> in, std::span<const reference::Values> g) {
    return Results{reference::soft_distillation_gradient(g[0], in[0], in[1], softness_of(c)), {}};
  };
  test::check_gradients(gradients);
}

TEST_CASE("soft_distillation and its derivative match the float64 reference at every size") {
  for (const uint64_t classes : {2, 3, 10, 17, 100, 1000, 4099}) check({7, classes});
  for (const uint64_t rows : {1, 2, 8, 251}) check({rows, 10});
  test::check_op(op_soft_distillation, op_case({70001, 3}));
}

TEST_CASE("soft_distillation takes temperatures, sums and logits of any size") {
  for (const double temperature : {0.5, 1.0, 3.0, 20.0}) {
    for (const bool sum : {false, true}) check({11, 37, {temperature, sum}});
  }
  check({9, 50, {}, -40, 40});
  check({9, 50, {}, 900, 1000});
}

TEST_CASE("soft_distillation learns nothing of a class that its teacher holds for impossible") {
  test::OpCase impossible = op_case({5, 37, {2}});
  for (size_t i = 0; i < impossible.inputs[1].tensor.values.size(); i += 9) {
    impossible.inputs[1].tensor.values[i] = -std::numeric_limits<double>::infinity();
  }
  impossible.expected = {reference::soft_distillation(
      impossible.inputs[0].tensor.values, impossible.inputs[1].tensor.values, softness_of({5, 37, {2}}))};
  test::check_op(op_soft_distillation, impossible);
}

TEST_CASE("soft_distillation makes NaN of a row with a NaN, wherever it stands") {
  for (const uint64_t classes : {10, 197}) {
    const Case c{5, classes, {2}};
    const auto of = [&](auto in) { return reference::soft_distillation(in[0], in[1], softness_of(c)); };
    // std::max_element doesn't know NaN as the operator has to.
    const auto with_nan = [&](auto in, Results results) {
      for (const auto* logits : {&in[0], &in[1]}) {
        for (size_t i = 0; i < logits->size(); ++i) {
          if ((*logits)[i] == (*logits)[i]) continue;
          const size_t each = results[0].size() / c.rows, row = i / classes;
          std::fill_n(results[0].begin() + static_cast<ptrdiff_t>(row * each), each,
                      std::numeric_limits<double>::quiet_NaN());
        }
      }
      return results;
    };
    test::check_nan(op_soft_distillation, op_case(c), [&](auto in) { return with_nan(in, Results{of(in)}); });
    test::OpCase gradient = op_case(c);
    gradient.inputs.push_back({test::random_tensor({c.rows}, DType::f32, 9, 0.1, 1)});
    const auto gradient_of = [&](auto in) {
      return with_nan(in,
                      Results{reference::soft_distillation_gradient(in[2], in[0], in[1], softness_of(c))});
    };
    gradient.expected = {reference::soft_distillation_gradient(
        gradient.inputs[2].tensor.values, gradient.inputs[0].tensor.values, gradient.inputs[1].tensor.values,
        softness_of(c))};
    gradient.build = [c](Graph& graph, std::span<const ValueId> in) {
      return std::vector{soft_distillation_gradient(graph, "y", in[2], in[0], in[1], c.options)};
    };
    test::check_nan(op_soft_distillation_gradient, gradient, gradient_of);
  }
}

TEST_CASE("soft_distillation refuses what does not fit") {
  Graph graph;
  const ValueId x = graph.input("x", {4, 10});
  CHECK_NOTHROW(soft_distillation(graph, "y", x, x));
  CHECK_THROWS_AS(soft_distillation(graph, "y", x, graph.input("z", {4, 9})), Error);
  CHECK_THROWS_AS(soft_distillation(graph, "y", x, x, {.temperature = 0}), Error);
  CHECK_THROWS_AS(soft_distillation_gradient(graph, "y", x, x, x), Error);
}

}  // namespace
}  // namespace vitrine
