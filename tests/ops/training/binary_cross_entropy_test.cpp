#include "runtime/ops/training/binary_cross_entropy.h"

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
  bool two = false;
  double smoothing = 0;
  std::optional<double> threshold = {};
  bool sum = false;
  double low = -4, high = 4;
};

// Logits, labels, and with two labels the others and the shares.
std::vector<reference::OpInput> inputs_of(const Case& c) {
  const auto classes = static_cast<double>(c.classes);
  std::vector<reference::OpInput> inputs{
      {test::random_tensor({c.rows, c.classes}, DType::f32, 1, c.low, c.high)},
      {test::random_tensor({c.rows}, DType::u32, 2, 0, classes)}};
  inputs[1].tensor.values.front() = classes - 1;
  if (!c.two) return inputs;
  inputs.push_back({test::random_tensor({c.rows}, DType::u32, 3, 0, classes)});
  inputs.push_back({test::random_tensor({c.rows}, DType::f32, 4, 0, 1)});
  if (c.rows > 1) inputs[2].tensor.values[1] = inputs[1].tensor.values[1];  // mixed with its own class
  return inputs;
}

reference::Targets targets_of(const Case& c, std::span<const std::vector<double>> in) {
  reference::Targets targets{
      .labels = in[1], .smoothing = c.smoothing, .threshold = c.threshold, .sum = c.sum};
  if (c.two) targets.others = in[2], targets.shares = in[3];
  return targets;
}

ValueId losses(Graph& graph, const Case& c, std::span<const ValueId> in) {
  BinaryCrossEntropyOptions options{
      .label_smoothing = c.smoothing, .target_threshold = c.threshold, .sum = c.sum};
  if (c.two) options.others = in[2], options.shares = in[3];
  return binary_cross_entropy(graph, "loss", in[0], in[1], options);
}

std::vector<std::vector<double>> values_of(const std::vector<reference::OpInput>& inputs) {
  std::vector<std::vector<double>> values;
  for (const reference::OpInput& input : inputs) values.push_back(input.tensor.values);
  return values;
}

test::OpCase op_case(const Case& c, std::vector<reference::OpInput> inputs) {
  const auto values = values_of(inputs);
  test::OpCase result{.label = std::to_string(c.rows) + " x " + std::to_string(c.classes),
                      .inputs = std::move(inputs)};
  result.expected = {reference::binary_cross_entropy(values[0], targets_of(c, values))};
  result.build = [c](Graph& graph, std::span<const ValueId> in) { return std::vector{losses(graph, c, in)}; };
  return result;
}

void check(const Case& c) {
  test::check_op(op_binary_cross_entropy, op_case(c, inputs_of(c)));
  test::GradientCase gradients{.label = std::to_string(c.rows) + " x " + std::to_string(c.classes),
                               .inputs = inputs_of(c)};
  gradients.build = [c](Graph& graph, std::span<const ValueId> in) {
    return std::vector{losses(graph, c, in)};
  };
  gradients.forward = [c](std::span<const reference::Values> in) {
    return Results{reference::binary_cross_entropy(in[0], targets_of(c, in))};
  };
  gradients.backward = [c](std::span<const reference::Values> in, std::span<const reference::Values> g) {
    Results results(in.size());
    results[0] = reference::binary_cross_entropy_gradient(g[0], in[0], targets_of(c, in));
    return results;
  };
  test::check_gradients(gradients);
}

TEST_CASE("binary_cross_entropy and its derivative match the float64 reference at every size") {
  for (const uint64_t classes : {2, 3, 10, 17, 100, 1000, 4099}) check({.rows = 7, .classes = classes});
  for (const uint64_t rows : {1, 2, 8, 251}) check({.rows = rows, .classes = 10, .two = true});
  test::check_op(op_binary_cross_entropy, op_case({70001, 3}, inputs_of({70001, 3})));
}

TEST_CASE("binary_cross_entropy takes smoothed labels, two labels, thresholds and sums") {
  for (const bool two : {false, true}) {
    for (const double smoothing : {0.0, 0.1, 1.0}) {
      for (const bool sum : {false, true}) check({11, 37, two, smoothing, {}, sum});
    }
    check({11, 37, two, 0.1, 0.2});
    check({11, 37, two, 0.1, 0.0});
  }
}

TEST_CASE("binary_cross_entropy takes logits of any size") {
  check({.rows = 9, .classes = 50, .low = -100, .high = 100});
  check({.rows = 9, .classes = 50, .low = -1e-3, .high = 1e-3});
  // Of what is nearly certain the logarithm is what the exponential is, and no zero.
  Case c{.rows = 9, .classes = 50, .threshold = 1.0, .low = -14, .high = -9};
  test::check_op(op_binary_cross_entropy, op_case(c, inputs_of(c)));
  // As a training of many classes has them: nothing that cancels may be left of each.
  check({.rows = 9, .classes = 1000, .smoothing = 0.1, .low = -8, .high = -6});
  c = {.rows = 9, .classes = 50, .low = -1e30, .high = 1e30};
  test::check_op(op_binary_cross_entropy, op_case(c, inputs_of(c)));
}

TEST_CASE("binary_cross_entropy of a label that no class has is NaN, other rows are untouched") {
  const Case c{.rows = 9, .classes = 10, .two = true};
  auto inputs = inputs_of(c);
  inputs[1].tensor.values[2] = 10;
  inputs[2].tensor.values[4] = 4294967295.0;
  test::OpCase unknown = op_case(c, inputs);
  unknown.allow_nonfinite = true;
  test::check_op(op_binary_cross_entropy, unknown);
}

TEST_CASE("binary_cross_entropy makes NaN of a row with a NaN, wherever it stands") {
  for (const uint64_t classes : {10, 197}) {
    const Case c{.rows = 5, .classes = classes, .smoothing = 0.1};
    test::check_nan(op_binary_cross_entropy, op_case(c, inputs_of(c)), [&](auto in) {
      return Results{reference::binary_cross_entropy(in[0], targets_of(c, in))};
    });
    test::OpCase gradient = op_case(c, inputs_of(c));
    gradient.inputs.push_back({test::random_tensor({c.rows}, DType::f32, 9, 0.1, 1)});
    gradient.expected = {reference::binary_cross_entropy_gradient(gradient.inputs[2].tensor.values,
                                                                  gradient.inputs[0].tensor.values,
                                                                  targets_of(c, values_of(gradient.inputs)))};
    gradient.build = [](Graph& graph, std::span<const ValueId> in) {
      return std::vector{
          binary_cross_entropy_gradient(graph, "y", in[2], in[0], in[1], {.label_smoothing = 0.1})};
    };
    test::check_nan(op_binary_cross_entropy_gradient, gradient, [&](auto in) {
      return Results{reference::binary_cross_entropy_gradient(in[2], in[0], targets_of(c, in))};
    });
  }
}

TEST_CASE("binary_cross_entropy refuses what does not fit") {
  Graph graph;
  const ValueId logits = graph.input("logits", {4, 10}), labels = graph.input("labels", {4}, DType::u32);
  const ValueId shares = graph.input("shares", {4});
  CHECK_NOTHROW(binary_cross_entropy(graph, "y", logits, labels, {.others = labels, .shares = shares}));
  CHECK_THROWS_AS(binary_cross_entropy(graph, "y", labels, labels), Error);
  CHECK_THROWS_AS(binary_cross_entropy(graph, "y", logits, shares), Error);
  CHECK_THROWS_AS(binary_cross_entropy(graph, "y", logits, labels, {.others = labels}), Error);
  CHECK_THROWS_AS(binary_cross_entropy(graph, "y", logits, labels, {.others = labels, .shares = logits}),
                  Error);
  CHECK_THROWS_AS(binary_cross_entropy(graph, "y", logits, labels, {.label_smoothing = 1.5}), Error);
  CHECK_THROWS_AS(binary_cross_entropy_gradient(graph, "y", logits, logits, labels), Error);
}

}  // namespace
}  // namespace vitrine
